/* An emulator of CUDA: runs kernels on the CPU, thread by thread, so that tests compare them with references where there is no
 * GPU, also under AddressSanitizer and UndefinedBehaviorSanitizer. translate.py turns a kernel's source into C++. cuda.h and
 * ptx.h define the CUDA and PTX functions that this C++ calls. runtime.cpp has the functions of the CUDA runtime that host code
 * calls.
 *
 * Behaviour
 *   Threads are fibers of one CPU thread. A thread runs until it waits for others or reaches a yield point (an atomic operation,
 *   a fence, a load in a spin loop). The scheduler picks at random which warp runs next, how many times its lanes are resumed
 *   before another warp is picked, the order of its lanes, the order of the blocks, and how many blocks are resident at a time. A
 *   run prints its seed; the environment variable RL_SIMT_SEED=N repeats the run with seed N. A missing barrier gives a wrong
 *   result in most schedules. Each block has its own shared memory, filled with 0xff (NaN) before the first use. Variables have
 *   their declared alignment and no larger one, and AddressSanitizer knows their bounds. Static, dynamic and distributed shared
 *   memory have the limits of compute capability 9.0. cp.async copies either when it is issued or when a thread waits for it, at
 *   random; st.async stores either when it is issued or when a thread tests the mbarrier, at random. mma, ldmatrix, shuffles and
 *   votes run when all lanes of the mask have arrived, with the fragment layouts of the PTX ISA.
 *
 * Errors that end the program, with a list of the waits of all threads: a barrier or a warp operation at which not all threads
 * arrive, lanes of a warp that arrive at different operations, shared addresses that are out of bounds or misaligned.
 *
 * Limits
 *   Memory is sequentially consistent, so the emulator finds no missing fence and no wrong memory order.
 *   The emulator does not model time.
 *   Kernels run one after another: programmatic dependent launches do not overlap, and cudaGridDependencySynchronize returns at
 *   once.
 *   Plain loads and stores are no yield points: threads interleave only at waits and yield points.
 *   A cooperative launch never fails for lack of room: all of its blocks are resident.
 *   wgmma computes at once when its warp issues it, so a missing wait is not found.
 *   Features that cuda.h and ptx.h do not implement (TMA, textures, …) do not compile. */
#ifndef SIMT_EMULATOR_H
#define SIMT_EMULATOR_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>

/* Maximum number of blocks of a cluster: 16 as with compute capability 9.0, unless a test lowers it. */
extern "C" uint32_t simt_max_cluster;

namespace simt {

enum { WARP = 32, MAX_THREADS = 1024, NAMED_BARRIERS = 16 };
enum { STATIC_BYTES = 48 << 10, MAX_SHARED_BYTES = 227 << 10, PORTABLE_CLUSTER = 8 };

struct launch_config {
  dim3 grid, block;
  size_t dynamic_bytes = 0;
  dim3 cluster = dim3(1);
  bool cooperative = false; /* all blocks are resident */
};

/* The attributes that cudaFuncSetAttribute sets. */
struct kernel_attributes {
  size_t max_dynamic_bytes = STATIC_BYTES;
  uint32_t max_cluster = PORTABLE_CLUSTER; /* blocks */
};
kernel_attributes &attributes_of(const void *kernel);

/* Runs a kernel to its end. Each thread calls `body`. kernel: the key of the attributes in attributes_of; it is not called. */
cudaError_t launch(const launch_config &config, const void *kernel, const std::function<void()> &body);

/* --- functions for the running emulated thread -------------------------------------------------------------------------- */

uint32_t lane();
uint32_t warp(); /* index in the block */

/* Waits until all lanes of `mask` that have not exited have called sync_lanes with the same name (compared by address). The last
 * of these lanes runs `perform` for all: lanes[i] is the `operand` of lane i, or NULL if lane i does not take part. require_all:
 * no lane of the mask may have exited. */
typedef void (*lane_operation)(void *const lanes[WARP]);
void sync_lanes(const char *name, uint32_t mask, void *operand, lane_operation perform, bool require_all = false);

/* Implements bar.sync and, if `waits` is false, bar.arrive. threads: number of threads that the barrier waits for; 0 stands for
 * all threads of the block. */
void block_barrier(const char *name, uint32_t id = 0, uint32_t threads = 0, bool waits = true);
void cluster_arrive();
void cluster_wait();

/* Lets the scheduler run other threads. */
void yield_point();

/* Functions for shared memory. key: an address that is unique to the variable. A uint32_t is a shared address as in PTX: an
 * address in the calling block, or, from mapa, in another block of its cluster. */
void *shared_variable(const void *key, size_t bytes, size_t alignment);
void *dynamic_shared_memory(size_t alignment);
uint32_t shared_address(const void *pointer);
uint32_t mapa(uint32_t address, uint32_t rank);
void *shared_pointer(uint32_t address, size_t bytes); /* ends the program if the bytes are out of bounds or misaligned */
void *shared_pointer(uint32_t address, size_t bytes, size_t alignment);
uint32_t cluster_rank();
uint32_t cluster_blocks();

/* Begins to copy the first `copied` of `bytes` bytes, and to write zeros to the rest. */
void cp_async(void *to, const void *from, size_t bytes, size_t copied);
void cp_async_commit_group();
void cp_async_wait_group(size_t newest_groups); /* waits for all committed groups but the newest ones */
void cp_async_wait_all();

/* Operations on mbarriers. `barrier` is the shared address of the mbarrier. Bytes may arrive before or after they are
 * expected. */
void mbarrier_init(uint32_t barrier, uint32_t count);
void mbarrier_inval(uint32_t barrier);
void mbarrier_arrive(uint32_t barrier, uint32_t expected_bytes);
/* Returns whether the phase has ended. Otherwise it first waits for the next event that can end it, or for a time limit. */
bool mbarrier_try_wait(uint32_t barrier, uint32_t parity);
void st_async(uint32_t to, const void *value, uint32_t bytes, uint32_t barrier);
void cp_async_bulk(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier);

[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace simt

#endif
