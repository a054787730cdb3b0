/* The data set: 28×28 byte images with labels 0–9, on the host. Loaded from IDX files (plain or gzip, LeCun's format:
 * big-endian magic 0x00000803/0x00000801, counts, then bytes) or rendered. Owned by the caller; not changed after loading. */
#ifndef RL_DATA_DATASET_H
#define RL_DATA_DATASET_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_dataset {
  uint32_t train_count, test_count;
  uint8_t *train_images, *train_labels; /* [train_count][28][28], [train_count] */
  uint8_t *test_images, *test_labels;
  char name[16];   /* "mnist": the four known SHA-256; "custom": other valid files; "synthetic" */
  char sha256[65]; /* over the four decoded arrays in the order above, hex */
} rl_dataset;

/* which: "auto" (files when the folder has them, else synthetic), "files" (missing files are an error), "synthetic".
 * folder: NULL or "" means there are no files. Corrupt files are an error, never a fall-back. */
int rl_dataset_load(const char *which, const char *folder, rl_dataset *dataset, rl_error *err);
void rl_dataset_free(rl_dataset *dataset); /* leaves it zeroed; a zeroed one is allowed */

/* Decode one IDX file already in memory (after inflating): count items of rows×columns bytes (labels: rows = columns = 1)
 * point into data. Never reads beyond size. The fuzz target's entry. */
int rl_idx_decode(const uint8_t *data, size_t size, int dimensions, uint32_t *count, uint32_t *rows, uint32_t *columns,
                  const uint8_t **items, rl_error *err);

/* Deterministic digits: strokes, affine and elastic distortion, noise. */
int rl_synthetic_render(uint64_t seed, uint32_t train_count, uint32_t test_count, rl_dataset *dataset, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
