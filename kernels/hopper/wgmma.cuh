/* The instruction wgmma of Hopper (sm_90a): a warpgroup (128 threads) asynchronously multiplies operands A and B and adds the
 * product to 64 rows of sums in registers. A and B are in shared memory; A may also be in registers. Whatever the type of its
 * elements, one instruction reads 32 bytes along k of each row of A and B. A transposed operand is stored with k as its rows.
 * Source: PTX ISA 9.0, "Asynchronous warpgroup level matrix instructions". wgmma_tile.cuh has the shapes for large products.
 *
 * The layout of the sums: sums[4 · block + 2 · i + j] of a thread is the element in row 16 · warp + lane / 4 + 8 · i and column
 * 8 · block + 2 · (lane % 4) + j, for i and j in {0, 1}. */
#ifndef RL_HOPPER_WGMMA_CUH
#define RL_HOPPER_WGMMA_CUH

#include <cstdint>

#include "async_copy.cuh"

enum {
  WGMMA_STEP_BYTES = 32, /* bytes of a row of A or B that one instruction reads */
  WGMMA_THREADS = 128
};

/* Returns the matrix descriptor of an operand in rows of ROW_BYTES (64 or 128) bytes with the swizzle of this size. A row has one
 * row of the operand, or, if the operand is transposed, one k. address: shared address of the first row, plus WGMMA_STEP_BYTES
 * for each instruction along a row. The memory of the operand begins at a multiple of 8 · ROW_BYTES; its first row may be any
 * row. block_bytes: distance of the next ROW_BYTES bytes of a transposed operand with longer rows. */
template <int ROW_BYTES>
__device__ static inline uint64_t wgmma_row_descriptor(uint32_t address, uint32_t block_bytes = WGMMA_STEP_BYTES / 2) {
  static_assert(ROW_BYTES == 64 || ROW_BYTES == 128, "rows have 64 or 128 bytes");
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(block_bytes >> 4) << 16 | (uint64_t)(8 * ROW_BYTES >> 4) << 32 |
         (uint64_t)(ROW_BYTES == 128 ? 1 : 2) << 62;
}

/* Returns the offset of a vector of 16 bytes in the memory of wgmma_row_descriptor. The eight vectors of 128 bytes are in
 * different banks, and so are those of eight rows. */
template <int ROW_BYTES> __device__ static inline uint32_t wgmma_row_offset(uint32_t row, uint32_t vector) {
  return row * ROW_BYTES + ((vector ^ (row * ROW_BYTES / 128 % (ROW_BYTES / 16))) * 16);
}

__device__ static inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ static inline void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/* Waits for all groups except the newest PENDING. */
template <int PENDING> __device__ static inline void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Prevents the compiler from moving accesses of sums across the asynchronous instructions that write them. */
template <int COUNT> __device__ static inline void wgmma_fence_sums(float (&sums)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

/* Changes the number of registers that each thread of the warpgroup may use. */
template <int COUNT> __device__ static inline void raise_register_limit(void) {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ static inline void lower_register_limit(void) {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

#define WGMMA_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WGMMA_16(d, i) WGMMA_4(d, i), WGMMA_4(d, i + 4), WGMMA_4(d, i + 8), WGMMA_4(d, i + 12)
#define WGMMA_64(d, i) WGMMA_16(d, i), WGMMA_16(d, i + 16), WGMMA_16(d, i + 32), WGMMA_16(d, i + 48)

/* WGMMA_REGISTERS_N: the registers of N sums, as the first operands. tests/simt/translate.py expands these macros, too. */
#define WGMMA_REGISTERS_16 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define WGMMA_REGISTERS_32                                                 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WGMMA_REGISTERS_48                                                           \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"

/* The products below are FP16 with FP32 sums: sums += A · B, or sums = A · B if `accumulate` is false. a, b: descriptors. */
__device__ static inline void wgmma_m64n96k16(float (&sums)[48], uint64_t a, uint64_t b, bool accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %50, 0; wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16 {" WGMMA_REGISTERS_48
               "}, %48, %49, p, 1, 1, 0, 0; }"
               : WGMMA_16(sums, 0), WGMMA_16(sums, 16), WGMMA_16(sums, 32)
               : "l"(a), "l"(b), "r"((int)accumulate));
}

/* a: fragments of A; a lane holds rows lane / 4 (a[0], a[2]) and lane / 4 + 8 (a[1], a[3]) of its warp's 16
 * rows, in columns lane % 4 · 2 and the next one (a[0], a[1]), and in these plus 8 (a[2], a[3]). */
__device__ static inline void wgmma_m64n32k16(float (&sums)[16], const uint32_t a[4], uint64_t b, bool accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %21, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {" WGMMA_REGISTERS_16
               "}, {%16, %17, %18, %19}, %20, p, 1, 1, 0; }"
               : WGMMA_16(sums, 0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)accumulate));
}

/* In the products below, B is transposed, and A is sparse: of four adjacent elements of a row, two are stored, in the fragments
 * of a product with half the depth. metadata: the indices of the stored elements among the four, ascending, two bits each. Of
 * each four lanes, lanes 2 · SELECTOR and 2 · SELECTOR + 1 hold those of the k below 16, and from 16 on: the lower 16 bits of row
 * lane / 4, the upper ones of row lane / 4 + 8 of the warp's rows. */
template <int SELECTOR> __device__ static inline void wgmma_sparse_m64n64k32(float (&sums)[32], const uint32_t a[4],
                                                                             uint32_t metadata, uint64_t b, bool accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %38, 0; wgmma.mma_async.sp.sync.aligned.m64n64k32.f32.f16.f16 {" WGMMA_REGISTERS_32
               "}, {%32, %33, %34, %35}, %36, %37, %39, p, 1, 1, 1; }"
               : WGMMA_16(sums, 0), WGMMA_16(sums, 16)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(metadata), "r"((int)accumulate), "n"(SELECTOR));
}

__device__ static inline void wgmma_sparse_m64n96k32(float (&sums)[48], const uint32_t a[4], uint32_t metadata, uint64_t b,
                                                     bool accumulate) {
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %54, 0; wgmma.mma_async.sp.sync.aligned.m64n96k32.f32.f16.f16 {" WGMMA_REGISTERS_48
               "}, {%48, %49, %50, %51}, %52, %53, 0, p, 1, 1, 1; }"
               : WGMMA_16(sums, 0), WGMMA_16(sums, 16), WGMMA_16(sums, 32)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(metadata), "r"((int)accumulate));
}

#endif
