/* For tests and benchmarks: the tensors of a GPU engine's last step, and the algorithms that tuning chose. */
#ifndef RL_TRAIN_VIEW_H
#define RL_TRAIN_VIEW_H

#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors of the last step, in device memory that the engine owns. NULL: the engine does not store the tensor. */
typedef struct rl_training_tensors {
  bool channels_last; /* activations NHWC (else NCHW), convolution weights KRSC (else KCRS), fc1's input in H,W,C order (else
                         C,H,W) */
  bool fp16;          /* activations and the operands of products are FP16 */
  uint32_t batch;     /* images of the last step */
  const void *pooled1, *pooled2;             /* inputs of conv2 and of fc1 */
  const uint8_t *argmax1, *argmax2;          /* argmaxes (cuda/kernels.h) of pooled1 and pooled2, in their layouts */
  const void *d_product2;                    /* gradient of conv2's product, before bias, ReLU and pooling */
  const void *d_pooled1, *d_pooled2, *d_fc1; /* gradients of pooled1, pooled2 and fc1's output before bias and ReLU */
  uint32_t d_pooled1_parts; /* gradient of pooled1: the sum of this number of tensors, stored one after another */
  float loss_scale;         /* all gradients are multiplied by it */
} rl_training_tensors;

/* Makes the engine also store the tensors that it otherwise keeps on chip. Call it before ops->instantiate. */
int rl_training_expose_tensors(rl_train_instance *instance, rl_error *err);
/* Reads the pointers to the tensors of the last step. */
int rl_training_read_tensors(rl_train_instance *instance, rl_training_tensors *tensors, rl_error *err);

typedef struct rl_training_choice { /* the algorithm that tuning chose for a library call of a step */
  const char *what;                 /* name of the call */
  char how[128];                    /* library and algorithm */
  double us;                        /* measured time of one call, in µs */
} rl_training_choice;
enum { RL_TRAINING_CHOICES = 6 }; /* maximum number */
/* Writes the choices and returns their number. */
int rl_training_choices(rl_train_instance *instance, rl_training_choice choices[RL_TRAINING_CHOICES]);

#ifdef __cplusplus
}
#endif
#endif
