/* Slow test of the accuracy that training reaches: on MNIST (argument "mnist"; skipped without its files) and on the synthetic
 * digits, which the network must learn and a linear model must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <unistd.h>

#include "engines.h"

static rl_device *device;

static double train_and_test(const char *dataset, int epochs) {
  rl_train_params params;
  rl_mnist_cnn.defaults(&params);
  strcpy(params.dataset, dataset);
  rl_train_instance *instance = open_train("auto", device, &params);
  for (int i = 0; i < epochs; i++) run_epoch(instance);
  run_sequence_list(instance, &instance->base.evaluation);
  double accuracy = read_train_results(instance).test_accuracy_ratio;
  print_message("%s: test accuracy %.4f after %d epochs\n", instance->base.dataset, accuracy, epochs);
  close_train(instance);
  return accuracy;
}

static void mnist_is_learnt_in_one_epoch(void **state) {
  (void)state;
  assert_true(train_and_test("files", 1) >= 0.975);
}

static void the_network_learns_synthetic_digits(void **state) {
  (void)state;
  assert_true(train_and_test("synthetic", 1) >= 0.98);
}

/* Returns the test accuracy of softmax regression on the pixels, after `epochs` epochs of stochastic gradient descent. */
static double train_and_test_linear_model(const rl_dataset *data, int epochs) {
  static float w[RL_CLASSES][RL_IMAGE_PIXELS + 1];
  double accuracy = 0;
  memset(w, 0, sizeof w);
  for (int epoch = 0; epoch <= epochs; epoch++) { /* the last pass over the data is the evaluation */
    bool is_test = epoch == epochs;
    uint32_t count = is_test ? data->test_count : data->train_count, correct = 0;
    for (uint32_t k = 0; k < count; k++) {
      uint32_t i = is_test ? k : rl_permute(k, count, rl_shuffle_key(1, (uint64_t)epoch));
      const uint8_t *image = (is_test ? data->test_images : data->train_images) + (size_t)i * RL_IMAGE_PIXELS;
      uint8_t label = (is_test ? data->test_labels : data->train_labels)[i];
      float x[RL_IMAGE_PIXELS], y[RL_CLASSES], sum = 0, rate = 0.02f / (1 + (float)epoch);
      int best = 0;
      for (int p = 0; p < RL_IMAGE_PIXELS; p++) x[p] = image[p] / 255.0f;
      for (int c = 0; c < RL_CLASSES; c++) {
        float partial_sums[8] = {0};
        for (int p = 0; p < RL_IMAGE_PIXELS; p++) partial_sums[p % 8] += w[c][p] * x[p];
        y[c] = w[c][RL_IMAGE_PIXELS];
        for (int j = 0; j < 8; j++) y[c] += partial_sums[j];
        if (y[c] > y[best]) best = c;
      }
      correct += best == label;
      if (is_test) continue;
      for (int c = 0; c < RL_CLASSES; c++) sum += expf(y[c] - y[best]);
      for (int c = 0; c < RL_CLASSES; c++) {
        float g = rate * (expf(y[c] - y[best]) / sum - (c == label));
        for (int p = 0; p < RL_IMAGE_PIXELS; p++) w[c][p] -= g * x[p];
        w[c][RL_IMAGE_PIXELS] -= g;
      }
    }
    accuracy = (double)correct / count;
  }
  return accuracy;
}

static void synthetic_digits_are_too_hard_for_a_linear_model(void **state) {
  (void)state;
  rl_dataset data;
  rl_error err = {0};
  assert_ok(rl_dataset_load("synthetic", NULL, &data, &err), &err);
  double accuracy = train_and_test_linear_model(&data, 4);
  print_message("linear model: %.4f\n", accuracy);
  assert_true(accuracy > 0.5 && accuracy < 0.97);
  rl_dataset_free(&data);
}

int main(int count, char **arguments) {
  bool mnist = count > 1 && strcmp(arguments[1], "mnist") == 0;
  if (mnist && getenv("ROOFLINED_MNIST_DIR") == NULL) {
    if (access(RL_SOURCE_DIR "/../shared/mnist", R_OK) != 0) {
      puts("no MNIST files: set ROOFLINED_MNIST_DIR");
      return 77; /* skipped */
    }
    setenv("ROOFLINED_MNIST_DIR", RL_SOURCE_DIR "/../shared/mnist", 1);
  }
  rl_error err = {0};
  device = rl_device_open(0, &err);
  if (device == NULL) return 1;
  const struct CMUnitTest real[] = {cmocka_unit_test(mnist_is_learnt_in_one_epoch)};
  const struct CMUnitTest synthetic[] = {cmocka_unit_test(synthetic_digits_are_too_hard_for_a_linear_model),
                                         cmocka_unit_test(the_network_learns_synthetic_digits)};
  int failed = mnist ? cmocka_run_group_tests(real, NULL, NULL) : cmocka_run_group_tests(synthetic, NULL, NULL);
  device->ops->close(device);
  return failed;
}
