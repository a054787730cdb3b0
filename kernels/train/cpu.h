/* Base of the CPU engines: the data set in memory, batches, loss, loss scaling, the launches of an epoch, results, save and
 * restore. An engine adds its layers and Adam (rl_cpu_engine_ops).
 *
 * model.h defines image, batch, step, epoch and argmax. n is the number of images in the batch. A layer is a function that one
 * launch runs. x_gradient is the gradient of x. */
#ifndef RL_TRAIN_CPU_H
#define RL_TRAIN_CPU_H

#include "thread_pool.h"
#include "train/engines.h"
#include "train/loss_scale.h"
#include "train/model.h"

typedef struct rl_cpu_train rl_cpu_train;

typedef struct rl_cpu_layer {
  const char *name; /* name of the launch */
  void (*run)(rl_cpu_train *train, uint32_t n);
} rl_cpu_layer;

/* Values that a step stores between layers, for tests, which read them in PyTorch's layouts. Gradients are multiplied by the loss
 * scale. */
typedef enum rl_cpu_value {
  RL_VALUE_POOLED1,              /* conv1's output after ReLU and pooling */
  RL_VALUE_ARGMAX1,              /* argmax of pooled1, or RL_ARGMAX_RELU_ZERO */
  RL_VALUE_POOLED2,              /* conv2's output after ReLU and pooling */
  RL_VALUE_ARGMAX2,              /* argmax of pooled2, or RL_ARGMAX_RELU_ZERO */
  RL_VALUE_HIDDEN,               /* fc1's output after ReLU */
  RL_VALUE_FC1_PRODUCT_GRADIENT, /* gradient of fc1's output before bias and ReLU */
  RL_VALUE_POOLED2_GRADIENT,
  RL_VALUE_POOLED1_GRADIENT
} rl_cpu_value;

typedef struct rl_cpu_engine_ops {
  bool threaded;                          /* false: the engine runs on one thread */
  size_t size;                            /* size of the engine's struct, which starts with rl_cpu_train */
  const rl_cpu_layer *forward, *backward; /* the layers from x to logits, and from logits_gradient to the gradients of the
                                             parameters; each list ends with {0} */
  /* Returns the index in the engine's arrays of the parameter that has index `parameter` in PyTorch's layouts. NULL: the indices
   * are the same. */
  uint32_t (*parameter_index)(uint32_t parameter);
  int (*prepare)(rl_cpu_train *train, rl_error *err); /* allocates the engine's arrays with rl_cpu_allocate */
  void (*on_start)(rl_cpu_train *train);              /* called when an epoch or an evaluation starts; may be NULL */
  void (*on_weights_changed)(rl_cpu_train *train); /* called when code other than adam has changed train->weights; may be NULL */
  bool (*all_finite)(rl_cpu_train *train);         /* false: a gradient is inf or NaN */
  /* Writes a value of the last step to out. Returns false if the engine does not store it. */
  bool (*read_value)(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out);
  /* Updates weights and moments in Adam's step number `step`, from 1. Divides the gradients by `scale`. */
  void (*adam)(rl_cpu_train *train, uint64_t step, double rate, float scale);
} rl_cpu_engine_ops;

typedef struct rl_cpu_state { /* the state that steps change, apart from weights and moments */
  uint64_t epoch;             /* number of the current epoch, or before it starts of the next one; from 0 */
  uint64_t applied_steps;     /* steps that changed the weights */
  uint32_t step;              /* number of the current step in the epoch, from 0 */
  uint32_t test_position;     /* number of test images evaluated so far */
  uint32_t test_correct;      /* number of them that were classified correctly */
  double test_loss;           /* sum of their losses */
  rl_loss_scale loss_scale;   /* fp16 only */
  float gradient_scale;       /* factor by which the current gradients are multiplied: the loss scale (fp16) or 1 */
} rl_cpu_state;

typedef struct rl_cpu_launch_argument {
  rl_cpu_train *train;
  const rl_cpu_layer *layer;
  uint32_t n;
} rl_cpu_launch_argument;

enum { RL_CPU_MAX_LAUNCHES = 96, RL_CPU_MAX_ALLOCATIONS = 40 };

struct rl_cpu_train {
  rl_train_instance instance;
  const rl_cpu_engine_ops *ops;
  rl_thread_pool *thread_pool;
  bool fp16; /* precision fp16: values between layers and the weights that layers use are rounded to binary16 */
  uint8_t *train_images, *train_labels, *test_images, *test_labels;
  float *weights, *first_moment, *second_moment, *gradients; /* [RL_PARAMETERS], indexed by ops->parameter_index */
  float *x;                                                  /* [batch][784]: pixels, normalised */
  float *logits, *logits_gradient; /* [batch][10]; x, logits and logits_gradient are rounded to binary16 in fp16 */
  float *step_losses;              /* [steps]: of the current epoch */
  uint8_t *labels;                 /* [batch] */
  rl_cpu_state state, saved_state;
  float *saved_arrays;                       /* [3][RL_PARAMETERS]: weights and both moments; NULL: no state was saved */
  void *allocations[RL_CPU_MAX_ALLOCATIONS]; /* released when the instance is closed */
  uint32_t allocation_count;
  rl_cpu_launch_argument launch_arguments[RL_CPU_MAX_LAUNCHES];
  rl_launch launches[RL_CPU_MAX_LAUNCHES];
  rl_sequence sequences[6];
};

/* Allocates zeroed memory of the device. Closing the instance releases it. Returns 0, or -1 with err. */
int rl_cpu_allocate(rl_cpu_train *train, rl_memory_purpose purpose, size_t bytes, void **memory, rl_error *err);
/* Implements rl_engine.open for the engine that has these functions. params: rl_train_params, valid and supported by the
 * engine. */
int rl_cpu_open(const rl_cpu_engine_ops *ops, rl_device *device, const void *params, rl_instance **instance, rl_error *err);

extern const rl_engine rl_engine_reference, rl_engine_blas, rl_engine_cpu_fused;

#endif
