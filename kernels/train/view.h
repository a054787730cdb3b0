/* For tests and benchmarks: the tensors that a GPU engine stored in its last step, and the algorithms that tuning chose.
 * Functions that return int return 0, or -1 with err, unless a comment says otherwise. */
#ifndef RL_TRAIN_VIEW_H
#define RL_TRAIN_VIEW_H

#include "train/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tensors of the last step, in device memory that the engine owns. NULL: the engine does not store the tensor. */
typedef struct rl_training_tensors {
  bool channels_last; /* true: activations NHWC, convolution weights KRSC, fc1's input in H,W,C order; false: NCHW, KCRS, C,H,W */
  bool fp16;          /* activations and the operands of products are FP16 */
  uint32_t batch;     /* images of the last step */
  const void *pooled1, *pooled2;      /* inputs of conv2 and of fc1 */
  const uint8_t *argmax1, *argmax2;   /* argmaxes (cuda/kernels.h) of pooled1 and pooled2, in their layouts */
  const void *conv2_product_gradient; /* gradient of conv2's product (its output before bias, ReLU and pooling) */
  const void *pooled1_gradient, *pooled2_gradient,
      *fc1_product_gradient;       /* of pooled1, of pooled2, and of fc1's output before bias and ReLU */
  uint32_t pooled1_gradient_parts; /* number of tensors, one after another at pooled1_gradient, whose sum is the gradient */
  float loss_scale;                /* all gradients are multiplied by this factor */
} rl_training_tensors;

/* Makes the engine also store those tensors that it otherwise keeps on chip. Call it before ops->instantiate. */
int rl_training_expose_tensors(rl_train_instance *instance, rl_error *err);
/* Reads the pointers to the tensors of the last step. */
int rl_training_read_tensors(rl_train_instance *instance, rl_training_tensors *tensors, rl_error *err);

typedef struct rl_training_choice { /* the algorithm that tuning chose for a library call of a step */
  const char *call;                 /* name of the call: "fc1_forward" */
  char algorithm[128];              /* library, algorithm and how it runs */
  double us;                        /* measured time of one call, in µs */
} rl_training_choice;
enum { RL_TRAINING_CHOICES = 6 }; /* maximum number of choices of an engine */
/* Writes the choices and returns their number. */
int rl_training_choices(rl_train_instance *instance, rl_training_choice choices[RL_TRAINING_CHOICES]);

#ifdef __cplusplus
}
#endif
#endif
