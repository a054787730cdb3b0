/* Tests valid and invalid IDX files, the choice of a data set, and synthetic digits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/dataset.h"
#include "data/idx.h"
#include "temporary_folder.h"

static char folder[64];

static int make_data_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/rl_test_data_XXXXXX");
  return mkdtemp(folder) == NULL;
}

static int remove_data_folder(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

static const char *path_of(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void write_file(const char *name, const uint8_t *data, size_t size, bool gzip) {
  if (gzip) {
    gzFile file = gzopen(path_of(name), "wb");
    assert_int_equal(gzwrite(file, data, (unsigned)size), (int)size);
    gzclose(file);
    return;
  }
  FILE *file = fopen(path_of(name), "wb");
  assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
}

/* Returns the bytes of an IDX file with `count` items; a label is its index modulo 10. The caller frees them. */
static uint8_t *make_idx(int dimensions, uint32_t count, size_t *size) {
  size_t header_size = 4 + 4 * (size_t)dimensions, item_size = dimensions == 3 ? 784 : 1;
  uint8_t *data = calloc(1, header_size + count * item_size);
  data[2] = 8;
  data[3] = (uint8_t)dimensions;
  data[6] = (uint8_t)(count >> 8);
  data[7] = (uint8_t)count;
  if (dimensions == 3) data[11] = data[15] = 28;
  for (size_t i = 0; i < count * item_size; i++) data[header_size + i] = dimensions == 1 ? i % 10 : i * 7 % 251;
  *size = header_size + count * item_size;
  return data;
}

static void write_idx(const char *name, int dimensions, uint32_t count, bool gzip) {
  size_t size;
  uint8_t *data = make_idx(dimensions, count, &size);
  write_file(name, data, size, gzip);
  free(data);
}

/* Asserts that loading fails with a message that contains `part` and leaves the data set untouched. */
static void assert_load_fails(const char *choice, const char *part) {
  rl_dataset dataset = {.train_count = 77};
  rl_error err = {0};
  if (rl_dataset_load(choice, folder, &dataset, &err) != -1) fail_msg("accepted; expected: %s", part);
  if (strstr(err.message, part) == NULL) fail_msg("\"%s\" does not contain \"%s\"", err.message, part);
  assert_int_equal(dataset.train_count, 77);
}

static void plain_and_gzip_files_and_names_with_dots_are_read(void **state) {
  (void)state;
  write_idx("train-images-idx3-ubyte", 3, 300, false);
  write_idx("train-labels.idx1-ubyte", 1, 300, false);
  write_idx("t10k-images.idx3-ubyte.gz", 3, 20, true);
  write_idx("t10k-labels-idx1-ubyte.gz", 1, 20, true);
  rl_dataset dataset;
  rl_error err = {0};
  if (rl_dataset_load("auto", folder, &dataset, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(dataset.name, "custom");
  assert_int_equal(dataset.train_count, 300);
  assert_int_equal(dataset.test_count, 20);
  assert_int_equal(strlen(dataset.sha256), 64);
  for (uint32_t i = 0; i < 300; i++) assert_int_equal(dataset.train_labels[i], i % 10);
  for (uint32_t i = 0; i < 20 * 784; i++) assert_int_equal(dataset.test_images[i], i * 7 % 251);
  char first[65];
  strcpy(first, dataset.sha256);
  rl_dataset_free(&dataset);
  size_t size;
  uint8_t *data = make_idx(3, 20, &size);
  data[size - 1] ^= 1;
  write_file("t10k-images.idx3-ubyte.gz", data, size, true);
  free(data);
  assert_int_equal(rl_dataset_load("files", folder, &dataset, &err), 0);
  assert_string_not_equal(dataset.sha256, first);
  rl_dataset_free(&dataset);
}

static void broken_files_are_errors(void **state) {
  (void)state;
  write_idx("train-images-idx3-ubyte", 3, 30, false);
  write_idx("train-labels-idx1-ubyte", 1, 30, false);
  write_idx("t10k-images-idx3-ubyte", 3, 20, false);
  assert_load_fails("auto", "t10k-labels-idx1-ubyte");
  assert_load_fails("files", "t10k-labels-idx1-ubyte");
  write_idx("t10k-labels-idx1-ubyte", 1, 21, false);
  assert_load_fails("auto", "20 images");
  write_idx("t10k-labels-idx1-ubyte", 1, 20, false);

  static const struct {
    int offset;
    uint8_t value;
    const char *message;
  } edits[] = {{0, 1, "magic"},      {2, 9, "magic"}, {3, 1, "magic"}, {4, 255, "items"}, {7, 29, "trailing"},
               {7, 31, "truncated"}, {11, 27, "28"},  {15, 29, "28"},  {11, 0, "sides"},  {12, 128, "sides"}};
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    size_t size;
    uint8_t *data = make_idx(3, 30, &size);
    data[edits[i].offset] = edits[i].value;
    for (int gzip = 0; gzip < 2; gzip++) {
      write_file("train-images-idx3-ubyte", data, size, gzip);
      assert_load_fails("auto", edits[i].message);
    }
    free(data);
  }
  write_file("train-images-idx3-ubyte", (const uint8_t *)"", 0, false);
  assert_load_fails("auto", "header");
  write_idx("train-images-idx3-ubyte", 3, 30, false);

  size_t size;
  uint8_t *labels = make_idx(1, 30, &size);
  labels[8 + 17] = 10;
  write_file("train-labels-idx1-ubyte", labels, size, false);
  assert_load_fails("auto", "label 10 of item 17");
  free(labels);
}

static void broken_gzip_is_an_error(void **state) {
  (void)state;
  write_idx("train-images-idx3-ubyte.gz", 3, 300, true);
  write_idx("train-labels-idx1-ubyte", 1, 300, false);
  write_idx("t10k-images-idx3-ubyte", 3, 20, false);
  write_idx("t10k-labels-idx1-ubyte", 1, 20, false);
  struct stat status;
  const char *path = path_of("train-images-idx3-ubyte.gz");
  assert_int_equal(stat(path, &status), 0);
  uint8_t *bytes = malloc((size_t)status.st_size);
  FILE *file = fopen(path, "rb");
  assert_int_equal(fread(bytes, 1, (size_t)status.st_size, file), status.st_size);
  fclose(file);
  write_file("train-images-idx3-ubyte.gz", bytes, (size_t)status.st_size - 6, false); /* the checksum is truncated */
  assert_load_fails("auto", "gzip");
  write_file("train-images-idx3-ubyte.gz", bytes, (size_t)status.st_size / 2, false);
  assert_load_fails("auto", "gzip");
  bytes[status.st_size - 8] ^= 1; /* a wrong checksum */
  write_file("train-images-idx3-ubyte.gz", bytes, (size_t)status.st_size, false);
  assert_load_fails("auto", "gzip");
  free(bytes);
}

/* The reader rejects a small file that inflates to far more bytes than its header announces. It stops inflating after the first
 * byte beyond that number. */
static void gzip_bomb_is_rejected(void **state) {
  (void)state;
  gzFile file = gzopen(path_of("train-images-idx3-ubyte.gz"), "wb9");
  size_t size;
  uint8_t *two_images = make_idx(3, 2, &size);
  gzwrite(file, two_images, (unsigned)size);
  free(two_images);
  uint8_t *zeros = calloc(1, 1 << 20);
  for (int i = 0; i < 512; i++) gzwrite(file, zeros, 1 << 20);
  free(zeros);
  gzclose(file);
  uint32_t count;
  uint8_t *items;
  rl_error err = {0};
  assert_int_equal(rl_idx_read(path_of("train-images-idx3-ubyte.gz"), 3, &count, &items, &err), -1);
  assert_non_null(strstr(err.message, "trailing bytes: 1569 bytes")); /* two images of 784 bytes, and one byte more */
}

static void missing_files_are_replaced_only_if_no_folder_is_configured(void **state) {
  (void)state;
  rl_dataset dataset;
  rl_error err = {0};
  assert_load_fails("files", "no MNIST files");
  assert_int_equal(rl_dataset_load("files", NULL, &dataset, &err), -1);
  assert_int_equal(rl_dataset_load("nonsense", NULL, &dataset, &err), -1);
  assert_string_equal(err.json_pointer, "/dataset");
  assert_load_fails("auto", "no MNIST files in the configured mnist_dir"); /* never synthetic digits instead */
  assert_int_equal(rl_dataset_load("auto", "/nonexistent/digits", &dataset, &err), -1);
  assert_non_null(strstr(err.message, "/nonexistent/digits, which does not exist"));
  assert_int_equal(rl_dataset_load("auto", "", &dataset, &err), 0);
  assert_string_equal(dataset.name, "synthetic");
  assert_int_equal(dataset.train_count, 60000);
  assert_int_equal(dataset.test_count, 10000);
  /* The bytes must not change: results are comparable only on the same data. */
  assert_string_equal(dataset.sha256, "22fdb36cb924800654e39ea2faaa191323fcff9a7bad7bc5544ea0f2d47ce827");
  rl_dataset_free(&dataset);
}

static void synthetic_digits_are_deterministic(void **state) {
  (void)state;
  rl_dataset few, more, other;
  rl_error err = {0};
  assert_int_equal(rl_dataset_render(5, 300, 40, &few, &err), 0);
  assert_int_equal(rl_dataset_render(5, 1000, 100, &more, &err), 0);
  assert_int_equal(rl_dataset_render(6, 300, 40, &other, &err), 0);
  assert_memory_equal(few.train_images, more.train_images, 300 * 784);
  assert_memory_equal(few.test_images, more.test_images, 40 * 784);
  assert_memory_equal(few.train_labels, more.train_labels, 300);
  assert_memory_not_equal(few.train_images, other.train_images, 300 * 784);
  assert_memory_not_equal(few.train_images, few.test_images, 40 * 784);
  int seen[10] = {0};
  for (int i = 0; i < 1000; i++) seen[more.train_labels[i]]++;
  for (int digit = 0; digit < 10; digit++) assert_in_range(seen[digit], 60, 140);
  for (int i = 0; i < 1000; i++) { /* no image is blank or solid */
    int bright = 0;
    for (int p = 0; p < 784; p++) bright += more.train_images[i * 784 + p] > 100;
    assert_in_range(bright, 10, 400);
  }
  rl_dataset_free(&few);
  rl_dataset_free(&more);
  rl_dataset_free(&other);
}

/* Skipped without the MNIST files. */
static void mnist_is_recognised(void **state) {
  (void)state;
  const char *mnist = getenv("ROOFLINED_MNIST_DIR");
  if (mnist == NULL) mnist = RL_SOURCE_DIR "/../shared/mnist";
  if (access(mnist, R_OK) != 0) skip();
  rl_dataset dataset;
  rl_error err = {0};
  if (rl_dataset_load("files", mnist, &dataset, &err) != 0) fail_msg("%s", err.message);
  assert_string_equal(dataset.name, "mnist");
  assert_int_equal(dataset.train_count, 60000);
  assert_int_equal(dataset.train_labels[0], 5);
  assert_int_equal(dataset.test_labels[0], 7);
  rl_dataset_free(&dataset);
}

int main(void) {
#define WITH_FOLDER(TEST) cmocka_unit_test_setup_teardown(TEST, make_data_folder, remove_data_folder)
  const struct CMUnitTest tests[] = {WITH_FOLDER(plain_and_gzip_files_and_names_with_dots_are_read),
                                     WITH_FOLDER(broken_files_are_errors),
                                     WITH_FOLDER(broken_gzip_is_an_error),
                                     WITH_FOLDER(gzip_bomb_is_rejected),
                                     WITH_FOLDER(missing_files_are_replaced_only_if_no_folder_is_configured),
                                     cmocka_unit_test(synthetic_digits_are_deterministic),
                                     cmocka_unit_test(mnist_is_recognised)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
