/* Tests the head's kernel (fc2 and the loss) at its maximum batch, which tests/simt/CMakeLists.txt makes small: the loss
 * depends on the label of every image, and a larger batch is refused before the kernel is launched. */
#include <math.h>
#include <string.h>

#include "cuda_check.h"
#include "device_memory.h"
#include "train/cuda/kernels.h"

enum { MAX_BATCH = 256, WEIGHTS = RL_FC1_OUTPUTS + RL_CLASSES * RL_FC1_OUTPUTS + RL_CLASSES };

/* Sets *sum to the sum of the losses of `batch` images whose fc1 products are 0, so that only fc2's bias counts. */
static int sum_losses(uint32_t batch, const std::vector<uint8_t> &labels, const std::vector<float> &weights, double *sum,
                      rl_error *err) {
  const uint32_t rows = rl_head_partial_rows(batch);
  rl_train_state initial = {};
  initial.loss_scale.scale = 1;
  rl_train_state *state = copy_to_device(std::vector<rl_train_state>(1, initial));
  uint8_t *device_labels = copy_to_device(labels);
  float *fc1_parts = copy_to_device(std::vector<float>(batch * RL_FC1_OUTPUTS)), *device_weights = copy_to_device(weights),
        *fc1_product_gradient = copy_to_device(std::vector<float>(batch * RL_FC1_OUTPUTS)),
        *partial = copy_to_device(std::vector<float>(rows * RL_HEAD_PITCH));
  const rl_head head = {{NULL, device_labels, NULL, &state->step, batch, batch}, fc1_parts, 1, device_weights};
  const int rc = rl_head_train({}, &head, fc1_product_gradient, partial, state, NULL, err);
  std::vector<float> rows_on_host(rows * RL_HEAD_PITCH);
  copy_to_host(partial, rows_on_host);
  *sum = 0;
  for (uint32_t row = 0; row < rows; row++) *sum += rows_on_host[row * RL_HEAD_PITCH + RL_HEAD_LOSS];
  void *const allocations[] = {state, device_labels, fc1_parts, device_weights, fc1_product_gradient, partial};
  for (void *allocation : allocations) cudaFree(allocation);
  return rc;
}

int main() {
  std::vector<uint8_t> labels(MAX_BATCH + 1);
  std::vector<float> weights(WEIGHTS);
  const float *bias = &weights[WEIGHTS - RL_CLASSES];
  double exponentials = 0, expected = 0, sum = 0;
  for (int c = 0; c < RL_CLASSES; c++) exponentials += exp(weights[WEIGHTS - RL_CLASSES + c] = 0.3f * c);
  for (int n = 0; n <= MAX_BATCH; n++) labels[n] = (uint8_t)(rand() % RL_CLASSES);
  for (int n = 0; n < MAX_BATCH; n++) expected += log(exponentials) - bias[labels[n]];
  rl_error err = {};
  check(sum_losses(MAX_BATCH, labels, weights, &sum, &err) == 0, err.message);
  check(fabs(sum - expected) < 1e-4 * expected, "each image has the loss of its label");
  check(sum_losses(MAX_BATCH + 1, labels, weights, &sum, &err) < 0, "one image more is refused");
  printf("refused with: %s\n", err.message);
  check(err.domain == RL_INPUT && strstr(err.message, "257") && strstr(err.message, "256"),
        "the message has the batch and the maximum");
  check(sum == 0, "nothing ran");
  return 0;
}
