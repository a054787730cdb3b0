#include "data/dataset.h"

#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/idx.h"

enum { PATH = 1024, PIXELS = 784, SYNTHETIC_TRAIN = 60000, SYNTHETIC_TEST = 10000, SYNTHETIC_SEED = 1 };

/* LeCun, Cortes, Burges: the four files of http://yann.lecun.com/exdb/mnist, decoded. */
static const char mnist_sha256[] = "06b0d1f124c4e5fa796686ade41a9b778edacc8622f2195a352ef479ad44fc16";

static const struct {
  const char *name;
  int dimensions;
} files[4] = {{"train-images", 3}, {"train-labels", 1}, {"t10k-images", 3}, {"t10k-labels", 1}};

static void hash(rl_dataset *dataset) {
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

/* "train-images-idx3-ubyte", the dotted spelling of some mirrors, either gzipped. 1: found, 0: not there. */
static int locate(const char *folder, int file, char path[PATH], rl_error *err) {
  static const char *const spellings[] = {"%s/%s-idx%d-ubyte", "%s/%s-idx%d-ubyte.gz", "%s/%s.idx%d-ubyte",
                                          "%s/%s.idx%d-ubyte.gz"};
  for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
    if (snprintf(path, PATH, spellings[i], folder, files[file].name, files[file].dimensions) >= PATH)
      return rl_fail_at(err, "/dataset", "the MNIST folder's path is longer than %d bytes", PATH);
    if (access(path, R_OK) == 0) return 1;
    if (errno != ENOENT && errno != ENOTDIR) return rl_fail_errno(err, "%s", path);
  }
  return 0;
}

static int load_files(const char *folder, char paths[4][PATH], rl_dataset *dataset, rl_error *err) {
  uint32_t counts[4];
  uint8_t **arrays[4] = {&dataset->train_images, &dataset->train_labels, &dataset->test_images, &dataset->test_labels};
  for (int i = 0; i < 4; i++)
    if (rl_idx_read(paths[i], files[i].dimensions, &counts[i], arrays[i], err) != 0) return -1;
  for (int i = 0; i < 4; i += 2)
    if (counts[i] != counts[i + 1])
      return rl_fail_at(err, "/dataset", "%s: %u images in %s, but %u labels in %s", folder, counts[i], files[i].name,
                        counts[i + 1], files[i + 1].name);
  dataset->train_count = counts[0];
  dataset->test_count = counts[2];
  hash(dataset);
  snprintf(dataset->name, sizeof dataset->name, "%s", strcmp(dataset->sha256, mnist_sha256) == 0 ? "mnist" : "custom");
  return 0;
}

int rl_dataset_load(const char *which, const char *folder, rl_dataset *dataset, rl_error *err) {
  bool automatic = strcmp(which, "auto") == 0;
  bool synthetic = strcmp(which, "synthetic") == 0;
  if (!automatic && !synthetic && strcmp(which, "files") != 0)
    return rl_fail_at(err, "/dataset", "dataset must be auto, files or synthetic, not %s", which);
  char paths[4][PATH];
  int found = 0, missing = 0;
  for (int i = 3; i >= 0 && !synthetic && folder != NULL && *folder != '\0'; i--) {
    int there = locate(folder, i, paths[i], err);
    if (there < 0) return -1;
    found += there;
    if (there == 0) missing = i;
  }
  rl_dataset loaded = {0};
  if (found == 4) {
    if (load_files(folder, paths, &loaded, err) != 0) {
      rl_dataset_free(&loaded);
      return -1;
    }
  } else if (found > 0) {
    return rl_fail_at(err, "/dataset", "%s-idx%d-ubyte (or .gz) is missing in %s, where other MNIST files are",
                      files[missing].name, files[missing].dimensions, folder);
  } else if (!automatic && !synthetic) {
    return rl_fail_at(err, "/dataset", "no MNIST files%s%s: run scripts/fetch-mnist.sh and set mnist_dir",
                      folder != NULL && *folder != '\0' ? " in " : ": no folder is configured", folder != NULL ? folder : "");
  } else {
    if (rl_synthetic_render(SYNTHETIC_SEED, SYNTHETIC_TRAIN, SYNTHETIC_TEST, &loaded, err) != 0) return -1;
    hash(&loaded);
  }
  *dataset = loaded;
  return 0;
}

void rl_dataset_free(rl_dataset *dataset) {
  free(dataset->train_images);
  free(dataset->train_labels);
  free(dataset->test_images);
  free(dataset->test_labels);
  *dataset = (rl_dataset){0};
}
