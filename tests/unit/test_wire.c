/* Tests the frames on the pipe between daemon and worker. A reader returns complete frames, however the pipe splits them, and
 * refuses malformed frames with an error code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "wire/wire.h"

/* A pipe, and a frame reader of its read end. */
typedef struct test_pipe {
  int write_end, read_end;
  rl_frame_reader *reader;
} test_pipe;

static test_pipe open_pipe(void) {
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
  return (test_pipe){.write_end = ends[1], .read_end = ends[0], .reader = rl_frame_reader_new(ends[0])};
}

static void close_pipe(test_pipe *channel) {
  if (channel->write_end >= 0) close(channel->write_end);
  close(channel->read_end);
  rl_frame_reader_free(channel->reader);
}

static void write_header(unsigned char bytes[RL_WIRE_HEADER_BYTES], int version, int type, uint32_t length) {
  memcpy(bytes, (unsigned char[]){'R', 'L', 'F', 'W', (unsigned char)version, (unsigned char)type, 0, 0}, 8);
  memcpy(bytes + 8, &length, 4);
}

static rl_records make_records(void) {
  rl_records records = {.has_metadata = true};
  rl_error err;
  rl_epoch epoch = {
      .epoch = 3, .warmup = true, .device_ms = 1.5, .host_ms = 2.5, .power_w = NAN, .unavailable = "{\"power_w\":\"no sensor\"}"};
  rl_kernel kernel = {
      .ordinal = 2, .launch = "conv1_forward", .name = "void k<1>(float*)", .launches = 938, .grid_x = 7, .median_us = 3.25};
  rl_phase phase = {.ordinal = 2,
                    .position = 1,
                    .name = "adam",
                    .phase = "optimizer",
                    .steps = 32,
                    .blocks = 128,
                    .mean_us = 1.5,
                    .min_us = NAN};
  rl_sample sample = {.mode = RL_SAMPLE_WARM, .ordinal = 4, .device_us = 2.75};
  rl_kernel_metric metric = {.ordinal = 2, .metric = "sm__throughput", .value = NAN, .reason = "refused"};
  rl_instruction load = {.ordinal = 2,
                         .offset = 48,
                         .opcode = "LDG.E",
                         .sass = "@!P0 LDG.E R2, desc[UR4][R2.64]",
                         .file = "a.cu",
                         .line = 9,
                         .counts = "{\"inst_executed\":32}",
                         .reason = "not sampled"};
  rl_series_point point = {.ordinal = 2, .name = "sm_active_pct", .x = 2e6, .value = NAN};
  strcpy(records.metadata.engine, "blas");
  strcpy(records.metadata.device_properties, "{\"name\":\"cpu\",\"cores\":2}");
  records.metadata.floor_operations = NAN;
  records.metadata.parameters = 315146;
  assert_int_equal(rl_records_add(&records, RL_RECORD_EPOCH, &epoch, 1, &err), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_SAMPLE, &sample, 1, &err), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_KERNEL, &kernel, 1, &err), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_PHASE, &phase, 1, &err), 0);
  assert_int_equal(rl_records_add_metric(&records, &metric, &err), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_INSTRUCTION, &load, 1, &err), 0);
  assert_int_equal(rl_records_add(&records, RL_RECORD_POINT, &point, 1, &err), 0);
  assert_int_equal(rl_records_add_measurement(&records, "wait_ms", 0.1, NULL, &err), 0);
  assert_int_equal(rl_records_add_name(&records, "first", 5, &err), 0);
  assert_int_equal(rl_records_add_name(&records, "second", 6, &err), 0);
  for (uint32_t i = 0; i < 3; i++) {
    rl_activity_row row = {.start_ns = i,
                           .end_ns = i + 10,
                           .kind = RL_ACTIVITY_CPU_SPAN,
                           .name = i % 2,
                           .step = i,
                           .bytes = 1ull << 40,
                           .thread = 7};
    assert_int_equal(rl_records_add(&records, RL_RECORD_ROW, &row, 1, &err), 0);
  }
  return records;
}

static void records_arrive_unchanged(void **state) {
  (void)state;
  test_pipe channel = open_pipe();
  rl_records sent = make_records(), received = {0};
  rl_error err = {0};
  rl_frame frame;
  assert_int_equal(rl_records_send(channel.write_end, &sent, &err), 0);
  assert_int_equal(rl_frame_write(channel.write_end, RL_FRAME_DONE, NULL, 0, &err), 0);
  int rc;
  do {
    assert_int_equal(rl_frame_read(channel.reader, 1000, &frame, &err), 0);
    rc = rl_records_receive(&frame, &received, &err);
    if (rc < 0) fail_msg("%s", err.message);
  } while (rc == 1);
  assert_int_equal(frame.type, RL_FRAME_DONE);
  assert_true(received.has_metadata && received.epoch_count == 1 && received.kernel_count == 1 && received.metric_count == 1);
  assert_string_equal(received.metadata.engine, "blas");
  assert_string_equal(received.metadata.device_properties, sent.metadata.device_properties);
  assert_true(isnan(received.metadata.floor_operations) && received.metadata.parameters == 315146);
  assert_true(received.epochs[0].warmup && received.epochs[0].device_ms == 1.5 && isnan(received.epochs[0].power_w));
  assert_string_equal(received.epochs[0].unavailable, sent.epochs[0].unavailable);
  assert_true(received.sample_count == 1 && received.samples[0].mode == RL_SAMPLE_WARM && received.samples[0].ordinal == 4 &&
              received.samples[0].device_us == 2.75);
  assert_string_equal(received.kernels[0].name, "void k<1>(float*)");
  assert_true(received.kernels[0].median_us == 3.25 && received.kernels[0].grid_x == 7);
  assert_true(received.phase_count == 1 && received.phases[0].ordinal == 2 && received.phases[0].position == 1 &&
              received.phases[0].steps == 32);
  assert_true(received.phases[0].blocks == 128 && received.phases[0].mean_us == 1.5 && isnan(received.phases[0].min_us));
  assert_string_equal(received.phases[0].name, "adam"), assert_string_equal(received.phases[0].phase, "optimizer");
  assert_string_equal(received.metrics[0].reason, "refused");
  assert_true(received.instruction_count == 1 && received.instructions[0].offset == 48 && received.instructions[0].line == 9);
  assert_string_equal(received.instructions[0].sass, sent.instructions[0].sass);
  assert_string_equal(received.instructions[0].counts, sent.instructions[0].counts);
  assert_string_equal(received.instructions[0].reason, "not sampled");
  assert_true(received.point_count == 1 && received.points[0].ordinal == 2 && received.points[0].x == 2e6 &&
              isnan(received.points[0].value));
  assert_string_equal(received.points[0].name, "sm_active_pct");
  assert_string_equal(received.names[1], "second");
  assert_int_equal(received.row_count, 3);
  assert_memory_equal(received.rows, sent.rows, 3 * sizeof *sent.rows);
  rl_records_clear(&sent);
  rl_records_clear(&received);
  close_pipe(&channel);
}

static void metrics_are_validated(void **state) {
  (void)state;
  const rl_kernel_metric good = {.ordinal = 1, .metric = "dram__bytes.sum", .value = 7};
  rl_kernel_metric cases[] = {good, good, good, good, good, good, good};
  rl_records records = {0};
  rl_error err = {0};
  cases[0].ordinal = -1;
  cases[1].value = INFINITY;
  memset(cases[2].metric, 'a', sizeof cases[2].metric);
  strcpy(cases[3].reason, "two\nlines");
  memset(cases[4].reason, 'a', sizeof cases[4].reason);
  cases[5].value = -1.1 * RL_MEASURE_MAX;
  cases[6].value = 0.9 * RL_MEASURE_MIN;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_kernel_metric pair[2] = {good, cases[i]};
    rl_frame frame = {.type = RL_FRAME_METRIC, .length = sizeof pair, .payload = (const unsigned char *)pair};
    assert_int_equal(rl_records_receive(&frame, &records, &err), -1);
    assert_int_equal(err.code, RL_WIRE_MALFORMED_PAYLOAD);
  }
  rl_frame frame = {.type = RL_FRAME_METRIC, .length = sizeof good - 1, .payload = (const unsigned char *)&good};
  assert_int_equal(rl_records_receive(&frame, &records, &err), -1);
  assert_int_equal(records.metric_count, 0);
  /* A line end in a reason is sent as a space, and a byte of a truncated UTF-8 character as a question mark. */
  assert_int_equal(rl_records_add_metric(&records, &cases[3], &err), 0);
  assert_string_equal(records.metrics[0].reason, "two lines");
  strcpy(cases[3].reason, "cut \xc3");
  assert_int_equal(rl_records_add_metric(&records, &cases[3], &err), 0);
  assert_string_equal(records.metrics[1].reason, "cut ?");
  rl_records_clear(&records);
}

static void frames_may_be_split_anywhere(void **state) {
  (void)state;
  test_pipe source = open_pipe(), target = open_pipe();
  rl_error err;
  rl_frame frame;
  rl_request request = {
      .workload = "mnist_cnn", .params = "{\"epochs\":2}", .pass = RL_PASS_COUNTERS, .opening_overlapped = true};
  rl_request received = {0};
  for (int i = 0; i < 3; i++)
    assert_int_equal(rl_frame_write_json(source.write_end, RL_FRAME_REQUEST, rl_request_fields, &request, &err), 0);
  assert_int_equal(rl_frame_write(source.write_end, RL_FRAME_CANCEL, NULL, 0, &err), 0);
  unsigned char bytes[4096];
  ssize_t size = read(source.read_end, bytes, sizeof bytes);
  int frame_count = 0;
  for (ssize_t i = 0; i < size; i++) {
    assert_int_equal(write(target.write_end, bytes + i, 1), 1);
    if (rl_frame_read(target.reader, 0, &frame, &err) < 0) {
      assert_int_equal(err.code, RL_WIRE_TIMEOUT);
      continue;
    }
    frame_count++;
    if (frame_count == 4) break;
    assert_int_equal(frame.type, RL_FRAME_REQUEST);
    assert_int_equal(frame.payload[frame.length], 0);
    assert_int_equal(
        rl_fields_parse(rl_request_fields, (const char *)frame.payload, frame.length, &received, sizeof received, &err), 0);
    assert_string_equal(received.params, request.params);
    assert_int_equal(received.pass, RL_PASS_COUNTERS);
    assert_true(received.opening_overlapped);
  }
  assert_int_equal(frame_count, 4);
  assert_int_equal(frame.type, RL_FRAME_CANCEL);
  /* Four frames in one write: the NUL that the reader puts after a payload must not overwrite the next header. */
  assert_int_equal(write(target.write_end, bytes, (size_t)size), size);
  for (int i = 0; i < 4; i++) assert_int_equal(rl_frame_read(target.reader, 0, &frame, &err), 0);
  close_pipe(&source);
  close_pipe(&target);
}

static void *write_rows(void *argument) {
  rl_error err;
  static unsigned char rows[RL_WIRE_MAX_BULK_BYTES / sizeof(rl_activity_row) * sizeof(rl_activity_row)];
  memset(rows, 7, sizeof rows);
  int *descriptor = argument;
  fcntl(*descriptor, F_SETFL, O_NONBLOCK);
  for (int i = 0; i < 2; i++)
    if (rl_frame_write(*descriptor, RL_FRAME_ROWS, rows, sizeof rows, &err) < 0) return argument;
  return NULL;
}

static void frames_larger_than_the_pipe_are_transferred(void **state) {
  (void)state;
  test_pipe channel = open_pipe();
  pthread_t thread;
  rl_frame frame;
  rl_error err;
  void *failed;
  assert_int_equal(pthread_create(&thread, NULL, write_rows, &channel.write_end), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(rl_frame_read(channel.reader, 10000, &frame, &err), 0);
    assert_int_equal(frame.length, RL_WIRE_MAX_BULK_BYTES / sizeof(rl_activity_row) * sizeof(rl_activity_row));
    assert_int_equal(frame.payload[0], 7);
    assert_int_equal(frame.payload[frame.length - 1], 7);
  }
  pthread_join(thread, &failed);
  assert_null(failed);
  close_pipe(&channel);
}

static void *read_slowly(void *argument) {
  char page[4096];
  while (read(*(int *)argument, page, sizeof page) > 0) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  return NULL;
}

/* The reader would need 20 s for the largest frame. A write gives up earlier. */
static void a_slow_reader_ends_the_write(void **state) {
  (void)state;
  static char text[RL_WIRE_MAX_BULK_BYTES];
  test_pipe channel = open_pipe();
  pthread_t thread;
  rl_error err;
  memset(text, 'a', sizeof text);
  fcntl(channel.write_end, F_SETFL, O_NONBLOCK);
  assert_int_equal(pthread_create(&thread, NULL, read_slowly, &channel.read_end), 0);
  assert_int_equal(rl_frame_write(channel.write_end, RL_FRAME_SOURCE, text, sizeof text, &err), -1);
  assert_int_equal(err.code, RL_WIRE_TIMEOUT);
  close(channel.write_end); /* the reader sees the end of the file */
  pthread_join(thread, NULL);
  channel.write_end = dup(channel.read_end); /* so that close_pipe can close both */
  close_pipe(&channel);
}

static void malformed_headers_are_refused(void **state) {
  (void)state;
  static const struct {
    int version, type;
    uint32_t length;
    rl_wire_code code;
  } cases[] = {
      {RL_WIRE_VERSION + 1, RL_FRAME_DONE, 0, RL_WIRE_BAD_VERSION},
      {RL_WIRE_VERSION, 0, 0, RL_WIRE_UNKNOWN_TYPE},
      {RL_WIRE_VERSION, RL_FRAME_TYPE_COUNT, 0, RL_WIRE_UNKNOWN_TYPE},
      {RL_WIRE_VERSION, 255, 0, RL_WIRE_UNKNOWN_TYPE},
      {RL_WIRE_VERSION, RL_FRAME_DONE, 1, RL_WIRE_FRAME_TOO_LARGE},
      {RL_WIRE_VERSION, RL_FRAME_EPOCH, RL_WIRE_MAX_MESSAGE_BYTES + 1, RL_WIRE_FRAME_TOO_LARGE},
      {RL_WIRE_VERSION, RL_FRAME_ROWS, RL_WIRE_MAX_BULK_BYTES + 1, RL_WIRE_FRAME_TOO_LARGE},
      {RL_WIRE_VERSION, RL_FRAME_ROWS, UINT32_MAX, RL_WIRE_FRAME_TOO_LARGE},
      {RL_WIRE_VERSION, RL_FRAME_EPOCH, 0, RL_WIRE_MALFORMED_PAYLOAD},
      {RL_WIRE_VERSION, RL_FRAME_NAME, 0, RL_WIRE_MALFORMED_PAYLOAD},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    unsigned char bytes[RL_WIRE_HEADER_BYTES];
    rl_frame frame;
    rl_error err;
    write_header(bytes, cases[i].version, cases[i].type, cases[i].length);
    assert_int_equal(rl_frame_decode(bytes, sizeof bytes, &frame, &err), -1);
    assert_int_equal(err.domain, RL_WIRE);
    assert_int_equal(err.code, cases[i].code);
  }
  unsigned char text[] = "printf from device code", reserved[RL_WIRE_HEADER_BYTES];
  rl_frame frame;
  rl_error err;
  assert_int_equal(rl_frame_decode(text, sizeof text, &frame, &err), -1);
  assert_int_equal(err.code, RL_WIRE_BAD_MAGIC);
  write_header(reserved, RL_WIRE_VERSION, RL_FRAME_DONE, 0);
  reserved[7] = 1;
  assert_int_equal(rl_frame_decode(reserved, sizeof reserved, &frame, &err), -1);
  assert_int_equal(rl_frame_decode(reserved, RL_WIRE_HEADER_BYTES - 1, &frame, &err), 0);
}

static void end_of_file_and_truncation_differ(void **state) {
  (void)state;
  static const struct {
    size_t bytes;
    rl_wire_code code;
  } cases[] = {{0, RL_WIRE_CLOSED}, {5, RL_WIRE_TRUNCATED}, {14, RL_WIRE_TRUNCATED}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    test_pipe channel = open_pipe();
    unsigned char bytes[16] = {0};
    rl_frame frame;
    rl_error err;
    write_header(bytes, RL_WIRE_VERSION, RL_FRAME_NAME, 4);
    assert_int_equal(write(channel.write_end, bytes, cases[i].bytes), cases[i].bytes);
    assert_int_equal(rl_frame_read(channel.reader, 20, &frame, &err), -1);
    assert_int_equal(err.code, RL_WIRE_TIMEOUT);
    close(channel.write_end);
    channel.write_end = -1;
    assert_int_equal(rl_frame_read(channel.reader, 1000, &frame, &err), -1);
    assert_int_equal(err.code, cases[i].code);
    close_pipe(&channel);
  }
}

static int receive_payload(rl_frame_type type, const char *text, size_t length, rl_records *records, rl_error *err) {
  rl_frame frame = {.type = type, .length = (uint32_t)length, .payload = (const unsigned char *)text};
  return rl_records_receive(&frame, records, err);
}

static void malformed_records_are_refused(void **state) {
  (void)state;
  rl_records records = {0};
  rl_error err;
  static const struct {
    rl_frame_type type;
    const char *text;
  } cases[] = {
      {RL_FRAME_MEASUREMENT, "{\"name\":\"a_ms\",\"value\":1}"}, /* without a reason */
      {RL_FRAME_MEASUREMENT, "{\"name\":\"a_ms\",\"value\":1,\"reason\":\"\",\"more\":1}"},
      {RL_FRAME_MEASUREMENT, "{\"name\":\"a_ms\",\"value\":\"1\",\"reason\":\"\"}"},
      {RL_FRAME_MEASUREMENT, "{\"name\":\"a_ms\",\"value\":1,\"reason\":\"\"} x"},
      {RL_FRAME_EPOCH, "{}"},
      {RL_FRAME_INSTRUCTION,
       "{\"ordinal\":0,\"offset\":-16,\"opcode\":\"\",\"sass\":\"\",\"file\":\"\",\"line\":0,\"counts\":{},\"reason\":\"\"}"},
      {RL_FRAME_INSTRUCTION,
       "{\"ordinal\":0,\"offset\":0,\"opcode\":\"\",\"sass\":\"\",\"file\":\"\",\"line\":0,\"counts\":7,\"reason\":\"\"}"},
      {RL_FRAME_PHASE,
       "{\"ordinal\":0,\"position\":-1,\"name\":\"a\",\"phase\":\"\",\"steps\":1,\"blocks\":1,\"mean_us\":1,"
       "\"min_us\":1,\"max_us\":1,\"share_ratio\":1}"},
      {RL_FRAME_POINT, "{\"ordinal\":0,\"name\":\"a\",\"x\":null,\"value\":1}"}, /* x is required */
      {RL_FRAME_KERNEL, "[]"},
      {RL_FRAME_METADATA, "{"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(receive_payload(cases[i].type, cases[i].text, strlen(cases[i].text), &records, &err), -1);
    assert_int_equal(err.domain, RL_WIRE);
    assert_int_equal(err.code, RL_WIRE_MALFORMED_PAYLOAD);
  }
  assert_int_equal(receive_payload(RL_FRAME_NAME, "a\0b", 3, &records, &err), -1);
  assert_int_equal(receive_payload(RL_FRAME_NAME, "kernel", 6, &records, &err), 1);
  rl_activity_row row = {.kind = RL_ACTIVITY_KERNEL, .name = 0};
  assert_int_equal(receive_payload(RL_FRAME_ROWS, (char *)&row, sizeof row, &records, &err), 1);
  assert_int_equal(receive_payload(RL_FRAME_ROWS, (char *)&row, sizeof row - 1, &records, &err), -1);
  row.name = 1; /* only name 0 was received */
  assert_int_equal(receive_payload(RL_FRAME_ROWS, (char *)&row, sizeof row, &records, &err), -1);
  static const rl_activity_row impossible[] = {{.kind = RL_ACTIVITY_KIND_COUNT},
                                               {.bytes = (uint64_t)INT64_MAX + 1},
                                               {.start_ns = INT64_MAX / 2},
                                               {.end_ns = INT64_MAX / 2},
                                               {.start_ns = INT64_MIN},
                                               {.end_ns = INT64_MIN / 2},
                                               {.source_memory = RL_MEMORY_KIND_COUNT},
                                               {.destination_memory = UINT8_MAX},
                                               {.unknown = RL_UNKNOWN_ALL + 1}};
  for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
    assert_int_equal(receive_payload(RL_FRAME_ROWS, (const char *)&impossible[i], sizeof row, &records, &err), -1);
  assert_int_equal(records.row_count, 1);
  assert_int_equal(receive_payload(RL_FRAME_PROGRESS, "{}", 2, &records, &err), 0);
  rl_records_clear(&records);
}

static void a_message_with_line_ends_still_arrives(void **state) {
  (void)state;
  test_pipe channel = open_pipe();
  rl_failure failure = {.domain = "cuda", .code = 700, .message = "an illegal\nmemory access\twas \"met\""}, received = {0};
  rl_frame frame;
  rl_error err;
  assert_int_equal(rl_frame_write_json(channel.write_end, RL_FRAME_FAILED, rl_failure_fields, &failure, &err), 0);
  assert_int_equal(rl_frame_read(channel.reader, 1000, &frame, &err), 0);
  assert_int_equal(
      rl_fields_parse(rl_failure_fields, (const char *)frame.payload, frame.length, &received, sizeof received, &err), 0);
  assert_string_equal(received.message, "an illegal memory access was \"met\"");
  close_pipe(&channel);
}

/* A compiler's log, names and failures can quote posted code, which need not be UTF-8. */
static void invalid_utf8_is_replaced(void **state) {
  (void)state;
  test_pipe channel = open_pipe();
  rl_failure failure = {.domain = "cuda", .code = 1, .message = "no kernel \xff\xc3\xa9"}, received = {0};
  static const rl_frame_type types[] = {RL_FRAME_LOG, RL_FRAME_NAME};
  rl_frame frame;
  rl_error err;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    assert_int_equal(rl_frame_write(channel.write_end, types[i], "a\xff\n\xc3\xa9\xc3", 6, &err), 0);
    assert_int_equal(rl_frame_read(channel.reader, 1000, &frame, &err), 0);
    assert_string_equal((const char *)frame.payload, "a?\n\xc3\xa9?");
  }
  assert_int_equal(rl_frame_write_json(channel.write_end, RL_FRAME_FAILED, rl_failure_fields, &failure, &err), 0);
  assert_int_equal(rl_frame_read(channel.reader, 1000, &frame, &err), 0);
  assert_int_equal(
      rl_fields_parse(rl_failure_fields, (const char *)frame.payload, frame.length, &received, sizeof received, &err), 0);
  assert_string_equal(received.message, "no kernel ?\xc3\xa9");
  close_pipe(&channel);
}

static void a_closed_pipe_is_an_error_not_a_signal(void **state) {
  (void)state;
  test_pipe channel = open_pipe();
  rl_error err;
  close(channel.read_end);
  channel.read_end = dup(channel.write_end); /* so that close_pipe can close both */
  assert_int_equal(rl_frame_write(channel.write_end, RL_FRAME_CANCEL, NULL, 0, &err), -1);
  assert_int_equal(err.code, RL_WIRE_CLOSED);
  assert_int_equal(rl_frame_write(channel.write_end, RL_FRAME_ROWS, "", 0, &err), -1);
  close_pipe(&channel);
}

int main(void) {
  signal(SIGPIPE, SIG_IGN);
  const struct CMUnitTest tests[] = {cmocka_unit_test(records_arrive_unchanged),
                                     cmocka_unit_test(metrics_are_validated),
                                     cmocka_unit_test(frames_may_be_split_anywhere),
                                     cmocka_unit_test(frames_larger_than_the_pipe_are_transferred),
                                     cmocka_unit_test(a_slow_reader_ends_the_write),
                                     cmocka_unit_test(malformed_headers_are_refused),
                                     cmocka_unit_test(end_of_file_and_truncation_differ),
                                     cmocka_unit_test(malformed_records_are_refused),
                                     cmocka_unit_test(a_message_with_line_ends_still_arrives),
                                     cmocka_unit_test(invalid_utf8_is_replaced),
                                     cmocka_unit_test(a_closed_pipe_is_an_error_not_a_signal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
