/* Computes the theoretical occupancy of a launch with NVIDIA's occupancy calculator (cuda_occupancy.h): how many blocks are
 * resident on an SM, and which resource limits this number. */
#ifndef RL_CUPTI_OCCUPANCY_H
#define RL_CUPTI_OCCUPANCY_H

#include "model/records.h"

typedef struct rl_device_limits { /* limits from cudaDeviceProp */
  int major, minor, sm_count, warp_size;
  int max_block_threads, max_sm_threads, max_block_registers, max_sm_registers;
  size_t max_block_shared_bytes, max_block_shared_optin_bytes, reserved_block_shared_bytes, max_sm_shared_bytes;
} rl_device_limits;

typedef struct rl_block_resources { /* resources that one block of a launch takes */
  int threads, registers;           /* registers: per thread */
  int barriers;                     /* named barriers; negative: unknown, the calculator's default applies */
  size_t static_shared_bytes, dynamic_shared_bytes;
  size_t shared_config_bytes; /* shared-memory carveout that CUPTI reported; 0: unknown */
  bool has_carveout_request;  /* the function has a preferred carveout; else the driver chooses one that limits no block */
  int carveout_request_pct;   /* the preferred carveout in percent of the SM's shared memory */
} rl_block_resources;

typedef struct rl_residency { /* *_limit: blocks per SM that this resource allows (ncu: launch__occupancy_limit_*) */
  int block_limit, register_limit, shared_limit, warp_limit, barrier_limit;
  int blocks, warps;             /* resident blocks per SM (the smallest limit), and the number of their warps */
  int allocated_registers;       /* registers allocated per thread */
  size_t allocated_shared_bytes; /* shared memory allocated per block */
} rl_residency;

int rl_device_limits_read(int device_index, rl_device_limits *limits, rl_error *err);
/* Returns the resources of a kernel's launch. barriers: from the kernel's cubin; negative when unknown. */
rl_block_resources rl_block_resources_of(const rl_activity_row *row, int barriers);
/* Computes how many blocks of a launch are resident on an SM. False when the calculator does not know the device, or no block
 * fits. */
bool rl_residency_of(const rl_device_limits *limits, const rl_block_resources *resources, rl_residency *residency);
/* Returns whether the reported carveout can be the launch's carveout, which must hold the shared memory of all resident blocks.
 * For some kernels, CUPTI reports the smaller carveout of an earlier launch. */
bool rl_shared_config_fits(const rl_block_resources *resources, const rl_residency *residency);
/* Returns the resident warps divided by the SM's maximum. NAN: unknown, or the row is not a kernel. */
double rl_occupancy_ratio(const rl_device_limits *limits, const rl_activity_row *row, int barriers);
/* Returns ncu's sum over an occupancy curve (launch__occupancy_per_*): the resident warps per SM if the kernel's blocks used 0,
 * 1, ..., 256 registers per thread, 0, 16, ..., max_block_threads threads, or 0, 1, ..., 64 barriers. The carveout
 * shared_config_bytes limits the blocks at each point; 0: it limits none. */
typedef enum rl_occupancy_resource { RL_OCCUPANCY_REGISTERS, RL_OCCUPANCY_THREADS, RL_OCCUPANCY_BARRIERS } rl_occupancy_resource;
double rl_occupancy_sum(const rl_device_limits *limits, const rl_block_resources *resources, rl_occupancy_resource varied);
/* Returns the same sum in percent of the SM's maximum (derived__pct_occupancy_per_*); ncu truncates each point to whole
 * percents. */
double rl_occupancy_pct_sum(const rl_device_limits *limits, const rl_block_resources *resources, rl_occupancy_resource varied);
/* Appends three series to kernel `ordinal`: resident warps per SM over registers per thread (occupancy_by_registers), threads per
 * block (occupancy_by_block_size) and shared memory per block (occupancy_by_shared_bytes). Each series varies one resource and
 * keeps the other two. */
int rl_occupancy_curves(const rl_device_limits *limits, const rl_block_resources *resources, int64_t ordinal, rl_records *records,
                        rl_error *err);

#endif
