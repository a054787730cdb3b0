/* Fuzzes the IDX decoder with bytes in memory, and the IDX reader with a file of the same bytes, which may be gzip. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/idx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  for (int dimensions = 0; dimensions < 5; dimensions++) {
    rl_idx idx;
    rl_error err;
    if (rl_idx_decode(data, size, dimensions, &idx, &err) < 0) continue;
    if (idx.items < data || (size_t)(data + size - idx.items) != (size_t)idx.count * idx.rows * idx.columns) abort();
  }
  int file = memfd_create("idx", 0);
  if (file < 0 || write(file, data, size) != (ssize_t)size) abort();
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  for (int dimensions = 1; dimensions <= 3; dimensions += 2) {
    uint32_t count = 0;
    uint8_t *items = NULL, sum = 0;
    rl_error err;
    if (rl_idx_read(path, dimensions, &count, &items, &err) < 0) continue;
    size_t bytes = (size_t)count * (dimensions == 3 ? 784 : 1);
    for (size_t i = 0; i < bytes; i++) sum |= items[i];
    if (dimensions == 1 && sum > 15) abort();
    free(items);
  }
  close(file);
  return 0;
}
