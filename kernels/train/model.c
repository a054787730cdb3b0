/* Implements model.h: the layout of the parameters, their initial values, and the number of operations for one image. */
#include "train/model.h"

#include <math.h>

const char *const rl_tensor_names[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                       "fc1.bias",     "fc2.weight", "fc2.bias",     NULL};
enum {
  CONV1_WEIGHTS = RL_CONV1_CHANNELS * 9,
  CONV2_WEIGHTS = RL_CONV2_CHANNELS * RL_CONV1_CHANNELS * 9,
  FC1_WEIGHTS = RL_FC1_OUTPUTS * RL_FC1_INPUTS,
  FC2_WEIGHTS = RL_CLASSES * RL_FC1_OUTPUTS,
  CONV2_OFFSET = CONV1_WEIGHTS + RL_CONV1_CHANNELS,
  FC1_OFFSET = CONV2_OFFSET + CONV2_WEIGHTS + RL_CONV2_CHANNELS,
  FC2_OFFSET = FC1_OFFSET + FC1_WEIGHTS + RL_FC1_OUTPUTS
};
const uint32_t rl_tensor_sizes[RL_TENSORS] = {CONV1_WEIGHTS, RL_CONV1_CHANNELS, CONV2_WEIGHTS, RL_CONV2_CHANNELS,
                                              FC1_WEIGHTS,   RL_FC1_OUTPUTS,    FC2_WEIGHTS,   RL_CLASSES};
const uint32_t rl_tensor_offsets[RL_TENSORS + 1] = {0,
                                                    CONV1_WEIGHTS,
                                                    CONV2_OFFSET,
                                                    CONV2_OFFSET + CONV2_WEIGHTS,
                                                    FC1_OFFSET,
                                                    FC1_OFFSET + FC1_WEIGHTS,
                                                    FC2_OFFSET,
                                                    FC2_OFFSET + FC2_WEIGHTS,
                                                    RL_PARAMETERS};
_Static_assert(FC2_OFFSET + FC2_WEIGHTS + RL_CLASSES == RL_PARAMETERS, "the sizes of all tensors must add up to RL_PARAMETERS");

/* A bias has the fan-in of its layer's weight, as in torch.nn.Linear and torch.nn.Conv2d. */
static const uint32_t fan_in[RL_TENSORS] = {
    9, 9, RL_CONV1_CHANNELS * 9, RL_CONV1_CHANNELS * 9, RL_FC1_INPUTS, RL_FC1_INPUTS, RL_FC1_OUTPUTS, RL_FC1_OUTPUTS};

void rl_model_initialise(uint64_t seed, float *weights) {
  for (uint32_t tensor = 0; tensor < RL_TENSORS; tensor++) {
    uint64_t key = rl_hash64(rl_hash64(seed) + tensor);
    double bound = 1 / sqrt(fan_in[tensor]);
    float *values = weights + rl_tensor_offsets[tensor];
    for (uint32_t i = 0; i < rl_tensor_sizes[tensor]; i++) {
      double unit = (double)(rl_hash64(key + i) >> 11) * 0x1p-53;
      values[i] = (float)((2 * unit - 1) * bound);
    }
  }
}

/* Operations of the forward pass for one image. The weight gradient and the input gradient of a layer take as many each. */
static const double conv1_operations = 2.0 * RL_CONV1_SIDE * RL_CONV1_SIDE * CONV1_WEIGHTS,
                    conv2_operations = 2.0 * RL_CONV2_SIDE * RL_CONV2_SIDE * CONV2_WEIGHTS,
                    linear_operations = 2.0 * (FC1_WEIGHTS + FC2_WEIGHTS);

double rl_model_operations_per_image(void) { return 2 * conv1_operations + 3 * (conv2_operations + linear_operations); }
double rl_model_min_operations_per_image(void) { return conv1_operations + conv2_operations + 3 * linear_operations; }

const char *const rl_precision_names[] = {"fp32", "tf32", "fp16", NULL};
