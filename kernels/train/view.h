/* The tensors of a GPU engine's last step, in device memory, for tests and benchmarks. */
#ifndef RL_TRAIN_VIEW_H
#define RL_TRAIN_VIEW_H

#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rl_training_tensors { /* of the last step */
  bool channels_last; /* activations NHWC (else NCHW), convolution weights KRSC (else KCRS), fc1's input in H,W,C order (else
                         C,H,W) */
  bool half;          /* activations and the operands of products are FP16 */
  uint32_t batch;     /* images of the last step */
  const void *pooled1, *pooled2;  /* inputs of conv2 and of fc1 */
  const uint8_t *codes1, *codes2; /* 0–3: index of the input that the pool passed on, 4: ReLU gave 0; layout of pooled */
  const void *d_product2;         /* gradient of conv2's product; NULL where the engine does not store it */
  const void *d_pooled1, *d_pooled2, *d_fc1;
  float loss_scale; /* all gradients are multiplied by it */
} rl_training_tensors;

/* What an engine keeps on chip is NULL in a view unless it was watched when the epoch was planned. */
int rl_training_expose_tensors(rl_train_instance *instance, rl_error *err);
int rl_training_view(rl_train_instance *instance, rl_training_tensors *tensors, rl_error *err);

typedef struct rl_training_choice { /* the algorithm that tuning chose for a library call of a step */
  const char *what;
  char how[128];
  double us;
} rl_training_choice;
enum { RL_TRAINING_CHOICES = 6 }; /* at most */
/* Writes the choices and returns how many there are. */
int rl_training_choices(rl_train_instance *instance, rl_training_choice choices[RL_TRAINING_CHOICES]);

#ifdef __cplusplus
}
#endif
#endif
