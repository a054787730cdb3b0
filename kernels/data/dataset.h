/* The data set: 28×28 byte images with labels 0–9, in host memory. Loaded from IDX files (data/idx.h) or rendered
 * (data/synthetic.h). The caller owns it; it does not change after loading. */
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
  char name[16];   /* "mnist": the published files, by their SHA-256; "custom": other valid files; "synthetic" */
  char sha256[65]; /* of the four decoded arrays in the order above, hexadecimal */
} rl_dataset;

/* choice: "auto" (files if the folder has them, else synthetic digits), "files" or "synthetic". folder: NULL or "" means that
 * there are no files. -1 with RL_INPUT at /dataset where the choice is unknown or files are missing; corrupt files are an error
 * under "auto" too. *dataset is untouched on failure. */
int rl_dataset_load(const char *choice, const char *folder, rl_dataset *dataset, rl_error *err);
/* Renders synthetic digits. The images depend on the seed and on their index alone. */
int rl_dataset_render(uint64_t seed, uint32_t train_count, uint32_t test_count, rl_dataset *dataset, rl_error *err);
/* Frees the arrays and zeroes the data set; a zeroed one is allowed. */
void rl_dataset_free(rl_dataset *dataset);

#ifdef __cplusplus
}
#endif
#endif
