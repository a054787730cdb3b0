/* A data set for training: images of 28×28 bytes with labels 0–9, in host memory. It is loaded from IDX files (data/idx.h) or
 * rendered (data/synthetic.h). */
#ifndef RL_DATA_DATASET_H
#define RL_DATA_DATASET_H

#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_dataset {
  uint32_t train_count, test_count;
  uint8_t *train_images, *train_labels; /* [train_count][28][28], [train_count] */
  uint8_t *test_images, *test_labels;
  char name[16];   /* "mnist": the published files, recognised by sha256; "custom": other valid files; "synthetic" */
  char sha256[65]; /* hexadecimal, of the four arrays one after another, in the order above */
} rl_dataset;

/* Loads or renders a data set. choice: "auto" (the files if a folder is configured, else synthetic digits), "files" or
 * "synthetic". folder: where the files are; NULL or "": no folder is configured. Returns -1 with RL_INPUT at /dataset if the
 * choice is unknown or files are missing, and with another error if files are corrupt. *dataset is untouched on failure. The
 * caller frees it with rl_dataset_free. */
int rl_dataset_load(const char *choice, const char *folder, rl_dataset *dataset, rl_error *err);
/* Renders synthetic digits. An image depends only on the seed, its index and whether it is a training or a test image. */
int rl_dataset_render(uint64_t seed, uint32_t train_count, uint32_t test_count, rl_dataset *dataset, rl_error *err);
/* Frees the arrays and zeroes the struct. A zeroed struct is allowed. */
void rl_dataset_free(rl_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
