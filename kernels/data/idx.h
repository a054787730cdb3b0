/* IDX files in LeCun's format: a big-endian magic number, 0x00000803 for images or 0x00000801 for labels, the sizes, then bytes.
 * Plain or gzip. */
#ifndef RL_DATA_IDX_H
#define RL_DATA_IDX_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct rl_idx {
  uint32_t count, rows, columns; /* labels: rows = columns = 1 */
  const uint8_t *items;          /* [count][rows][columns], inside the decoded memory */
} rl_idx;

/* Decodes size bytes of an inflated file with 3 dimensions (images) or 1 (labels). Reads no byte beyond size. */
int rl_idx_decode(const uint8_t *data, size_t size, int dimensions, rl_idx *idx, rl_error *err);
/* Reads a file of 1 to 1,000,000 images of 28×28 (3 dimensions) or labels 0–9 (1 dimension). The caller frees *items. */
int rl_idx_read(const char *path, int dimensions, uint32_t *count, uint8_t **items, rl_error *err);

#endif
