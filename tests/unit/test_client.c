/* Tests rooflinectl without a daemon: it parses event streams, prints values and tables, and makes requests from options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/client/cells.h"
#include "api/client/print.h"
#include "api/client/request.h"
#include "api/client/sse.h"
#include "base/cleanup.h"

typedef struct event_log {
  char text[512];
  int stop_after;
} event_log;

static bool append_event(void *context, const char *type, const char *data) {
  event_log *log = context;
  size_t used = strlen(log->text);
  snprintf(log->text + used, sizeof log->text - used, "[%s|%s]", type, data);
  return --log->stop_after != 0;
}

static const char stream[] =
    ": hello\n\nid: 1\nevent: state\ndata: {\"a\":1}\n\nid:2\r\nevent:progress\r\ndata:x\r\ndata: y\r\n\r\n"
    "id: 3\nevent: nothing\n\ndata: z\n\nid: 4\ndata: half";

static void test_events_do_not_depend_on_the_chunk_size(void **state) {
  (void)state;
  for (size_t chunk = 1; chunk < sizeof stream; chunk++) {
    event_log log = {.stop_after = -1};
    rl_sse parser = {.on_event = append_event, .context = &log};
    for (size_t offset = 0; offset < sizeof stream - 1; offset += chunk) {
      size_t left = sizeof stream - 1 - offset;
      assert_true(rl_sse_parse(&parser, stream + offset, left < chunk ? left : chunk));
    }
    assert_string_equal(log.text, "[state|{\"a\":1}][progress|x\ny][message|z]");
  }
}

static void test_a_callback_stops_the_parser(void **state) {
  (void)state;
  event_log log = {.stop_after = 1};
  rl_sse parser = {.on_event = append_event, .context = &log};
  assert_false(rl_sse_parse(&parser, stream, sizeof stream - 1));
  assert_string_equal(log.text, "[state|{\"a\":1}]");
  assert_string_equal(parser.id, "1");
}

static void test_reset_discards_a_partial_event(void **state) {
  (void)state;
  event_log log = {.stop_after = -1};
  rl_sse parser = {.on_event = append_event, .context = &log};
  assert_true(rl_sse_parse(&parser, "id: 7\ndata: lost", 16));
  rl_sse_reset(&parser);
  assert_true(rl_sse_parse(&parser, "data: kept\n\n", 12));
  assert_string_equal(log.text, "[message|kept]");
}

static void test_an_event_that_is_too_long_is_discarded(void **state) {
  (void)state;
  event_log log = {.stop_after = -1};
  rl_sse parser = {.on_event = append_event, .context = &log};
  assert_true(rl_sse_parse(&parser, "data: ", 6));
  for (int i = 0; i < RL_SSE_LINE_SIZE; i++) assert_true(rl_sse_parse(&parser, "a", 1));
  assert_true(rl_sse_parse(&parser, "\n\ndata: next\n\n", 14));
  assert_string_equal(log.text, "[message|next]");
}

static void test_cells_show_values_with_their_unit(void **state) {
  (void)state;
  char cell[RL_CELL_SIZE];
  assert_string_equal(rl_format_count(cell, 1234567), "1 234 567");
  assert_string_equal(rl_format_count(cell, 999), "999");
  assert_string_equal(rl_format_count(cell, 2.0 / 938), "0.0021");
  assert_string_equal(rl_format_count(cell, 0), "0");
  assert_string_equal(rl_format_count(cell, -1000), "-1 000");
  assert_string_equal(rl_format_count(cell, 18446744073709551615.0), "18 446 744 073 709 551 616");
  assert_string_equal(rl_format_count(cell, -999999999999999868928.0), "-999 999 999 999 999 868 928");
  assert_string_equal(rl_format_count(cell, 1e21), "1.000e+21");
  assert_string_equal(rl_format_count(cell, -1e100), "-1.000e+100");
  assert_string_equal(rl_format_ms(cell, 263.94), "263.9 ms");
  assert_string_equal(rl_format_ms(cell, 18400), "18.40 s");
  assert_string_equal(rl_format_ms(cell, 1234), "1.234 s");
  assert_string_equal(rl_format_ms(cell, 0), "0 ms");
  assert_string_equal(rl_format_us(cell, 1060), "1.06 ms");
  assert_string_equal(rl_format_us(cell, 1140), "1.14 ms");
  assert_string_equal(rl_format_us(cell, 999), "999.0 µs");
  assert_string_equal(rl_format_us(cell, 12.5), "12.50 µs");
  assert_string_equal(rl_format_us(cell, 0.64), "640.0 ns");
  assert_string_equal(rl_format_us(cell, 0.0005), "0.500 ns");
  assert_string_equal(rl_format_us(cell, -3623.2), "-3.62 ms");
  assert_string_equal(rl_format_us(cell, -0.64), "-640.0 ns");
  assert_string_equal(rl_format_bytes(cell, 98.2 * 1048576), "98.2 MiB");
  assert_string_equal(rl_format_bytes(cell, 1048575), "1024.0 KiB");
  assert_string_equal(rl_format_bytes(cell, 1024), "1.0 KiB");
  assert_string_equal(rl_format_bytes(cell, 1023 * 1048576.0), "1023.0 MiB");
  assert_string_equal(rl_format_bytes(cell, 1024 * 1048576.0), "1.0 GiB");
  assert_string_equal(rl_format_bytes(cell, 1536 * 1073741824.0), "1.5 TiB");
  assert_string_equal(rl_format_bytes(cell, 32768), "32.0 KiB");
  assert_string_equal(rl_format_bytes(cell, 512), "512 B");
  assert_string_equal(rl_format_operations_per_s(cell, 999e9), "999.0 GFLOP/s");
  assert_string_equal(rl_format_operations_per_s(cell, 33.07e6), "33.1 MFLOP/s");
  assert_string_equal(rl_format_bytes_per_s(cell, 4.5e12), "4.50 TB/s");
  assert_string_equal(rl_format_bytes_per_s(cell, 999e9), "999.0 GB/s");
  assert_string_equal(rl_format_bytes_per_s(cell, 41.2e6), "41.2 MB/s");
  assert_string_equal(rl_format_bytes_per_s(cell, 900), "0.9 kB/s");
  assert_string_equal(rl_format_bytes_per_s(cell, NAN), "—");
  assert_string_equal(rl_format_percent(cell, 0.98765), "98.77 %");
  assert_string_equal(rl_format_percentage_points(cell, -0.0012), "-0.12 pt");
  assert_string_equal(rl_format_factor(cell, NAN), "—");
  assert_string_equal(rl_format_count(cell, NAN), "—");
  assert_string_equal(rl_format_ms(cell, NAN), "—");
}

static void test_numbers_are_never_shortened(void **state) {
  (void)state;
  char text[512] = "";
  FILE *out = fmemopen(text, sizeof text, "w");
  rl_print_row_name(out, "Duration", 10);
  rl_print_number(out, "12.50 µs", 10);
  rl_print_number(out, "16 896 inst/cycle", 10);
  rl_print_number(out, "0123456789", 10);
  fputc('\n', out);
  rl_print_row_name(out, "Ten columns", 10);
  rl_print_number(out, "1", 3);
  fclose(out);
  assert_string_equal(text, "Duration    12.50 µs 16 896 inst/cycle 0123456789\nTen columns\n            1");
}

static void test_null_is_not_zero(void **state) {
  (void)state;
  cJSON *document = cJSON_Parse("{\"a\":{\"b\":null,\"c\":\"text\",\"d\":0}}");
  assert_true(isnan(rl_json_number(document, "a.b")));
  assert_true(isnan(rl_json_number(document, "a.c")));
  assert_true(isnan(rl_json_number(document, "a.missing.deeper")));
  assert_true(rl_json_number(document, "a.d") == 0);
  assert_string_equal(rl_json_text(document, "a.b"), "");
  cJSON_Delete(document);
}

/* Prints the results of a job, given as JSON, as rooflinectl does. comparison: NULL if there is none. */
static void print_results(char *text, size_t size, const char *job, const char *results, const char *comparison) {
  cJSON *parsed_job = cJSON_Parse(job), *parsed_results = cJSON_Parse(results),
        *parsed_comparison = comparison != NULL ? cJSON_Parse(comparison) : NULL;
  FILE *out = fmemopen(text, size, "w");
  rl_print_results(out, parsed_job, parsed_results, parsed_comparison);
  fclose(out);
  cJSON_Delete(parsed_job), cJSON_Delete(parsed_results), cJSON_Delete(parsed_comparison);
}

static void test_results_fit_80_columns(void **state) {
  (void)state;
  char text[8192];
  print_results(text, sizeof text, "{\"id\":1,\"state\":\"completed\",\"device\":\"cpu\"}",
                "{\"runs\":[{\"run\":1,\"variant\":\"fp32\",\"dataset\":\"mnist\",\"summary\":{\"epoch_ms_median\":5000,"
                "\"images_per_s\":12000}},"
                "{\"run\":2,\"variant\":\"tf32\",\"summary\":{}},"
                "{\"run\":3,\"variant\":\"fp16\",\"summary\":{\"epoch_ms_median\":2500,\"unavailable\":{\"peak_memory_bytes\":"
                "\"why\"}}}]}",
                "{\"items\":[{\"baseline\":{\"variant\":\"fp32\"},\"candidate\":{\"run\":2},\"speedup_ratio\":null},"
                "{\"baseline\":{\"variant\":\"fp32\"},\"candidate\":{\"run\":3},\"speedup_ratio\":2}]}");
  assert_non_null(strstr(text, "2.00×"));
  assert_non_null(strstr(text, "— fp16, peak memory: why"));
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    int columns = 0;
    for (const char *byte = line; *byte != '\0'; byte++) columns += ((unsigned char)*byte & 0xc0) != 0x80;
    assert_true(columns <= 80);
  }
}

/* With a loss scale, skipped steps are usual. */
static void test_steps_skipped_without_a_loss_scale_are_named(void **state) {
  (void)state;
  char text[8192];
  print_results(
      text, sizeof text, "{\"id\":1,\"state\":\"completed\",\"device\":\"gpu0\"}",
      "{\"runs\":[{\"run\":1,\"variant\":\"fp16\",\"dataset\":\"mnist\",\"summary\":{},\"epochs\":[{\"loss_scale\":32768,"
      "\"skipped_steps\":1}]},"
      "{\"run\":2,\"variant\":\"tf32\",\"summary\":{},\"epochs\":[{\"loss_scale\":null,\"skipped_steps\":5},"
      "{\"loss_scale\":null,\"skipped_steps\":938}]},"
      "{\"run\":3,\"variant\":\"fp32\",\"summary\":{},\"epochs\":[{\"loss_scale\":null,\"skipped_steps\":0}]}]}",
      NULL);
  assert_non_null(strstr(text, "! tf32: steps skipped, because a gradient was not finite or too large: 943\n"));
  assert_null(strstr(text, "fp16: steps"));
  assert_null(strstr(text, "fp32: steps"));
}

static void test_options_become_fields_of_a_training_job(void **state) {
  (void)state;
  char *argv[] = {"--precisions", "fp32,fp16", "--epochs=3", "--engine", "blas"};
  RL_CLEANUP(rl_free_text) char *body = NULL;
  rl_error err;
  assert_int_equal(rl_request_from_arguments(5, argv, &body, &err), 0);
  assert_string_equal(body, "{\"precisions\":[\"fp32\",\"fp16\"],\"epochs\":3,\"engine\":\"blas\",\"kind\":\"train\"}");
}

static void test_option_kind_selects_the_kind_of_job(void **state) {
  (void)state;
  char *argv[] = {"--samples=5", "--kind", "ceilings"};
  RL_CLEANUP(rl_free_text) char *body = NULL;
  rl_error err;
  assert_int_equal(rl_request_from_arguments(3, argv, &body, &err), 0);
  assert_string_equal(body, "{\"samples\":5,\"kind\":\"ceilings\"}");
}

static void test_options_become_fields_of_a_kernel_job(void **state) {
  (void)state;
  char *argv[] = {"--kernel", "bias_gelu", "--shape=rows=4,columns=8", "--dtype", "bf16"};
  RL_CLEANUP(rl_free_text) char *body = NULL;
  rl_error err;
  assert_int_equal(rl_request_from_arguments(5, argv, &body, &err), 0);
  assert_string_equal(body,
                      "{\"kernel\":\"bias_gelu\",\"shape\":{\"rows\":4,\"columns\":8},\"dtype\":\"bf16\",\"kind\":\"kernel\"}");
}

static char *make_body(int count, char **argv) {
  char *body = NULL;
  rl_error err = {0};
  if (rl_request_from_arguments(count, argv, &body, &err) != 0) fail_msg("%s", err.message);
  return body;
}

static void test_options_of_counters_become_fields(void **state) {
  (void)state;
  char *argv[] = {"--kernel=relu",
                  "--set",
                  "full",
                  "--sections",
                  "Occupancy,SpeedOfLight",
                  "--metrics=sm__inst_executed.sum",
                  "--build",
                  "plain",
                  "--kernels",
                  "*wgrad*",
                  "--launch",
                  "0"};
  RL_CLEANUP(rl_free_text) char *body = make_body(12, argv);
  assert_string_equal(body,
                      "{\"kernel\":\"relu\",\"set\":\"full\",\"sections\":[\"Occupancy\",\"SpeedOfLight\"],"
                      "\"metrics\":[\"sm__inst_executed.sum\"],\"build\":\"plain\",\"kernels\":\"*wgrad*\",\"launch\":0,"
                      "\"kind\":\"kernel\"}");
}

static void test_files_become_fields_of_a_source_job(void **state) {
  (void)state;
  char name[] = "/tmp/rooflinectl-XXXXXX";
  int file = mkstemp(name);
  assert_int_equal(write(file,
                         "\x7f"
                         "ELF\0",
                         5),
                   5);
  close(file);
  char *argv[] = {"--binary",
                  name,
                  "--dynamic-shared-bytes=64",
                  "--variants",
                  "[{},{\"fast_math\":true}]",
                  "--model=bytes=32,operations=4",
                  "--expected={\"argument\":0,\"values\":\"AAAAQA==\"}"};
  RL_CLEANUP(rl_free_text) char *body = make_body(7, argv);
  char expected[512];
  snprintf(expected, sizeof expected,
           "{\"binary\":\"f0VMRgA=\",\"dynamic_shared_bytes\":64,\"variants\":[{},{\"fast_math\":true}],"
           "\"model\":{\"bytes\":32,\"operations\":4},\"expected\":{\"argument\":0,\"values\":\"AAAAQA==\"},"
           "\"name\":\"%s\",\"kind\":\"source\"}",
           strrchr(name, '/') + 1);
  assert_string_equal(body, expected);
  char *named[] = {"--name=mine", "--binary", name};
  RL_CLEANUP(rl_free_text) char *other = make_body(3, named);
  assert_string_equal(other, "{\"name\":\"mine\",\"binary\":\"f0VMRgA=\",\"kind\":\"source\"}");
  char *code[] = {"--code", name}; /* the file is not text */
  char *none = NULL;
  rl_error err = {0};
  assert_int_equal(rl_request_from_arguments(2, code, &none, &err), -1);
  assert_non_null(strstr(err.message, "contains a NUL byte"));
  unlink(name);
}

/* rooflinectl sends an item uncut even if it is longer than any name of the API, so that the daemon refuses it. */
static void test_long_items_of_lists_are_not_cut(void **state) {
  (void)state;
  enum { LONG = 200 };
  char item[LONG + 1], options[LONG + 32], arguments[LONG + 32], sizes[LONG + 32];
  memset(item, 'x', LONG), item[LONG] = '\0';
  snprintf(options, sizeof options, "--options=-DA=%s,-lineinfo", item);
  snprintf(arguments, sizeof arguments, "--arguments=fp32[4]=%s,int32=4", item);
  snprintf(sizes, sizeof sizes, "--shape=%s=1,n=2", item);
  char *argv[] = {options, arguments, sizes};
  RL_CLEANUP(rl_free_text) char *body = make_body(3, argv);
  cJSON *request = cJSON_Parse(body);
  assert_int_equal(strlen(rl_json_text(rl_json_at(request, "options")->child, "")), LONG + 4);
  assert_int_equal(strlen(rl_json_text(rl_json_at(request, "arguments")->child, "buffer.init")), LONG);
  assert_int_equal(strlen(rl_json_at(request, "shape")->child->string), LONG);
  cJSON_Delete(request);
}

static void test_a_kernel_job_is_printed_as_a_table(void **state) {
  (void)state;
  char text[4096];
  print_results(
      text, sizeof text, "{\"id\":1,\"kind\":\"kernel\",\"state\":\"completed\",\"device\":\"cpu\"}",
      "{\"runs\":[{\"run\":1,\"workload\":\"relu\",\"variant\":\"scalar\",\"engine\":\"cpu\",\"params\":{\"dtype\":\"fp16\","
      "\"shape\":{\"n\":70001},"
      "\"samples\":20},\"measurements\":[{\"pass\":\"timing\",\"name\":\"time_cold_us_median\",\"value\":12.5,\"reason\":null},"
      "{\"pass\":\"timing\",\"name\":\"achieved_bytes_per_s\",\"value\":2.24e10,\"reason\":null},"
      "{\"pass\":\"timing\",\"name\":\"relative_error\",\"value\":0,\"reason\":null},"
      "{\"pass\":\"timing\",\"name\":\"time_warm_us_min\",\"value\":null,\"reason\":\"no clock\"}]}]}",
      NULL);
  assert_non_null(strstr(text, "relu fp16 n=70001 · engine cpu · samples: 20"));
  assert_non_null(strstr(text, "12.50 µs"));
  assert_non_null(strstr(text, "22.4 GB/s"));
  assert_non_null(strstr(text, "relative error                  0\n"));
  assert_non_null(strstr(text, "— scalar, warm, min: no clock"));
  assert_null(strstr(text, "epoch"));
}

#define CAUSE                                                                                                               \
  "Likely cause: the ceilings of job 1 are too low, because other processes had the GPU open when the measurement began "   \
  "or ended (pid 7 (1 MiB)). Measure the ceilings again while nothing else runs (rooflinectl run --kind ceilings --device " \
  "cpu), then run this job again."
#define FLOOR_RUN(VARIANT, US, CAUSE)                                                      \
  "{\"variant\":\"" VARIANT "\",\"engine\":\"cpu\",\"summary\":{\"suspect_cause\":" CAUSE  \
  "},\"samples\":["                                                                        \
  "{\"suspect\":false,\"suspect_reason\":null},{\"suspect\":true,\"suspect_reason\":\"" US \
  " µs with a cold cache is faster than its floor of 900.0 µs: 9e7 bytes from memory at 100.0 GB/s\"}]}"

static int count_columns(const char *line) {
  int columns = 0;
  for (; *line != '\0'; line++) columns += ((unsigned char)*line & 0xc0) != 0x80;
  return columns;
}

/* Runs with the same cause print it once. No line is wider than a terminal. */
static void test_a_cause_of_suspect_runs_is_printed_once(void **state) {
  (void)state;
  cJSON *runs = cJSON_Parse(
      "[" FLOOR_RUN("scalar", "800.0", "\"" CAUSE "\"") "," FLOOR_RUN("vector", "700.0", "\"" CAUSE "\"") "," FLOOR_RUN(
          "wide", "600.0", "\"Check it.\"") "," FLOOR_RUN("old", "500.0", "null") "]");
  char text[4096], *rest = NULL;
  FILE *out = fmemopen(text, sizeof text, "w");
  rl_print_suspect_runs(out, runs);
  fclose(out);
  assert_non_null(
      strstr(text, "! scalar is suspect (1 of 2 samples): 800.0 µs with a cold cache is faster than\n  its floor of"));
  assert_non_null(strstr(text, "! old is suspect (1 of 2 samples): 500.0 µs"));
  const char *cause = strstr(text, "  Likely cause: the ceilings of job 1");
  assert_true(cause != NULL && strstr(cause + 3, "Likely cause") == NULL);
  assert_non_null(strstr(cause, "\n  Check it.\n"));
  for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
    assert_in_range(count_columns(line), 3, 80);
  cJSON_Delete(runs);
}

/* The run of a variant; its samples with a cold and a warm cache are suspect: true or false. */
#define LAYER_RUN(VARIANT, US, COLD_SUSPECT, WARM_SUSPECT)              \
  "{\"variant\":\"" VARIANT                                             \
  "\",\"engine\":\"cuda\",\"summary\":{\"suspect\":true},\"samples\":[" \
  "{\"mode\":\"cold\",\"suspect\":" COLD_SUSPECT                        \
  "},"                                                                  \
  "{\"mode\":\"warm\",\"suspect\":" WARM_SUSPECT                        \
  "}],\"measurements\":["                                               \
  "{\"pass\":\"timing\",\"name\":\"time_cold_us_median\",\"value\":" US "}]}"

static void test_the_gain_of_a_layer_is_over_the_variant_that_it_changes(void **state) {
  (void)state;
  cJSON *runs = cJSON_Parse(
      "[" LAYER_RUN("baseline", "1000", "false", "false") "," LAYER_RUN("fused", "800", "false", "true") "," LAYER_RUN(
          "streams", "900", "true", "false") "," LAYER_RUN("tuned", "600", "false", "true") "," LAYER_RUN("best", "540", "false",
                                                                                                          "false") "]");
  char text[4096];
  FILE *out = fmemopen(text, sizeof text, "w");
  rl_print_layer_runs(out, runs);
  fclose(out);
  assert_non_null(strstr(text, "  20.00 % baseline ")); /* there is no graph, the base of fused; a warm time does not count */
  assert_non_null(strstr(text, "! -12.50 %    fused "));
  assert_non_null(strstr(text, "  25.00 %    fused ")); /* tuned: streams are not its base */
  assert_non_null(strstr(text, "  10.00 %    tuned "));
  cJSON_Delete(runs);
}

static void test_bad_options_are_refused(void **state) {
  (void)state;
  char *wrong[][3] = {{"--epochs", "many", NULL},
                      {"--epochs", NULL, NULL},
                      {"--colour", "red", NULL},
                      {"--seed=1", "--seed=2", NULL},
                      {"--shape", "4", NULL},
                      {"--shape", "n=", NULL},
                      {"--shape", "n=4,", NULL},
                      {"--variants", "[{}", NULL},
                      {"--variants", "[{}] and more", NULL},
                      {"--expected", "/does/not/exist", NULL},
                      {"--binary", "/does/not/exist", NULL},
                      {"--arguments", "fp32[4],", NULL}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    RL_CLEANUP(rl_free_text) char *body = NULL;
    rl_error err = {0};
    assert_int_equal(rl_request_from_arguments(wrong[i][1] == NULL ? 1 : 2, wrong[i], &body, &err), -1);
    assert_int_equal(err.domain, RL_INPUT);
    assert_null(body);
  }
}

static void test_a_unit_stays_with_its_number(void **state) {
  (void)state;
  int lines_with_msgs = 0;
  for (int first = 1; first < 80; first++) { /* length of the first word: the end of the line comes before each later word once */
    char text[160], *printed = NULL;
    size_t size = 0;
    snprintf(text, sizeof text, "%.*s 53.2 %% for 12.5 µs of 5 msgs", first,
             "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    FILE *out = open_memstream(&printed, &size);
    rl_print_wrapped(out, 0, text);
    fclose(out);
    assert_null(strstr(printed, "\n%"));
    assert_null(strstr(printed, "\nµs"));
    lines_with_msgs += strstr(printed, "\nmsgs") != NULL;
    for (char *line = strtok(printed, "\n"); line != NULL; line = strtok(NULL, "\n")) assert_in_range(strlen(line), 1, 82);
    free(printed);
  }
  assert_in_range(lines_with_msgs, 1, 80);
}

static void test_a_report_prints_values_in_their_units(void **state) {
  (void)state;
  static const struct {
    const char *unit, *value, *printed;
  } rows[] = {{"ratio", "0.062", "6.20 %"},       {"%", "6.2", "6.20 %"},    {"sample", "956", "956 sample"},
              {"sector", "2048", "2 048 sector"}, {"byte", "2048", "2 KiB"}, {"cycle/inst", "23.43", "23.43 cycle/inst"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char report[512], *text = NULL;
    size_t size = 0;
    snprintf(report, sizeof report,
             "{\"kernels\":[{\"name\":\"k\",\"sections\":[{\"tables\":[{\"rows\":[{\"name\":\"Row\","
             "\"unit\":\"%s\",\"value\":%s}]}]}]}]}",
             rows[i].unit, rows[i].value);
    cJSON *document = cJSON_Parse(report);
    FILE *out = open_memstream(&text, &size);
    rl_print_report(out, document, NULL);
    fclose(out);
    assert_non_null(strstr(text, rows[i].printed));
    free(text);
    cJSON_Delete(document);
  }
}

static void test_a_report_cuts_long_units(void **state) {
  (void)state;
  static const char row[] = "{\"name\":\"Row\",\"unit\":\"instructions per second of it\",\"value\":-1e100}";
  char report[512], *text = NULL;
  size_t size = 0;
  snprintf(report, sizeof report, "{\"kernels\":[{\"name\":\"k\",\"sections\":[{\"tables\":[{\"rows\":[%s]}]}]}]}", row);
  cJSON *document = cJSON_Parse(report);
  FILE *out = open_memstream(&text, &size);
  rl_print_report(out, document, NULL);
  fclose(out);
  assert_non_null(strstr(text, " -1.000e+100 instructions per second"));
  assert_null(strstr(text, "second of it")); /* longer than a cell */
  assert_null(strstr(text, "commit"));       /* unknown */
  free(text);
  cJSON_Delete(document);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_events_do_not_depend_on_the_chunk_size),
      cmocka_unit_test(test_a_callback_stops_the_parser),
      cmocka_unit_test(test_reset_discards_a_partial_event),
      cmocka_unit_test(test_an_event_that_is_too_long_is_discarded),
      cmocka_unit_test(test_cells_show_values_with_their_unit),
      cmocka_unit_test(test_numbers_are_never_shortened),
      cmocka_unit_test(test_null_is_not_zero),
      cmocka_unit_test(test_results_fit_80_columns),
      cmocka_unit_test(test_steps_skipped_without_a_loss_scale_are_named),
      cmocka_unit_test(test_options_become_fields_of_a_training_job),
      cmocka_unit_test(test_option_kind_selects_the_kind_of_job),
      cmocka_unit_test(test_options_become_fields_of_a_kernel_job),
      cmocka_unit_test(test_options_of_counters_become_fields),
      cmocka_unit_test(test_files_become_fields_of_a_source_job),
      cmocka_unit_test(test_long_items_of_lists_are_not_cut),
      cmocka_unit_test(test_a_kernel_job_is_printed_as_a_table),
      cmocka_unit_test(test_a_unit_stays_with_its_number),
      cmocka_unit_test(test_a_report_prints_values_in_their_units),
      cmocka_unit_test(test_a_report_cuts_long_units),
      cmocka_unit_test(test_a_cause_of_suspect_runs_is_printed_once),
      cmocka_unit_test(test_the_gain_of_a_layer_is_over_the_variant_that_it_changes),
      cmocka_unit_test(test_bad_options_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
