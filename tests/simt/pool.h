/* A pool of equally large pieces of memory. The emulator takes the stacks of threads and the shared memory of thread blocks from
 * such pools, because each launch needs many pieces for a short time. */
#ifndef SIMT_POOL_H
#define SIMT_POOL_H

#include <sys/mman.h>

#include <vector>

#include "emulator.h"

namespace simt {

struct pool {
  size_t piece_bytes;
  std::vector<unsigned char *> free_pieces = {};

  unsigned char *allocate() {
    const size_t pieces_per_mmap = 32;
    if (free_pieces.empty()) {
      void *mapped =
          mmap(NULL, piece_bytes * pieces_per_mmap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (mapped == MAP_FAILED) die("out of memory");
      for (size_t i = 0; i < pieces_per_mmap; i++) free_pieces.push_back((unsigned char *)mapped + i * piece_bytes);
    }
    unsigned char *piece = free_pieces.back();
    free_pieces.pop_back();
    return piece;
  }

  void release(unsigned char *piece) { free_pieces.push_back(piece); }
};

}  // namespace simt

#endif
