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
    uint8_t *items = NULL, all_bits = 0;
    rl_error err;
    if (rl_idx_read(path, dimensions, &count, &items, &err) < 0) continue;
    size_t bytes = (size_t)count * (dimensions == 3 ? 784 : 1);
    for (size_t i = 0; i < bytes; i++) all_bits |= items[i]; /* reads every byte that the reader returned */
    if (dimensions == 1 && all_bits > 15) abort();           /* labels are 0 to 9, so no bit above bit 3 is set */
    free(items);
  }
  close(file);
  return 0;
}
