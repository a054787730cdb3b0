/* The head alone at the limit of a step's images, which tests/simt/CMakeLists.txt makes few: every image's label counts, and one
 * image more is refused before anything runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#include "cuda_check.h"
#include "train/cuda/kernels.h"

enum { MOST = 256, WEIGHTS = RL_FC1 + RL_CLASSES * RL_FC1 + RL_CLASSES };

static void claim(bool holds, const char *what) {
  if (holds) return;
  printf("failed: %s\n", what);
  exit(1);
}

template <typename T> static T *on_device(const std::vector<T> &from) {
  T *at = NULL;
  claim(cudaMalloc(&at, from.size() * sizeof(T)) == cudaSuccess, "there is memory");
  claim(cudaMemcpy(at, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess, "it can be written");
  return at;
}

/* The sum of the losses of as many images whose products are 0, so that fc2's bias alone decides. */
static int losses_of(uint32_t batch, const std::vector<uint8_t> &labels, const std::vector<float> &weights, double *sum,
                     rl_error *err) {
  const uint32_t rows = rl_head_partial_rows(batch);
  rl_train_state initial = {};
  initial.scale.scale = 1;
  rl_train_state *state = on_device(std::vector<rl_train_state>(1, initial));
  uint8_t *device_labels = on_device(labels);
  float *parts = on_device(std::vector<float>(batch * RL_FC1)), *device_weights = on_device(weights),
        *d_fc1 = on_device(std::vector<float>(batch * RL_FC1)), *partial = on_device(std::vector<float>(rows * RL_HEAD_ROW));
  const rl_head head = {{NULL, device_labels, NULL, &state->step, batch, batch}, parts, 1, device_weights};
  const int rc = rl_head_train({}, &head, d_fc1, partial, state, NULL, err);
  std::vector<float> made(rows * RL_HEAD_ROW);
  claim(cudaDeviceSynchronize() == cudaSuccess, "it runs");
  claim(cudaMemcpy(made.data(), partial, made.size() * sizeof(float), cudaMemcpyDeviceToHost) == cudaSuccess, "it can be read");
  *sum = 0;
  for (uint32_t row = 0; row < rows; row++) *sum += made[row * RL_HEAD_ROW + RL_HEAD_LOSS];
  void *const all[] = {state, device_labels, parts, device_weights, d_fc1, partial};
  for (void *one : all) cudaFree(one);
  return rc;
}

int main() {
  std::vector<uint8_t> labels(MOST + 1);
  std::vector<float> weights(WEIGHTS);
  const float *bias = &weights[WEIGHTS - RL_CLASSES];
  double exponentials = 0, wanted = 0, got = 0;
  for (int c = 0; c < RL_CLASSES; c++) exponentials += exp(weights[WEIGHTS - RL_CLASSES + c] = 0.3f * c);
  for (int n = 0; n <= MOST; n++) labels[n] = (uint8_t)(rand() % RL_CLASSES);
  for (int n = 0; n < MOST; n++) wanted += log(exponentials) - bias[labels[n]];
  rl_error err = {};
  claim(losses_of(MOST, labels, weights, &got, &err) == 0, err.message);
  claim(fabs(got - wanted) < 1e-4 * wanted, "each image has the loss of its label");
  claim(losses_of(MOST + 1, labels, weights, &got, &err) < 0, "one image more is refused");
  printf("refused with: %s\n", err.message);
  claim(err.domain == RL_INPUT && strstr(err.message, "257") && strstr(err.message, "256"), "it says how many, and of how many");
  claim(got == 0, "nothing ran");
  return 0;
}
