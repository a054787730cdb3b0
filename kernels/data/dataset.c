/* Implements dataset.h: finds and reads MNIST's four files, or renders digits, and computes the hash of the data set. */
#include "data/dataset.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "data/idx.h"
#include "data/synthetic.h"

enum {
  FILE_COUNT = 4,
  PATH_SIZE = 1024,
  PIXELS = 784,
  SYNTHETIC_TRAIN_IMAGES = 60000,
  SYNTHETIC_TEST_IMAGES = 10000,
  SYNTHETIC_SEED = 1
};

/* rl_dataset.sha256 of the four files at http://yann.lecun.com/exdb/mnist (LeCun, Cortes, Burges). */
static const char mnist_sha256[] = "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16";

static const struct {
  const char *name;
  int dimensions;
} files[FILE_COUNT] = {{"train-images", 3}, {"train-labels", 1}, {"t10k-images", 3}, {"t10k-labels", 1}};

RL_DEFINE_CLEANUP(free_bytes, uint8_t *, free, NULL)

static void compute_sha256(rl_dataset *dataset) {
  crypto_hash_sha256_state state;
  unsigned char digest[crypto_hash_sha256_BYTES];
  crypto_hash_sha256_init(&state);
  crypto_hash_sha256_update(&state, dataset->train_images, (size_t)dataset->train_count * PIXELS);
  crypto_hash_sha256_update(&state, dataset->train_labels, dataset->train_count);
  crypto_hash_sha256_update(&state, dataset->test_images, (size_t)dataset->test_count * PIXELS);
  crypto_hash_sha256_update(&state, dataset->test_labels, dataset->test_count);
  crypto_hash_sha256_final(&state, digest);
  sodium_bin2hex(dataset->sha256, sizeof dataset->sha256, digest, sizeof digest);
}

/* Looks for files[file] in the folder, under names like train-images-idx3-ubyte and train-images.idx3-ubyte, with and without
 * .gz. Returns 1 when it exists, 0 when it does not, -1 on error. */
static int find_file(const char *folder, int file, char path[PATH_SIZE], rl_error *err) {
  static const char *const patterns[] = {"%s/%s-idx%d-ubyte", "%s/%s-idx%d-ubyte.gz", "%s/%s.idx%d-ubyte",
                                         "%s/%s.idx%d-ubyte.gz"};
  for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
    if (snprintf(path, PATH_SIZE, patterns[i], folder, files[file].name, files[file].dimensions) >= PATH_SIZE)
      return rl_fail_at(err, "/dataset", "the path of the MNIST folder is longer than %d bytes", PATH_SIZE);
    if (access(path, R_OK) == 0) return 1;
    if (errno != ENOENT && errno != ENOTDIR) return rl_fail_errno(err, "%s", path);
  }
  return 0;
}

/* Returns 1 when all files exist, 0 when none exists or the folder is NULL or "", -1 when only some exist or on another error. */
static int find_files(const char *folder, char paths[FILE_COUNT][PATH_SIZE], rl_error *err) {
  int found = 0, missing = 0;
  if (folder == NULL || *folder == '\0') return 0;
  for (int i = FILE_COUNT - 1; i >= 0; i--) {
    int exists = find_file(folder, i, paths[i], err);
    if (exists < 0) return -1;
    found += exists;
    if (exists == 0) missing = i;
  }
  if (found == 0 || found == FILE_COUNT) return found == FILE_COUNT;
  return rl_fail_at(err, "/dataset", "%s-idx%d-ubyte (or .gz) is missing in %s, which has other MNIST files", files[missing].name,
                    files[missing].dimensions, folder);
}

static int read_files(const char *folder, char paths[FILE_COUNT][PATH_SIZE], rl_dataset *dataset, rl_error *err) {
  uint32_t counts[FILE_COUNT];
  uint8_t **arrays[FILE_COUNT] = {&dataset->train_images, &dataset->train_labels, &dataset->test_images, &dataset->test_labels};
  for (int i = 0; i < FILE_COUNT; i++)
    if (rl_idx_read(paths[i], files[i].dimensions, &counts[i], arrays[i], err) < 0) return -1;
  for (int i = 0; i < FILE_COUNT; i += 2)
    if (counts[i] != counts[i + 1])
      return rl_fail_at(err, "/dataset", "%s: %u images in %s, but %u labels in %s", folder, counts[i], files[i].name,
                        counts[i + 1], files[i + 1].name);
  dataset->train_count = counts[0];
  dataset->test_count = counts[2];
  compute_sha256(dataset);
  snprintf(dataset->name, sizeof dataset->name, "%s", strcmp(dataset->sha256, mnist_sha256) == 0 ? "mnist" : "custom");
  return 0;
}

static int load_files(const char *folder, char paths[FILE_COUNT][PATH_SIZE], rl_dataset *dataset, rl_error *err) {
  rl_dataset loaded = {0};
  if (read_files(folder, paths, &loaded, err) < 0) {
    rl_dataset_free(&loaded);
    return -1;
  }
  *dataset = loaded;
  return 0;
}

static int render_digits(uint64_t seed, uint32_t count, uint8_t **images, uint8_t **labels, rl_error *err) {
  RL_CLEANUP(free_bytes) uint8_t *rendered = malloc((size_t)count * PIXELS + 1);
  RL_CLEANUP(free_bytes) uint8_t *digits = malloc((size_t)count + 1);
  if (rendered == NULL || digits == NULL) return rl_fail_errno(err, "can't allocate memory for %u synthetic digits", count);
  if (rl_synthetic_render(seed, count, rendered, digits, err) < 0) return -1;
  *images = rl_take_ownership(&rendered);
  *labels = rl_take_ownership(&digits);
  return 0;
}

int rl_dataset_render(uint64_t seed, uint32_t train_count, uint32_t test_count, rl_dataset *dataset, rl_error *err) {
  rl_dataset rendered = {.train_count = train_count, .test_count = test_count, .name = "synthetic"};
  if (render_digits(seed, train_count, &rendered.train_images, &rendered.train_labels, err) < 0 ||
      render_digits(~seed, test_count, &rendered.test_images, &rendered.test_labels, err) < 0) {
    rl_dataset_free(&rendered);
    return -1;
  }
  compute_sha256(&rendered);
  *dataset = rendered;
  return 0;
}

int rl_dataset_load(const char *choice, const char *folder, rl_dataset *dataset, rl_error *err) {
  bool is_auto = strcmp(choice, "auto") == 0, synthetic = strcmp(choice, "synthetic") == 0;
  char paths[FILE_COUNT][PATH_SIZE];
  if (!is_auto && !synthetic && strcmp(choice, "files") != 0)
    return rl_fail_at(err, "/dataset", "dataset must be auto, files or synthetic, not %s", choice);
  int found = synthetic ? 0 : find_files(folder, paths, err);
  if (found < 0) return -1;
  if (found > 0) return load_files(folder, paths, dataset, err);
  bool is_configured = folder != NULL && *folder != '\0';
  if (synthetic || (is_auto && !is_configured))
    return rl_dataset_render(SYNTHETIC_SEED, SYNTHETIC_TRAIN_IMAGES, SYNTHETIC_TEST_IMAGES, dataset, err);
  if (!is_configured)
    return rl_fail_at(err, "/dataset", "no MNIST files: no folder is configured: run scripts/fetch-mnist.sh and set mnist_dir");
  return rl_fail_at(err, "/dataset", "no MNIST files in the configured mnist_dir %s%s: run scripts/fetch-mnist.sh %s", folder,
                    access(folder, F_OK) == 0 ? "" : ", which does not exist", folder);
}

void rl_dataset_free(rl_dataset *dataset) {
  free(dataset->train_images);
  free(dataset->train_labels);
  free(dataset->test_images);
  free(dataset->test_labels);
  *dataset = (rl_dataset){0};
}
