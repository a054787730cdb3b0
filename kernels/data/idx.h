/* One IDX file from disk, plain or gzip. Inside kernels/data. */
#ifndef RL_DATA_IDX_H
#define RL_DATA_IDX_H

#include "data/dataset.h"

/* Images (dimensions 3) must be 28×28, labels (dimensions 1) 0–9; at most a million. *items is malloc'ed: the caller frees. */
int rl_idx_read(const char *path, int dimensions, uint32_t *count, uint8_t **items, rl_error *err);

#endif
