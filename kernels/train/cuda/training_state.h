/* Base of all training engines on the GPU: the data set, parameters, moments, training state and results in device memory, and
 * the functions that read and write them. The launch-graph engines (training.h) and the engine persistent (train/persistent.cu)
 * derive from rl_training_base. Functions that return int return 0, or -1 with err. */
#ifndef RL_TRAIN_CUDA_TRAINING_STATE_H
#define RL_TRAIN_CUDA_TRAINING_STATE_H

#include "train/cuda/kernels.h"
#include "train/view.h"

typedef struct rl_training_base rl_training_base;

/* Functions of an engine for tests and benchmarks (train/view.h). */
typedef struct rl_training_ops {
  /* Makes the engine store, in later steps, all tensors that get_tensors and gradients return. NULL: the engine always stores
   * these. */
  int (*expose_tensors)(rl_training_base *training, rl_error *err);
  /* Sets the pointers in `tensors`; the caller has set the other members. */
  void (*get_tensors)(const rl_training_base *training, rl_training_tensors *tensors);
  /* Sets *gradients to the gradients of the last step, which had `batch` images. */
  int (*gradients)(const rl_training_base *training, uint32_t batch, rl_gradients *gradients, rl_error *err);
  /* Writes the algorithms that tuning chose (view.h) and returns their number. NULL: the engine tunes nothing. */
  int (*choices)(const rl_training_base *training, rl_training_choice choices[RL_TRAINING_CHOICES]);
} rl_training_ops;

struct rl_training_base {
  rl_train_instance base;
  const rl_training_ops *ops;
  rl_format format;
  size_t value_bytes; /* size of an element of an activation: 2 or 4 */

  uint8_t *train_images, *train_labels, *test_images, *test_labels;
  uint32_t *order; /* data set indices of the training images, in shuffled order */
  /* mutable_state: one allocation for all data that a step changes and later steps read, in this order: weights, their FP16
   * copies, rl_train_state, both moments. The pointers below point into it. saved_state: the copy that rl_training_save makes;
   * NULL: none. */
  unsigned char *mutable_state, *saved_state;
  size_t mutable_state_bytes;
  float *weights, *first_moment, *second_moment;
  void *fp16_weights; /* copies of the weights; NULL: the engine does not keep any */
  rl_train_state *state;
  float *losses, *test_losses; /* loss of each step of the epoch; loss of each test image */
  uint8_t *test_correct;
};

typedef struct rl_training_layout {
  bool channels_last;      /* true: NHWC in every precision; false: NHWC in FP16 and TF32, NCHW in FP32 */
  bool fp16_weights;       /* true: in precision FP16, keep FP16 copies of the weights */
  size_t min_moment_bytes; /* minimum size of the moments' memory, which the engine may also use for partial sums */
} rl_training_layout;

/* A buffer of an engine, for rl_training_allocate. */
typedef struct rl_training_buffer {
  void *to; /* address of the pointer to the buffer; the pointer is NULL until the buffer is allocated */
  rl_memory_purpose purpose;
  size_t bytes; /* 0: the engine does not need the buffer */
} rl_training_buffer;

enum { RL_PADDED_PARAMETERS = (RL_PARAMETERS + 63) / 64 * 64 }; /* floats allocated for the weights, and for each moment */

/* Casts an rl_instance, an rl_train_instance, or a launch's argument, which all point to an rl_training_base. */
static inline rl_training_base *rl_training_base_of(void *instance) { return (rl_training_base *)instance; }

static inline rl_adam rl_training_adam(const rl_training_base *training) {
  return {training->weights,      training->first_moment, training->second_moment,
          training->fp16_weights, training->losses,       (float)training->base.params.learning_rate,
          training->state};
}

/* Returns the number of images in a step: the batch size, or the number of training images if that is smaller. */
static inline uint32_t rl_training_step_images(const rl_training_base *training) {
  return training->base.params.batch_size < training->base.images ? (uint32_t)training->base.params.batch_size
                                                                  : training->base.images;
}

/* Loads the data set and allocates the memory of rl_training_base. The caller has set base.base.device, base.base.ops and ops.
 * The parameters are undefined until rl_training_reset. rl_training_base_close releases the memory, also after a failure. */
int rl_training_base_open(rl_training_base *training, const rl_train_params *params, const rl_training_layout *layout,
                          rl_error *err);
void rl_training_base_close(rl_training_base *training);

/* Allocates those buffers whose pointer is still NULL and whose size is not 0. */
int rl_training_allocate(rl_training_base *training, const rl_training_buffer *buffers, size_t count, rl_error *err);

cudaStream_t rl_training_stream(const rl_training_base *training);

/* Implement rl_launch.enqueue for the launches that begin an epoch and an evaluation. arg: rl_training_base. */
int rl_training_begin_epoch(void *arg, rl_stream stream, rl_error *err);
int rl_training_begin_test(void *arg, rl_stream stream, rl_error *err);

/* Implementations of members of rl_instance_ops. */
int rl_training_reset(rl_instance *instance, rl_error *err);
int rl_training_read_results(rl_instance *instance, rl_iteration_results *out, rl_error *err);
int rl_training_save(rl_instance *instance, rl_error *err);
int rl_training_restore(rl_instance *instance, rl_error *err);

#endif
