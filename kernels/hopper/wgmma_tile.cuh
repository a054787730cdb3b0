/* The instruction wgmma (wgmma.cuh) for large products: tiles of 64 × 256 or 64 × 128 sums. Both operands are in shared memory.
 *
 * Without swizzling, an operand consists of core matrices of 8 rows × 16 bytes, each contiguous (128 bytes). 8 rows of one
 * instruction's operand are two adjacent core matrices; the core matrices of the next 8 rows follow them. */
#ifndef RL_HOPPER_WGMMA_TILE_CUH
#define RL_HOPPER_WGMMA_TILE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "hopper/wgmma.cuh"

enum { WGMMA_M = 64, WGMMA_N = 256, WGMMA_SUMS_PER_THREAD = WGMMA_M * WGMMA_N / WGMMA_THREADS };

struct tf32 {
  float value;
};

/* Returns the matrix descriptor of an operand without swizzling. It contains the operand's address, and the distances between
 * neighbouring core matrices along k and along the rows, all in units of 16 bytes. */
__device__ static inline uint64_t wgmma_descriptor(const void *shared) {
  const uint64_t address = (uint64_t)__cvta_generic_to_shared(shared), k_distance_bytes = 128, row_distance_bytes = 256;
  return (address & 0x3ffff) >> 4 | k_distance_bytes >> 4 << 16 | row_distance_bytes >> 4 << 32;
}

/* Returns the matrix descriptor of an operand whose rows have 128 bytes and the 128-byte swizzle, as TMA stores them. `shared`
 * must be aligned to 1024 bytes, the size of 8 rows. To advance by one instruction along k, add WGMMA_STEP_BYTES to `shared`. */
__device__ static inline uint64_t wgmma_swizzled_descriptor(const void *shared) {
  const uint64_t address = (uint64_t)__cvta_generic_to_shared(shared), row_distance_bytes = 1024, swizzle_128_bytes = 1;
  const uint64_t ignored_k_distance = 1;
  return (address & 0x3ffff) >> 4 | ignored_k_distance << 16 | row_distance_bytes >> 4 << 32 | swizzle_128_bytes << 62;
}

#define WGMMA_REGISTERS                                                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define WGMMA_REGISTERS_64                                                           \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

/* Defines wgmma for element type T: sums += A · B, or sums = A · B if `accumulate` is false. The tile has 64 × 256 elements (128
 * sums per thread) or 64 × 128 (64 sums). IMMEDIATES: A and B are not negated (imm-scale 1) and, for 2-byte types, not transposed
 * (imm-trans 0). */
#define WGMMA(T, SHAPE, IMMEDIATES)                                                                                             \
  __device__ static inline void wgmma(T, float(&sums)[WGMMA_SUMS_PER_THREAD], uint64_t a, uint64_t b, bool accumulate = true) { \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %130, 0; wgmma.mma_async.sync.aligned.m64n256" SHAPE " {" WGMMA_REGISTERS      \
                 "}, %128, %129, p, " IMMEDIATES "; }"                                                                          \
                 : WGMMA_64(sums, 0), WGMMA_64(sums, 64)                                                                        \
                 : "l"(a), "l"(b), "r"((int)accumulate));                                                                       \
  }                                                                                                                             \
  __device__ static inline void wgmma(T, float(&sums)[WGMMA_SUMS_PER_THREAD / 2], uint64_t a, uint64_t b, bool accumulate) {    \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128" SHAPE " {" WGMMA_REGISTERS_64    \
                 "}, %64, %65, p, " IMMEDIATES "; }"                                                                            \
                 : WGMMA_64(sums, 0)                                                                                            \
                 : "l"(a), "l"(b), "r"((int)accumulate));                                                                       \
  }
WGMMA(__half, "k16.f32.f16.f16", "1, 1, 0, 0")
WGMMA(__nv_bfloat16, "k16.f32.bf16.bf16", "1, 1, 0, 0")
WGMMA(tf32, "k8.f32.tf32.tf32", "1, 1")
#undef WGMMA

#endif
