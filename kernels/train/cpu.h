/* Shared by the CPU engines: the data set in memory, the shuffle and the batch, the loss, loss scaling, the epoch as launches,
 * the report and saved states. An engine supplies its layers and Adam (rl_cpu_math). */
#ifndef RL_TRAIN_CPU_H
#define RL_TRAIN_CPU_H

#include "thread_pool.h"
#include "train/engines.h"
#include "train/loss_scale.h"
#include "train/model.h"

typedef struct rl_cpu_train rl_cpu_train;

typedef struct rl_cpu_layer { /* one launch of a step */
  const char *name;
  void (*run)(rl_cpu_train *train, uint32_t n); /* n: images in the batch */
} rl_cpu_layer;

/* Values that a step stores between layers, which tests read in PyTorch's layouts. Gradients are multiplied by the loss scale. */
typedef enum rl_cpu_value {
  RL_VALUE_P1,
  RL_VALUE_ARGMAX1, /* index, 0–3, of the input that each pool passed on, or RL_ORACLE_RELU_ZERO */
  RL_VALUE_P2,
  RL_VALUE_ARGMAX2,
  RL_VALUE_F1,
  RL_VALUE_DF1,
  RL_VALUE_DP2,
  RL_VALUE_DP1
} rl_cpu_value;

typedef struct rl_cpu_math {
  bool threaded;                          /* false: one thread */
  size_t size;                            /* of the engine's struct, which starts with rl_cpu_train */
  const rl_cpu_layer *forward, *backward; /* from x to logits and from dlogits to gradients; each ends with {0} */
  /* Index, in the engine's arrays, of a parameter of PyTorch's layout; NULL: the same. */
  uint32_t (*parameter_index)(uint32_t parameter);
  int (*prepare)(rl_cpu_train *train, rl_error *err); /* allocates with rl_cpu_allocate */
  void (*on_start)(rl_cpu_train *train);              /* of an epoch or evaluation; NULL: nothing to do */
  void (*on_weights_changed)(rl_cpu_train *train);    /* by other code than adam; NULL: nothing to do */
  bool (*all_finite)(rl_cpu_train *train);            /* false: a gradient is inf or NaN */
  /* Writes a value of the last step to out; false where the engine does not store it. */
  bool (*read_value)(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out);
  /* Step number `step`, from 1, with the gradients divided by scale. */
  void (*adam)(rl_cpu_train *train, uint64_t step, double rate, float scale);
} rl_cpu_math;

typedef struct rl_cpu_state { /* changed by steps, besides weights and moments */
  uint64_t epoch;             /* the current epoch, or the next one; from 0 */
  uint64_t applied;           /* steps that changed the weights */
  uint32_t step;              /* within the epoch */
  uint32_t test_position, test_correct;
  double test_loss; /* sum over images */
  rl_loss_scale scale;
  float gradient_scale; /* factor in the current gradients */
} rl_cpu_state;

typedef struct rl_cpu_batch { /* argument of a launch */
  rl_cpu_train *train;
  const rl_cpu_layer *layer;
  uint32_t n;
} rl_cpu_batch;

enum { RL_CPU_MAX_LAUNCHES = 96, RL_CPU_MAX_BLOCKS = 40 };

struct rl_cpu_train {
  rl_train_instance instance;
  const rl_cpu_math *math;
  rl_thread_pool *threads;
  bool half; /* activations and copies of weights are binary16 */
  uint8_t *train_images, *train_labels, *test_images, *test_labels;
  float *weights, *m, *v, *gradients;        /* [RL_PARAMETERS], indexed by math->parameter_index */
  float *x, *logits, *dlogits, *step_losses; /* [batch][784], [batch][10] twice, [steps]; fp16: rounded to binary16 */
  uint8_t *labels;                           /* [batch] */
  rl_cpu_state state, saved;
  float *saved_numbers; /* weights, m, v; NULL until saved */
  void *blocks[RL_CPU_MAX_BLOCKS];
  uint32_t block_count;
  rl_cpu_batch batches[RL_CPU_MAX_LAUNCHES];
  rl_launch launches[RL_CPU_MAX_LAUNCHES];
  rl_sequence sequences[6];
};

/* Allocates zeroed device memory, which closing the instance releases. */
int rl_cpu_allocate(rl_cpu_train *train, rl_memory_purpose purpose, size_t bytes, void **memory, rl_error *err);
/* Opens an instance of the engine with this math; params are valid and supported. */
int rl_cpu_open(const rl_cpu_math *math, rl_device *device, const void *params, rl_instance **instance, rl_error *err);

extern const rl_engine rl_engine_reference, rl_engine_blas, rl_engine_cpu_fused;

#endif
