/* Fatbins (fatbinary_section.h of CUDA): a head, and entries with PTX or a cubin. The layout of the entries is that of fatbins
 * that nvcc 13.0 wrote. */
#ifndef RL_KERNELS_SOURCE_FATBIN_H
#define RL_KERNELS_SOURCE_FATBIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

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

typedef struct rl_fatbin_entry {
  bool is_ptx; /* false: a cubin */
  bool is_compressed;
  int architecture;          /* 90 for sm_90 and compute_90, and also for sm_90a and compute_90a */
  bool only_architecture;    /* of compute_90a and sm_90a: runs on no other architecture */
  const unsigned char *data; /* points into the fatbin; one zstd frame if the entry is compressed */
  size_t size;
} rl_fatbin_entry;

/* Reads the entry at *offset of the body and moves *offset to the next one. Returns 1; 0 at the end of the body; -1 with RL_INPUT
 * at /binary if the entry is malformed, or neither plain nor compressed with zstd. */
int rl_fatbin_next(const unsigned char *body, size_t size, size_t *offset, rl_fatbin_entry *entry, rl_error *err);

/* Returns in *data the contents of the entry that a device executes: the cubin of its major architecture with the highest minor
 * one that is not above the device's, or, if there is none, the PTX of the highest architecture that is not above the device's.
 * architecture: 90 for compute capability 9.0. A NUL follows the *size bytes of *data, which the caller frees. Returns -1 with
 * RL_INPUT at /binary if the fatbin has no such entry, the cubin is incomplete (rl_cubin_is_complete), or the PTX has no
 * .version. */
int rl_fatbin_select(const unsigned char *fatbin, size_t fatbin_size, int architecture, unsigned char **data, size_t *size,
                     rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
