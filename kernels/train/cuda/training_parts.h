/* Between the files of the shell: training.cu (stages, programs, memory, phase timestamps), training_launches.cu,
 * training_state.cu. */
#ifndef RL_TRAIN_CUDA_TRAINING_PARTS_H
#define RL_TRAIN_CUDA_TRAINING_PARTS_H

#include "train/cuda/training.h"

enum { RL_PADDED = (RL_PARAMETERS + 63) / 64 * 64 }; /* floats that weights, or a moment, take */

/* From an rl_instance, an rl_train_instance or a launch's argument. */
static inline rl_training *rl_training_of(void *instance) { return (rl_training *)instance; }
static inline rl_adam rl_training_adam(const rl_training *e) {
  return {e->weights, e->first, e->second, e->halves, e->losses, (float)e->base.params.learning_rate, e->state};
}

/* training_launches.cu: what an epoch and an evaluation begin with; arg: rl_training. */
int rl_training_begin_epoch(void *arg, rl_stream stream, rl_error *err);
int rl_training_begin_test(void *arg, rl_stream stream, rl_error *err);

/* training_state.cu: members of rl_instance_ops and of rl_train_instance. */
int rl_training_reset(rl_instance *instance, rl_error *err);
int rl_training_report(rl_instance *instance, rl_report *out, rl_error *err);
int rl_training_save(rl_instance *instance, rl_error *err);
int rl_training_restore(rl_instance *instance, rl_error *err);
int rl_training_losses(rl_train_instance *instance, float *out, rl_error *err);
int rl_training_parameters(rl_train_instance *instance, float *weights, rl_error *err);
int rl_training_set_parameters(rl_train_instance *instance, const float *weights, rl_error *err);
int rl_training_gradients(rl_train_instance *instance, float *out, rl_error *err);

#endif
