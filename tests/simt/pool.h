/* Pieces of memory that are used again. */
#ifndef SIMT_POOL_H
#define SIMT_POOL_H

#include <sys/mman.h>

#include <vector>

#include "machine.h"

namespace simt {

struct pool {
  size_t bytes; /* of a piece */
  std::vector<unsigned char *> free = {};

  unsigned char *take() {
    const size_t at_once = 32;
    if (free.empty()) {
      void *made = mmap(NULL, bytes * at_once, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (made == MAP_FAILED) die("out of memory");
      for (size_t i = 0; i < at_once; i++) free.push_back((unsigned char *)made + i * bytes);
    }
    unsigned char *piece = free.back();
    free.pop_back();
    return piece;
  }

  void give_back(unsigned char *piece) { free.push_back(piece); }
};

}  // namespace simt

#endif
