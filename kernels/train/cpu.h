/* What the CPU engines share: the resident data set, the shuffle and the batch, loss, loss scaling, the epoch as launches,
 * reports and saved states. An engine supplies the layers and Adam (rl_cpu_math). */
#ifndef RL_TRAIN_CPU_H
#define RL_TRAIN_CPU_H

#include "threads.h"
#include "train/engines.h"
#include "train/loss_scale.h"
#include "train/model.h"

typedef struct rl_cpu_train rl_cpu_train;

typedef struct rl_cpu_layer { /* a launch of a step */
  const char *name;
  void (*work)(rl_cpu_train *train, uint32_t n); /* n: images in the batch */
} rl_cpu_layer;

/* What a step leaves between layers, for tests: as numbers in PyTorch's layouts. Gradients are still scaled. */
typedef enum rl_cpu_value {
  RL_VALUE_P1,
  RL_VALUE_CHOICE1,
  RL_VALUE_P2,
  RL_VALUE_CHOICE2,
  RL_VALUE_F1,
  RL_VALUE_DF1,
  RL_VALUE_DP2,
  RL_VALUE_DP1
} rl_cpu_value;

typedef struct rl_cpu_math {
  bool threaded;
  size_t size;                                        /* of the engine's struct, which starts with rl_cpu_train */
  const rl_cpu_layer *forward, *backward;             /* each ends with {0}; from x to logits, from dlogits to gradients */
  uint32_t (*place)(uint32_t parameter);              /* where a parameter of PyTorch's layout lies here; NULL: there */
  int (*prepare)(rl_cpu_train *train, rl_error *err); /* allocate with rl_cpu_allocate */
  void (*begin)(rl_cpu_train *train);                 /* of an epoch or evaluation; NULL: nothing to do */
  void (*weights_changed)(rl_cpu_train *train);       /* from outside; NULL: nothing to do */
  bool (*finite)(rl_cpu_train *train);                /* no gradient is inf or NaN */
  bool (*peek)(rl_cpu_train *train, rl_cpu_value value, uint32_t n, double *out); /* false: not kept */
  /* Step number `step` (from 1) on the gradients divided by scale. */
  void (*adam)(rl_cpu_train *train, uint64_t step, double rate, float scale);
} rl_cpu_math;

typedef struct rl_cpu_state { /* what steps change, besides weights and moments */
  uint64_t epoch;             /* of the next or current epoch, from 0 */
  uint64_t applied;           /* steps that changed the weights */
  uint32_t step;              /* within the epoch */
  uint32_t test_position, test_correct;
  double test_loss; /* sum over images */
  rl_loss_scale scale;
  float gradient_scale; /* what the gradients at hand are multiplied by */
} rl_cpu_state;

typedef struct rl_cpu_batch { /* argument of a launch */
  rl_cpu_train *train;
  const rl_cpu_layer *layer;
  uint32_t n;
} rl_cpu_batch;

enum { RL_CPU_LAUNCHES = 24, RL_CPU_BLOCKS = 40 };

struct rl_cpu_train {
  rl_train_instance instance;
  const rl_cpu_math *math;
  rl_threads *threads;
  bool half; /* activations and copies of weights are binary16 */
  uint8_t *train_images, *train_labels, *test_images, *test_labels;
  float *weights, *m, *v, *gradients;        /* [RL_PARAMETERS] in the engine's order */
  float *x, *logits, *dlogits, *step_losses; /* [batch][784], [batch][10] twice, [steps]; fp16: values rounded to it */
  uint8_t *labels;                           /* [batch] */
  rl_cpu_state state, saved;
  float *saved_numbers; /* weights, m, v; NULL until saved */
  void *blocks[RL_CPU_BLOCKS];
  uint32_t block_count;
  rl_cpu_batch batches[4 * RL_CPU_LAUNCHES];
  rl_launch launches[4 * RL_CPU_LAUNCHES];
  rl_sequence sequences[6];
};

/* Memory of the device that closing releases, zeroed. */
int rl_cpu_allocate(rl_cpu_train *train, rl_purpose purpose, size_t bytes, void **memory, rl_error *err);
int rl_cpu_open(const rl_cpu_math *math, rl_device *device, const void *params, rl_instance **instance, rl_error *err);

extern const rl_engine rl_engine_reference, rl_engine_blas, rl_engine_cpu_fused;

#endif
