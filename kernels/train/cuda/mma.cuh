/* The few instructions of a hand-written product, in FP16 or TF32: matrices from shared memory to registers and 16×8×16 or 16×8×8
 * products with FP32 sums (PTX ISA 9.0, "warp-level matrix instructions"). Matrices of 8×8 halves are 8×4 floats as well.
 * Rows that eight lanes read at once must lie an odd number of 16-byte units apart (modulo 8), so that no two share banks. */
#ifndef RL_TRAIN_CUDA_MMA_H
#define RL_TRAIN_CUDA_MMA_H

#include <cuda_fp16.h>

#include "async_copy.cuh"

/* Four 8×8 matrices; lane i gives the address of row i % 8 of matrix i / 8. */
static __device__ __forceinline__ void ldmatrix_x4(uint32_t to[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

static __device__ __forceinline__ void ldmatrix_x4_trans(uint32_t to[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

/* The first two of them; lanes 0–15 give addresses. */
static __device__ __forceinline__ void ldmatrix_x2_trans(uint32_t to[2], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(row) : "memory");
}

/* sum[16×8] += a[16×16] · b[16×8]. A lane has rows lane / 4 and lane / 4 + 8, columns lane % 4 * 2 and the next, of sum. */
static __device__ __forceinline__ void mma_m16n8k16(float sum[4], const uint32_t a[4], const uint32_t b[2]) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* sum[16×8] += a[16×8] · b[8×8] of floats (tensor_float.cuh). A lane has rows lane / 4 and 8 more of a, columns lane % 4 (a[0],
 * a[1]) and 4 more (a[2], a[3]), and column lane / 4 of b, rows lane % 4 and 4 more. */
static __device__ __forceinline__ void mma_m16n8k8_tf32(float sum[4], const uint32_t a[4], const uint32_t b[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif
