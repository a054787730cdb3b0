/* IDX files, LeCun's format of MNIST: a magic number (0x00000803: images, 0x00000801: labels) and the sizes as big-endian 32-bit
 * integers, then one byte for each pixel or label. A file may be compressed with gzip. */
#ifndef RL_DATA_IDX_H
#define RL_DATA_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_idx {
  uint32_t count, rows, columns; /* labels: rows = columns = 1 */
  const uint8_t *items;          /* [count][rows][columns], inside `data` of rl_idx_decode */
} rl_idx;

/* Decodes an inflated file of `size` bytes. dimensions: 3 for images, 1 for labels. Returns 0, or -1 with RL_INPUT when the file
 * is malformed or has another number of dimensions. */
int rl_idx_decode(const uint8_t *data, size_t size, int dimensions, rl_idx *idx, rl_error *err);
/* Reads a file of 1 to 1,000,000 images of 28×28 (dimensions: 3) or labels 0–9 (dimensions: 1). Returns 0 or -1. The caller frees
 * *items. */
int rl_idx_read(const char *path, int dimensions, uint32_t *count, uint8_t **items, rl_error *err);

#endif
