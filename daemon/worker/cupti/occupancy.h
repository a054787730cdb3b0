/* Theoretical occupancy, by the calculator that the toolkit ships (cuda_occupancy.h). */
#ifndef RL_CUPTI_OCCUPANCY_H
#define RL_CUPTI_OCCUPANCY_H

#include "jobs/records.h"

typedef struct rl_occupancy { /* what of a device limits residency */
  int major, minor, processors, warp_threads;
  int block_threads, processor_threads, block_registers, processor_registers;
  size_t block_shared_bytes, block_shared_optin_bytes, block_reserved_bytes, processor_shared_bytes;
} rl_occupancy;

int rl_occupancy_of_device(int device_index, rl_occupancy *occupancy, rl_error *err);
/* Resident warps over what a multiprocessor can hold; NAN when the calculator does not know the device or the row is no kernel. */
double rl_occupancy_ratio(const rl_occupancy *occupancy, const rl_activity_row *row);

#endif
