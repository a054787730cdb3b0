/* How many blocks of a launch an SM can hold and what limits them, by the calculator that the toolkit ships
 * (cuda_occupancy.h). */
#ifndef RL_CUPTI_OCCUPANCY_H
#define RL_CUPTI_OCCUPANCY_H

#include "model/records.h"

typedef struct rl_occupancy { /* what of a device limits residency */
  int major, minor, processors, warp_threads;
  int block_threads, processor_threads, block_registers, processor_registers;
  size_t block_shared_bytes, block_shared_optin_bytes, block_reserved_bytes, processor_shared_bytes;
} rl_occupancy;

typedef struct rl_footprint { /* what one block of a launch takes */
  int threads, registers;     /* registers of a thread */
  int barriers;               /* negative: not known, and taken for the calculator's default */
  size_t static_shared_bytes, dynamic_shared_bytes;
  size_t shared_config_bytes; /* what of L1 is shared memory during the launch; 0: as much as the device has */
} rl_footprint;

typedef struct rl_residency { /* blocks an SM can hold, as far as each resource goes */
  int by_blocks, by_registers, by_shared, by_warps, by_barriers;
  int blocks, warps;             /* resident: the least of these */
  int allocated_registers;       /* of a thread */
  size_t allocated_shared_bytes; /* of a block */
} rl_residency;

int rl_occupancy_of_device(int device_index, rl_occupancy *occupancy, rl_error *err);
/* barriers: what the kernel's code says; negative when it is not known. */
rl_footprint rl_footprint_of(const rl_activity_row *row, int barriers);
/* false when the calculator does not know the device, or no block fits. */
bool rl_residency_of(const rl_occupancy *occupancy, const rl_footprint *footprint, rl_residency *residency);
/* Resident warps over what a multiprocessor can hold; NAN when not known, or the row is no kernel. */
double rl_occupancy_ratio(const rl_occupancy *occupancy, const rl_activity_row *row, int barriers);
/* Points of kernel `ordinal`: resident warps if it took other registers, threads or shared memory than it does, as the series
 * occupancy_by_registers, occupancy_by_block_size and occupancy_by_shared_bytes. */
int rl_occupancy_curves(const rl_occupancy *occupancy, const rl_footprint *footprint, int64_t ordinal, rl_records *records,
                        rl_error *err);

#endif
