/* Appends fields in the wire format of protocol buffers: https://protobuf.dev/programming-guides/encoding. */
#ifndef RL_API_EXPORT_PROTOBUF_H
#define RL_API_EXPORT_PROTOBUF_H

#include "api/export/byte_buffer.h"

void rl_proto_uint(rl_buffer *out, uint32_t field, uint64_t value); /* uint32, uint64, bool and enum */
void rl_proto_fixed64(rl_buffer *out, uint32_t field, uint64_t value);
void rl_proto_text(rl_buffer *out, uint32_t field, const char *text);
/* Begins a message in a field. Returns the offset of the message in the buffer, for rl_proto_end. Reserves four bytes for the
 * length of the message, so that the message need not be moved when it ends; the message must be shorter than 256 MiB. */
size_t rl_proto_begin(rl_buffer *out, uint32_t field);
void rl_proto_end(rl_buffer *out, size_t message_offset);

#endif
