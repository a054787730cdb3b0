/* A machine that runs CUDA kernels on the CPU, thread by thread, so that tests can hold them against references where there is no
 * GPU, under AddressSanitizer and UndefinedBehaviorSanitizer, too. translate.py makes C++ of a kernel's source, cuda.h and ptx.h
 * are the language that it is then compiled in, runtime.cpp is the part of the CUDA runtime that launchers call.
 *
 * What it does
 *   Threads are fibers of one CPU thread. A thread runs until it waits for others (or passes an atomic operation, a fence or a
 *   spin's pause); which warp goes on then, for how long, and in which order its lanes run, is drawn at random, and so are the
 *   order of blocks and how many are there at once. RL_SIMT_SEED repeats an order. A missing barrier gives a wrong answer in most
 *   orders.
 *   Every block has shared memory of its own, filled with 0xff (NaN) before it is used; variables are aligned as declared and no
 *   better, and AddressSanitizer knows their bounds. Static, dynamic and distributed shared memory, with the limits of compute
 *   capability 9.0.
 *   Copies by cp.async happen when they are issued or when they are waited for, by lot; stores that count at an mbarrier
 *   (st.async) when they are issued or when somebody looks at it.
 *   mma, ldmatrix, shuffles and votes are done when all lanes of the mask have come, with the fragment layouts of the PTX ISA.
 *
 * What ends the program, with what every thread waits for: a barrier or a warp operation that not all come to, lanes of a warp
 * that meet in different operations, shared addresses out of bounds or misaligned.
 *
 * What it does not do
 *   Memory is sequentially consistent: fences and the order of memory operations are not tested. Nor is time.
 *   Kernels run one after another: programmatic dependent launches do not overlap, cudaGridDependencySynchronize has nothing to
 *   wait for.
 *   Plain loads and stores are no points where another thread may go on; only what is between two waits is done in another order.
 *   Nor does it know how many blocks fit: a cooperative launch has room for all of its own.
 *   What is not in cuda.h and ptx.h (wgmma, TMA, textures, ...) does not compile. */
#ifndef SIMT_MACHINE_H
#define SIMT_MACHINE_H

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>

extern "C" uint32_t simt_most_cluster; /* blocks of a cluster: those of compute capability 9.0, or what a test says */

namespace simt {

enum { WARP = 32, ALL_LANES = -1, MOST_THREADS = 1024, NAMED_BARRIERS = 16 };
enum { STATIC_BYTES = 48 << 10, MOST_SHARED_BYTES = 227 << 10, PORTABLE_CLUSTER = 8 };

struct shape {
  dim3 grid, block;
  size_t dynamic_bytes = 0;
  dim3 cluster = dim3(1);
  bool cooperative = false; /* all blocks at once */
};

/* What cudaFuncSetAttribute says of a kernel. */
struct allowed {
  size_t dynamic_bytes = STATIC_BYTES;
  uint32_t cluster = PORTABLE_CLUSTER; /* blocks */
};
allowed &allowed_to(const void *kernel);

/* Runs the kernel to its end; body is what each thread does. */
cudaError_t launch(const shape &of, const void *kernel, const std::function<void()> &body);

/* --- for the thread that runs ------------------------------------------------------------------------------------------ */

uint32_t lane();
/* All lanes of mask that have not ended meet; the last to come performs the operation for all of them: lanes[i] is what lane i
 * gave as `mine`, NULL for lanes that are not there. whole: no lane may be missing. */
typedef void (*operation)(void *const lanes[WARP]);
void meet(const char *name /* the same pointer for the same operation */, uint32_t mask, void *mine, operation perform,
          bool whole = false);

void block_barrier(const char *name, uint32_t id = 0, uint32_t threads = 0 /* all */, bool waits = true);
void cluster_arrive();
void cluster_wait();
/* A point where others may go on. */
void pass();

/* Shared memory. Addresses are those of PTX: 32 bits, of the block's own memory, or of a block of the cluster. */
void *shared_variable(const void *key, size_t bytes, size_t alignment);
void *dynamic_memory(size_t alignment);
uint32_t shared_address(const void *of);
uint32_t address_in_cluster(uint32_t address, uint32_t rank);
void *at_shared_address(uint32_t address, size_t bytes);
uint32_t cluster_rank();
uint32_t cluster_blocks();

/* cp.async: zero_from: bytes behind it are zeroed instead of copied. */
void copy_later(void *to, const void *from, size_t bytes, size_t copied);
void close_copy_group();
void finish_copies(size_t but_the_last_groups, bool open_ones_too);

/* mbarriers, by the addresses of PTX: `bytes` may come before or behind what expects them. A value comes when it is sent or when
 * somebody looks for it, by lot. */
void begin_arrivals(uint32_t barrier, uint32_t count);
void end_arrivals(uint32_t barrier);
void expect_bytes(uint32_t barrier, uint32_t bytes);
void send(uint32_t to, const void *value, uint32_t bytes, uint32_t barrier);
bool look_for_phase(uint32_t barrier, uint32_t parity);

[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace simt

#endif
