/* Warp-level matrix instructions in FP16 and TF32 (PTX ISA 9.0, "warp-level matrix instructions"): ldmatrix, which loads operands
 * from shared memory, and mma.sync m16n8k16 (FP16) and m16n8k8 (TF32), which multiply them and add the products to FP32 sums. All
 * lanes of the warp call these functions.
 *
 * ldmatrix expects eight rows of eight FP16 values. It also loads TF32 values, because eight rows of four TF32 values have the
 * same size. Bank conflicts: ldmatrix reads eight rows of 16 bytes in one phase. A phase is free of bank conflicts if the rows
 * are an odd multiple of 16 bytes apart. */
#ifndef RL_TRAIN_CUDA_MMA_H
#define RL_TRAIN_CUDA_MMA_H

#include <cuda_fp16.h>

#include "async_copy.cuh"

/* Loads four 8×8 matrices of 16-bit values. row: lane i passes the shared address of row i % 8 of matrix i / 8. */
static __device__ __forceinline__ void ldmatrix_x4(uint32_t to[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

/* Loads four 8×8 matrices, each transposed; `row` as in ldmatrix_x4. */
static __device__ __forceinline__ void ldmatrix_x4_trans(uint32_t to[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

/* Loads two 8×8 matrices, each transposed. Lanes 0 to 15 pass the addresses of the rows. */
static __device__ __forceinline__ void ldmatrix_x2_trans(uint32_t to[2], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(row) : "memory");
}

/* Computes sum[16×8] += a[16×16] · b[16×8] in FP16. A lane holds four elements of sum: in row lane / 4 (sum[0], sum[1]) and in
 * row lane / 4 + 8 (sum[2], sum[3]), each in column lane % 4 · 2 and the next one. */
static __device__ __forceinline__ void mma_m16n8k16(float sum[4], const uint32_t a[4], const uint32_t b[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Computes sum[16×8] += a[16×8] · b[8×8] in TF32 (tensor_float.cuh). A lane holds the same elements of sum as in mma_m16n8k16. Of
 * a it holds rows lane / 4 and lane / 4 + 8, in column lane % 4 (a[0], a[1]) and in column lane % 4 + 4 (a[2], a[3]). Of b it
 * holds column lane / 4, rows lane % 4 (b[0]) and lane % 4 + 4 (b[1]). */
static __device__ __forceinline__ void mma_m16n8k8_tf32(float sum[4], const uint32_t a[4], const uint32_t b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
