/* Implements protobuf.h. Integers are little-endian base-128 varints. The length of a message is written when the message
 * ends. */
#include "api/export/protobuf.h"

#include <string.h>

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, LENGTH_BYTES = 4, MAX_VARINT_BYTES = 10 };

static void put_varint(rl_buffer *out, uint64_t value) {
  unsigned char bytes[MAX_VARINT_BYTES];
  size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = (unsigned char)(value | 0x80);
  bytes[count++] = (unsigned char)value;
  rl_buffer_append(out, bytes, count);
}

static void put_tag(rl_buffer *out, uint32_t field, uint32_t wire_type) { put_varint(out, field << 3 | wire_type); }

void rl_proto_uint(rl_buffer *out, uint32_t field, uint64_t value) {
  put_tag(out, field, WIRE_VARINT);
  put_varint(out, value);
}

void rl_proto_fixed64(rl_buffer *out, uint32_t field, uint64_t value) {
  unsigned char bytes[sizeof value];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(value >> 8 * i);
  put_tag(out, field, WIRE_FIXED64);
  rl_buffer_append(out, bytes, sizeof bytes);
}

void rl_proto_text(rl_buffer *out, uint32_t field, const char *text) {
  const size_t length = strlen(text);
  put_tag(out, field, WIRE_LENGTH);
  put_varint(out, length);
  rl_buffer_append(out, text, length);
}

size_t rl_proto_begin(rl_buffer *out, uint32_t field) {
  static const unsigned char no_length[LENGTH_BYTES];
  put_tag(out, field, WIRE_LENGTH);
  rl_buffer_append(out, no_length, sizeof no_length);
  return out->length;
}

void rl_proto_end(rl_buffer *out, size_t message_offset) {
  if (out->failed) return;
  size_t length = out->length - message_offset;
  for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7)
    out->bytes[message_offset - LENGTH_BYTES + (size_t)i] = (char)((length & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}
