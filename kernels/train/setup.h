/* Loads the data set and derives the sizes of an epoch. Every engine calls this function first. */
#ifndef RL_TRAIN_SETUP_H
#define RL_TRAIN_SETUP_H

#include "data/dataset.h"
#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the data set that params choose into *dataset, which the caller frees; the environment variable ROOFLINED_MNIST_DIR is
 * the folder of the files. Sets instance->params, images, steps, tail and test_images, and in instance->base: dataset,
 * dataset_sha256, images, steps, trained_parameters and partial_dataset. If fewer than 5000 images are used, also limits the
 * number of test images to theirs, so that a smoke test spends little time on evaluation. Returns 0, or -1 with err. */
int rl_train_set_up(rl_train_instance *instance, const rl_train_params *params, rl_dataset *dataset, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
