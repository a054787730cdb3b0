/* Warp-level matrix instructions in FP16 and TF32 (PTX ISA 9.0, "warp-level matrix instructions"): ldmatrix, which loads operands
 * from shared memory, and mma.sync m16n8k16 (FP16) and m16n8k8 (TF32), which multiply them and add the products to FP32 sums. All
 * lanes of the warp call these functions.
 *
 * mma.sp m16n8k32 has an operand A that is sparse along the depth: of every four values (a group) at most two are not zero, and
 * only these are stored, in one register. The registers of a lane hold the groups lane % 4 (a[0], a[1]) and lane % 4 + 4 (a[2],
 * a[3]). The metadata have four bits for each group: the index in the group of the first value, and, two bits higher, that of the
 * second one, which is greater. In the metadata of lane 4 i, bits 4 j to 4 j + 3 are those of group j (0 to 3) of row i, and the
 * bits 16 higher of row i + 8; lane 4 i + 1 has groups 4 to 7; the other lanes' metadata are ignored. An H200 executes an mma.sp
 * in 8.3 cycles and an mma in 6.1 on one of its four schedulers.
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

/* Returns the transpose of an 8×8 matrix of 16-bit values: a lane has columns lane % 4 · 2 and the next one of row lane / 4. */
static __device__ __forceinline__ uint32_t movmatrix_trans(uint32_t from) {
  uint32_t to;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(to) : "r"(from));
  return to;
}

/* Computes sum[16×8] = a[16×16] · b[16×8] + addend[16×8] in FP16. A lane holds four elements of sum: in row lane / 4 (sum[0],
 * sum[1]) and in row lane / 4 + 8 (sum[2], sum[3]), each in column lane % 4 · 2 and the next one. */
static __device__ __forceinline__ void mma_m16n8k16(float sum[4], const uint32_t a[4], const uint32_t b[2],
                                                    const float addend[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
      : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(addend[0]), "f"(addend[1]), "f"(addend[2]),
        "f"(addend[3]));
}

/* Computes sum += a · b likewise. */
static __device__ __forceinline__ void mma_m16n8k16(float sum[4], const uint32_t a[4], const uint32_t b[2]) {
  mma_m16n8k16(sum, a, b, sum);
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

/* Computes sum[16×8] += a[16×32] · b[32×8] in FP16, with a sparse. A lane holds column lane / 4 of b, rows 8 i + lane % 4 · 2 and
 * the next one in b[i]. */
static __device__ __forceinline__ void mma_sparse_m16n8k32(float sum[4], const uint32_t a[4], const uint32_t b[4],
                                                           uint32_t metadata) {
  asm volatile(
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9, %10, "
      "%11}, {%0, %1, %2, %3}, %12, 0x0;"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), "r"(metadata));
}

#endif
