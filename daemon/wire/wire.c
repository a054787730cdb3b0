/* Implements the frames of wire.h. A table contains the name and the size limits of each frame type. A reader has a buffer for
 * the bytes that were received after the last frame. */
#include "wire/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames contain structs as in memory, which must be little-endian");

static const char magic[4] = {'R', 'L', 'F', 'W'};
enum { WRITE_TIMEOUT_MS = 5000, INITIAL_CAPACITY = 8 << 10 };

/* is_text: rl_frame_read replaces invalid UTF-8 in the payload. */
static const struct {
  const char *name;
  uint32_t min_bytes, max_bytes;
  bool is_text;
} frame_descriptions[RL_FRAME_TYPE_COUNT] = {
    [RL_FRAME_HELLO] = {"HELLO", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_REQUEST] = {"REQUEST", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_CANCEL] = {"CANCEL", 0, 0},
    [RL_FRAME_METADATA] = {"METADATA", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_PROGRESS] = {"PROGRESS", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_EPOCH] = {"EPOCH", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_SAMPLE] = {"SAMPLE", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_MEASUREMENT] = {"MEASUREMENT", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_KERNEL] = {"KERNEL", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_PHASE] = {"PHASE", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_METRIC] = {"METRIC", sizeof(rl_kernel_metric), RL_WIRE_MAX_BULK_BYTES},
    [RL_FRAME_INSTRUCTION] = {"INSTRUCTION", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_POINT] = {"POINT", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_NAME] = {"NAME", 1, RL_WIRE_MAX_MESSAGE_BYTES, .is_text = true},
    [RL_FRAME_ROWS] = {"ROWS", sizeof(rl_activity_row), RL_WIRE_MAX_BULK_BYTES},
    [RL_FRAME_SOURCE] = {"SOURCE", 2, RL_WIRE_MAX_BULK_BYTES},
    [RL_FRAME_LOG] = {"LOG", 1, RL_WIRE_MAX_MESSAGE_BYTES, .is_text = true},
    [RL_FRAME_DONE] = {"DONE", 0, 0},
    [RL_FRAME_UNAVAILABLE] = {"UNAVAILABLE", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_FAILED] = {"FAILED", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_CANCELLED] = {"CANCELLED", 0, 0},
    [RL_FRAME_RELEASE] = {"RELEASE", 0, 0},
    [RL_FRAME_RELEASED] = {"RELEASED", 0, 0},
    [RL_FRAME_HEARTBEAT] = {"HEARTBEAT", 2, RL_WIRE_MAX_MESSAGE_BYTES},
    [RL_FRAME_OPEN] = {"OPEN", 0, 0},
};

const char *rl_frame_name(rl_frame_type type) { return frame_descriptions[type].name; }

const rl_field rl_hello_fields[] = {
    RL_FIELD(rl_hello, protocol, RL_FIELD_INT, .required = true), RL_FIELD(rl_hello, program, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_hello, commit, RL_FIELD_TEXT, .required = true),  RL_FIELD(rl_hello, device, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_hello, role, RL_FIELD_TEXT, .required = true),    RL_FIELD(rl_hello, usable, RL_FIELD_BOOL, .required = true),
    RL_FIELD(rl_hello, reason, RL_FIELD_TEXT, .required = true),  RL_FIELD(rl_hello, properties, RL_FIELD_JSON),
    RL_FIELD(rl_hello, unsupported_engines, RL_FIELD_NAMES),      {0}};

const rl_field rl_request_fields[] = {RL_FIELD(rl_request, workload, RL_FIELD_TEXT, .required = true),
                                      RL_FIELD(rl_request, params, RL_FIELD_JSON, .required = true),
                                      RL_FIELD(rl_request, pass, RL_FIELD_CHOICE, .required = true, .names = rl_pass_names),
                                      RL_FIELD(rl_request, profile, RL_FIELD_JSON),
                                      RL_FIELD(rl_request, opening_overlapped, RL_FIELD_BOOL, .required = true),
                                      {0}};

const rl_field rl_failure_fields[] = {RL_FIELD(rl_failure, domain, RL_FIELD_TEXT, .required = true),
                                      RL_FIELD(rl_failure, code, RL_FIELD_INT, .required = true),
                                      RL_FIELD(rl_failure, message, RL_FIELD_TEXT, .required = true),
                                      RL_FIELD(rl_failure, has_executed_source, RL_FIELD_BOOL, .required = true),
                                      {0}};

const rl_field rl_heartbeat_fields[] = {
    RL_FIELD(rl_heartbeat, stage, RL_FIELD_TEXT, .required = true),
    RL_FIELD(rl_heartbeat, idle_ms, RL_FIELD_INT, .required = true, .minimum = 0, .maximum = 9e15),
    RL_FIELD(rl_heartbeat, limit_ms, RL_FIELD_INT, .required = true, .minimum = 0, .maximum = 9e15),
    {0}};

/* --- reading -------------------------------------------------------------------------------------------------- */

int64_t rl_frame_decode(const unsigned char *data, size_t size, rl_frame *frame, rl_error *err) {
  if (size < RL_WIRE_HEADER_BYTES) return 0;
  uint32_t length;
  memcpy(&length, data + 8, sizeof length);
  unsigned type = data[5];
  if (memcmp(data, magic, sizeof magic) != 0)
    return rl_fail(err, RL_WIRE, RL_WIRE_BAD_MAGIC, "the bytes received are not a frame (wrong magic)");
  if (data[4] != RL_WIRE_VERSION)
    return rl_fail(err, RL_WIRE, RL_WIRE_BAD_VERSION, "the frame has version %u, this program speaks %d", data[4],
                   RL_WIRE_VERSION);
  if (type == 0 || type >= RL_FRAME_TYPE_COUNT || data[6] != 0 || data[7] != 0)
    return rl_fail(err, RL_WIRE, RL_WIRE_UNKNOWN_TYPE, "the frame has the unknown type %u", type);
  if (length > frame_descriptions[type].max_bytes)
    return rl_fail(err, RL_WIRE, RL_WIRE_FRAME_TOO_LARGE, "a %s frame has %u bytes, more than %u", frame_descriptions[type].name,
                   length, frame_descriptions[type].max_bytes);
  if (length < frame_descriptions[type].min_bytes)
    return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "a %s frame has %u bytes, fewer than %u",
                   frame_descriptions[type].name, length, frame_descriptions[type].min_bytes);
  if (size - RL_WIRE_HEADER_BYTES < length) return 0;
  *frame = (rl_frame){.type = (rl_frame_type)type, .length = length, .payload = data + RL_WIRE_HEADER_BYTES};
  return RL_WIRE_HEADER_BYTES + (int64_t)length;
}

struct rl_frame_reader {
  int descriptor;
  unsigned char *data;
  size_t begin, end, capacity; /* the bytes data[begin..end) were received and not returned yet; data has capacity + 1 bytes */
  unsigned char saved_byte;    /* the byte that was at data[begin] before the NUL that follows the last payload replaced it */
  bool has_saved_byte;
};

rl_frame_reader *rl_frame_reader_new(int descriptor) {
  rl_frame_reader *reader = calloc(1, sizeof *reader);
  if (reader == NULL) return NULL;
  *reader = (rl_frame_reader){.descriptor = descriptor, .data = malloc(INITIAL_CAPACITY + 1), .capacity = INITIAL_CAPACITY};
  if (reader->data == NULL) {
    free(reader);
    return NULL;
  }
  return reader;
}

void rl_frame_reader_free(rl_frame_reader *reader) {
  if (reader == NULL) return;
  free(reader->data);
  free(reader);
}

/* Makes space after `end`: moves the bytes that were not returned yet to the start of the buffer, and enlarges the buffer to the
 * size of the frame that begins there. */
static int reserve_space(rl_frame_reader *reader, rl_error *err) {
  size_t unread = reader->end - reader->begin, need = INITIAL_CAPACITY;
  if (unread >= RL_WIRE_HEADER_BYTES) {
    uint32_t length;
    /* The length is not larger than the limit of the frame type, because rl_frame_decode has accepted this header */
    memcpy(&length, reader->data + reader->begin + 8, sizeof length);
    if (RL_WIRE_HEADER_BYTES + (size_t)length > need) need = RL_WIRE_HEADER_BYTES + (size_t)length;
  }
  if (reader->begin > 0) memmove(reader->data, reader->data + reader->begin, unread);
  reader->begin = 0;
  reader->end = unread;
  if (need <= reader->capacity) return 0;
  unsigned char *grown = realloc(reader->data, need + 1);
  if (grown == NULL) return rl_fail(err, RL_WIRE, RL_WIRE_MEMORY_LIMIT, "out of memory for a frame of %zu bytes", need);
  reader->data = grown;
  reader->capacity = need;
  return 0;
}

/* Waits until poll(2) reports `events` for the descriptor. Returns 1; returns 0 at the deadline (rl_monotonic_ns; negative: no
 * deadline). */
static int wait_until_ready(int descriptor, short events, int64_t deadline_ns, rl_error *err) {
  for (;;) {
    int64_t remaining_ms = -1;
    if (deadline_ns >= 0) {
      remaining_ms = (deadline_ns - rl_monotonic_ns() + 999999) / 1000000;
      if (remaining_ms < 0) remaining_ms = 0;
    }
    struct pollfd entry = {.fd = descriptor, .events = events};
    int ready = poll(&entry, 1, remaining_ms > INT32_MAX ? INT32_MAX : (int)remaining_ms);
    if (ready >= 0) return ready;
    if (errno != EINTR) return rl_fail_errno(err, "can't wait for a frame");
  }
}

int rl_frame_read(rl_frame_reader *reader, int timeout_ms, rl_frame *frame, rl_error *err) {
  int64_t deadline_ns = timeout_ms < 0 ? -1 : rl_monotonic_ns() + (int64_t)timeout_ms * 1000000;
  if (reader->has_saved_byte) reader->data[reader->begin] = reader->saved_byte;
  reader->has_saved_byte = false;
  for (;;) {
    rl_frame found;
    int64_t used = rl_frame_decode(reader->data + reader->begin, reader->end - reader->begin, &found, err);
    if (used < 0) return -1;
    if (used > 0) {
      reader->begin += (size_t)used;
      if (frame_descriptions[found.type].is_text)
        rl_utf8_sanitize((char *)reader->data + reader->begin - found.length, found.length);
      reader->saved_byte = reader->data[reader->begin];
      reader->data[reader->begin] = '\0';
      reader->has_saved_byte = true;
      *frame = found;
      return 0;
    }
    if (reserve_space(reader, err) < 0) return -1;
    int ready = wait_until_ready(reader->descriptor, POLLIN, deadline_ns, err);
    if (ready < 0) return -1;
    if (ready == 0) return rl_fail(err, RL_WIRE, RL_WIRE_TIMEOUT, "no frame arrived within %d ms", timeout_ms);
    ssize_t received = read(reader->descriptor, reader->data + reader->end, reader->capacity - reader->end);
    if (received < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (received < 0) return rl_fail_errno(err, "can't read a frame");
    if (received == 0)
      return reader->begin == reader->end
                 ? rl_fail(err, RL_WIRE, RL_WIRE_CLOSED, "the other side closed the pipe")
                 : rl_fail(err, RL_WIRE, RL_WIRE_TRUNCATED, "the other side closed the pipe in the middle of a frame");
    reader->end += (size_t)received;
  }
}

/* --- writing -------------------------------------------------------------------------------------------------- */

int rl_frame_write(int descriptor, rl_frame_type type, const void *payload, size_t length, rl_error *err) {
  if (type <= 0 || type >= RL_FRAME_TYPE_COUNT || length < frame_descriptions[type].min_bytes ||
      length > frame_descriptions[type].max_bytes)
    return rl_fail(err, RL_WIRE, RL_WIRE_FRAME_TOO_LARGE, "a frame of type %d can't carry %zu bytes", (int)type, length);
  unsigned char header[RL_WIRE_HEADER_BYTES] = {magic[0], magic[1], magic[2], magic[3], RL_WIRE_VERSION, (unsigned char)type};
  memcpy(header + 8, &(uint32_t){(uint32_t)length}, sizeof(uint32_t));
  struct iovec parts[2] = {{header, sizeof header}, {(void *)(uintptr_t)payload, length}};
  struct iovec *part = parts;
  int count = length > 0 ? 2 : 1;
  const int64_t deadline_ns = rl_monotonic_ns() + (int64_t)WRITE_TIMEOUT_MS * 1000000;
  while (count > 0) {
    ssize_t written = writev(descriptor, part, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      int ready = wait_until_ready(descriptor, POLLOUT, deadline_ns, err);
      if (ready < 0) return -1;
      if (ready == 0) return rl_fail(err, RL_WIRE, RL_WIRE_TIMEOUT, "the other side does not read its frames");
      continue;
    }
    if (written < 0 && errno == EPIPE) return rl_fail(err, RL_WIRE, RL_WIRE_CLOSED, "the other side closed the pipe");
    if (written < 0) return rl_fail_errno(err, "can't write a frame");
    size_t skipped = (size_t)written; /* number of bytes that this call has written */
    while (count > 0 && skipped >= part->iov_len) {
      skipped -= part->iov_len;
      part++;
      count--;
    }
    if (count > 0) {
      part->iov_base = (char *)part->iov_base + skipped;
      part->iov_len -= skipped;
    }
  }
  return 0;
}

/* Replaces characters in the object's strings that the receiver would reject: control characters, for example in a library's
 * message, and invalid UTF-8, for example in a name from posted code. */
static void sanitize_strings(cJSON *object) {
  for (cJSON *item = object->child; item != NULL; item = item->next) {
    if (!cJSON_IsString(item)) continue;
    rl_utf8_sanitize(item->valuestring, strlen(item->valuestring));
    for (unsigned char *c = (unsigned char *)item->valuestring; *c != '\0'; c++)
      if (*c < 0x20 || *c == 0x7f) *c = ' ';
  }
}

int rl_frame_write_json(int descriptor, rl_frame_type type, const rl_field *table, const void *message, rl_error *err) {
  char *text = NULL;
  cJSON *object = cJSON_CreateObject();
  if (object != NULL && rl_fields_encode(table, message, object) == 0) {
    sanitize_strings(object);
    text = cJSON_PrintUnformatted(object);
  }
  cJSON_Delete(object);
  if (text == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a %s frame", frame_descriptions[type].name);
  int rc = rl_frame_write(descriptor, type, text, strlen(text), err);
  free(text);
  return rc;
}
