/* Replaces NVIDIA's header of this name, which needs nvcc. Implements the only group that our kernels use: the cluster of the
 * calling thread. */
#ifndef SIMT_COOPERATIVE_GROUPS_H
#define SIMT_COOPERATIVE_GROUPS_H

#include "emulator.h"

namespace cooperative_groups {

struct cluster_group {
  void sync() const {
    simt::cluster_arrive();
    simt::cluster_wait();
  }
  unsigned block_rank() const { return simt::cluster_rank(); }
  unsigned num_blocks() const { return simt::cluster_blocks(); }
  template <class T> T *map_shared_rank(T *local, unsigned rank) const {
    return (T *)simt::shared_pointer(simt::mapa(simt::shared_address(local), rank), alignof(T));
  }
};
inline cluster_group this_cluster() { return {}; }

}  // namespace cooperative_groups

#endif
