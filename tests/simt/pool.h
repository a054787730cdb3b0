/* A pool of memory blocks that have the same size. The emulator takes the stacks of threads and the shared memory of blocks from
 * such pools, because each launch needs many of them for a short time. */
#ifndef SIMT_POOL_H
#define SIMT_POOL_H

#include <sys/mman.h>

#include <vector>

#include "emulator.h"

namespace simt {

struct pool {
  size_t block_bytes;
  std::vector<unsigned char *> free = {};

  unsigned char *allocate() {
    const size_t blocks_per_mmap = 32;
    if (free.empty()) {
      void *mapped =
          mmap(NULL, block_bytes * blocks_per_mmap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (mapped == MAP_FAILED) die("out of memory");
      for (size_t i = 0; i < blocks_per_mmap; i++) free.push_back((unsigned char *)mapped + i * block_bytes);
    }
    unsigned char *block = free.back();
    free.pop_back();
    return block;
  }

  void release(unsigned char *block) { free.push_back(block); }
};

}  // namespace simt

#endif
