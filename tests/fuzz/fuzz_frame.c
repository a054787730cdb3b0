/* Fuzzes the daemon's decoder of a worker's output: frames, records and messages. */
#include <stdlib.h>

#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void parse_message(const rl_frame *frame, const rl_field *table, void *out, size_t out_size) {
  rl_error err;
  (void)rl_fields_parse(table, (const char *)frame->payload, frame->length, out, out_size, &err);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  rl_records records = {.limit_bytes = 1 << 20};
  rl_error err;
  rl_frame frame;
  int64_t used;
  for (; (used = rl_frame_decode(data, size, &frame, &err)) > 0; data += used, size -= (size_t)used) {
    if (frame.length > size) abort();
    rl_hello hello = {0};
    rl_progress progress = {0};
    rl_failure failure = {0};
    switch (frame.type) {
      case RL_FRAME_HELLO: parse_message(&frame, rl_hello_fields, &hello, sizeof hello); break;
      case RL_FRAME_PROGRESS: parse_message(&frame, rl_progress_fields, &progress, sizeof progress); break;
      case RL_FRAME_UNAVAILABLE:
      case RL_FRAME_FAILED: parse_message(&frame, rl_failure_fields, &failure, sizeof failure); break;
      default:
        if (rl_records_receive(&frame, &records, &err) < 0)
          size = (size_t)used; /* ends the loop, because the daemon reads nothing more from such a worker */
    }
  }
  for (size_t i = 0; i < records.row_count; i++)
    if (records.rows[i].name >= records.name_count) abort();
  if (records.bytes > records.limit_bytes) abort();
  rl_records_clear(&records);
  return 0;
}
