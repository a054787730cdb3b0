/* The head of a fatbin (fatbinary_section.h of CUDA): entries with PTX and cubins follow it. */
#ifndef RL_KERNELS_SOURCE_FATBIN_H
#define RL_KERNELS_SOURCE_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct rl_fatbin_head {
  uint32_t magic;
  uint16_t version, head_bytes;
  uint64_t body_bytes; /* of the entries after the head */
} rl_fatbin_head;

/* Copies the head of a binary to *head. Returns false if the binary does not begin with the head of a fatbin. */
static inline bool rl_fatbin_read_head(const unsigned char *binary, size_t size, rl_fatbin_head *head) {
  if (size < sizeof *head) return false;
  memcpy(head, binary, sizeof *head);
  return head->magic == 0xba55ed50;
}

/* Returns whether a binary of `size` bytes contains the head and the whole body. */
static inline bool rl_fatbin_is_complete(const rl_fatbin_head *head, size_t size) {
  return head->head_bytes >= sizeof *head && head->head_bytes <= size && head->body_bytes <= size - head->head_bytes;
}

#endif
