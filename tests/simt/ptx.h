/* Implements the PTX instructions (ISA 9.0) that kernels use in asm(), and the special registers. Each instruction is a function
 * that is named after it, with underscores for dots and colons, and takes its operands in the order of the PTX text; translate.py
 * translates asm() into calls of these functions. */
#ifndef SIMT_PTX_H
#define SIMT_PTX_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <bit>
#include <cmath>
#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "emulator.h"

namespace simt::ptx {

/* --- special registers ------------------------------------------------------------------------------------------------------ */

namespace special {
inline const struct {
  operator uint32_t() const { return cluster_rank(); }
} cluster_ctarank;
inline uint64_t clock_reads; /* number of reads of globaltimer, which returns it in place of the time */
inline const struct {
  operator uint64_t() const { return ++clock_reads; }
} globaltimer;
}  // namespace special

inline void mov_u64(uint64_t &to, uint64_t from) { to = from; }
inline void mov_u64(unsigned long long &to, uint64_t from) { to = from; }
inline void mov_u32(uint32_t &to, uint32_t from) { to = from; }

/* Applies the truth table to each bit of a, b and c: bit 4 a + 2 b + c of the table is the result. */
inline void lop3_b32(uint32_t &to, uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  to = 0;
  for (uint32_t i = 0; i < 8; i++)
    if (table >> i & 1) to |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
}

/* Sets each byte of `to` to the byte of {x, y} that a nibble of the selector chooses. If bit 3 of the nibble is set, sets the
 * byte of `to` to eight copies of the chosen byte's sign bit instead. */
inline void prmt_b32(uint32_t &to, uint32_t x, uint32_t y, uint32_t selector) {
  const uint64_t bytes = (uint64_t)y << 32 | x;
  to = 0;
  for (int i = 0; i < 4; i++) {
    const uint32_t nibble = selector >> i * 4, byte = (uint32_t)(bytes >> (nibble & 7) * 8) & 0xff;
    to |= (nibble & 8 ? (byte & 0x80 ? 0xffu : 0) : byte) << i * 8;
  }
}

/* --- cp.async --------------------------------------------------------------------------------------------------------------- */

inline void cp_async_cg_shared_global(uint32_t to, const void *from, int bytes) {
  if (bytes != 16) die("cp.async.cg of %d bytes", bytes);
  cp_async(shared_pointer(to, 16), from, 16, 16);
}
inline void cp_async_cg_shared_global(uint32_t to, const void *from, int bytes, uint32_t copied) {
  if (bytes != 16 || copied > 16) die("cp.async.cg of %u of %d bytes", copied, bytes);
  cp_async(shared_pointer(to, 16), from, 16, copied);
}
inline void cp_async_ca_shared_global(uint32_t to, const void *from, int bytes) {
  if (bytes != 4 && bytes != 8 && bytes != 16) die("cp.async.ca of %d bytes", bytes);
  cp_async(shared_pointer(to, (size_t)bytes), from, (size_t)bytes, (size_t)bytes);
}
inline void cp_async_commit_group() { simt::cp_async_commit_group(); }
inline void cp_async_wait_group(int newest_groups) { simt::cp_async_wait_group((size_t)newest_groups); }
inline void cp_async_wait_all() { simt::cp_async_wait_all(); }

/* --- mbarriers and st.async ------------------------------------------------------------------------------------------------- */

inline void mbarrier_init_shared_b64(uint32_t barrier, uint32_t count) { mbarrier_init(barrier, count); }
inline void mbarrier_inval_shared_b64(uint32_t barrier) { mbarrier_inval(barrier); }
inline void fence_mbarrier_init_release_cluster() {}
inline void mbarrier_arrive_shared_b64(uint64_t &state, uint32_t barrier) {
  mbarrier_arrive(barrier, 0);
  state = 0;
}
inline void mbarrier_arrive_expect_tx_shared_b64(uint64_t &state, uint32_t barrier, uint32_t bytes) {
  mbarrier_arrive(barrier, bytes);
  state = 0;
}
inline void mbarrier_try_wait_parity_acquire_cluster_shared_b64(bool &done, uint32_t barrier, uint32_t parity, uint32_t) {
  done = mbarrier_try_wait(barrier, parity);
}
inline void mbarrier_try_wait_parity_acquire_cta_shared_b64(bool &done, uint32_t barrier, uint32_t parity, uint32_t) {
  done = mbarrier_try_wait(barrier, parity);
}
inline void selp_b32(uint32_t &to, uint32_t a, uint32_t b, bool p) { to = p ? a : b; }
inline void st_async_weak_shared_cluster_mbarrier_complete_tx_bytes_b32(uint32_t to, uint32_t v, uint32_t barrier) {
  st_async(to, &v, sizeof v, barrier);
}
inline void st_async_weak_shared_cluster_mbarrier_complete_tx_bytes_v2_f32(uint32_t to, float a, float b, uint32_t barrier) {
  const float v[2] = {a, b};
  st_async(to, v, sizeof v, barrier);
}
inline void st_async_weak_shared_cluster_mbarrier_complete_tx_bytes_v4_b32(uint32_t to, uint32_t a, uint32_t b, uint32_t c,
                                                                           uint32_t d, uint32_t barrier) {
  const uint32_t v[4] = {a, b, c, d};
  st_async(to, v, sizeof v, barrier);
}

inline void cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(uint32_t to, const void *from, uint32_t bytes,
                                                                           uint32_t barrier) {
  cp_async_bulk(to, from, bytes, barrier);
}

/* --- ldmatrix --------------------------------------------------------------------------------------------------------------- */

/* ldmatrix loads matrices of 8 x 8 elements of 16 bits. Lane i passes the address of row i % 8 of matrix i / 8. Lane i receives,
 * from each matrix, elements 2 (i % 4) and 2 (i % 4) + 1 of row i / 4; with .trans, of column i / 4. */

struct ldmatrix_operands { /* of one lane */
  uint32_t *to[4];         /* by matrix: the register that receives two elements */
  const uint16_t *row;     /* the row whose address the lane passes */
};

template <int COUNT, bool TRANSPOSED> void load_matrices(void *const lanes[WARP]) {
  for (int m = 0; m < COUNT; m++)
    for (int i = 0; i < WARP; i++) {
      uint16_t pair[2];
      for (int k = 0; k < 2; k++) {
        const int row = i / 4, column = i % 4 * 2 + k;
        pair[k] = ((ldmatrix_operands *)lanes[m * 8 + (TRANSPOSED ? column : row)])->row[TRANSPOSED ? row : column];
      }
      *((ldmatrix_operands *)lanes[i])->to[m] = pair[0] | (uint32_t)pair[1] << 16;
    }
}

inline void ldmatrix_sync_aligned_m8n8_x4_shared_b16(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d, uint32_t row) {
  ldmatrix_operands own = {{&a, &b, &c, &d}, (const uint16_t *)shared_pointer(row, 16)};
  sync_lanes("ldmatrix.x4", ~0u, &own, load_matrices<4, false>, true);
}
inline void ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d, uint32_t row) {
  ldmatrix_operands own = {{&a, &b, &c, &d}, (const uint16_t *)shared_pointer(row, 16)};
  sync_lanes("ldmatrix.x4.trans", ~0u, &own, load_matrices<4, true>, true);
}
/* Loads two matrices. Only lanes 0 to 15 pass an address. */
inline void ldmatrix_sync_aligned_m8n8_x2_shared_b16(uint32_t &a, uint32_t &b, uint32_t row) {
  ldmatrix_operands own = {{&a, &b}, lane() < 16 ? (const uint16_t *)shared_pointer(row, 16) : NULL};
  sync_lanes("ldmatrix.x2", ~0u, &own, load_matrices<2, false>, true);
}
inline void ldmatrix_sync_aligned_m8n8_x2_trans_shared_b16(uint32_t &a, uint32_t &b, uint32_t row) {
  ldmatrix_operands own = {{&a, &b}, lane() < 16 ? (const uint16_t *)shared_pointer(row, 16) : NULL};
  sync_lanes("ldmatrix.x2.trans", ~0u, &own, load_matrices<2, true>, true);
}

struct movmatrix_operands { /* of one lane */
  uint32_t *to, from;
};

inline void transpose_matrix(void *const lanes[WARP]) {
  for (int i = 0; i < WARP; i++) {
    uint32_t pair = 0;
    for (int k = 0; k < 2; k++) {
      const int row = i % 4 * 2 + k, column = i / 4;
      pair |= (((movmatrix_operands *)lanes[row * 4 + column / 2])->from >> column % 2 * 16 & 0xffff) << k * 16;
    }
    *((movmatrix_operands *)lanes[i])->to = pair;
  }
}
inline void movmatrix_sync_aligned_m8n8_trans_b16(uint32_t &to, uint32_t from) {
  movmatrix_operands own = {&to, from};
  sync_lanes("movmatrix", ~0u, &own, transpose_matrix, true);
}

/* --- mma.m16n8k16 ----------------------------------------------------------------------------------------------------------- */

/* Computes d[16][8] = a[16][16] · b[16][8] + c[16][8]. Lane i holds
 *   of a   rows i / 4 and i / 4 + 8, columns 2 (i % 4) + {0, 1} in a[0] and a[1], and the columns 8 further in a[2] and a[3]
 *   of b   column i / 4, rows 2 (i % 4) + {0, 1} in b[0], and the rows 8 further in b[1]
 *   of d   rows i / 4 and i / 4 + 8, columns 2 (i % 4) + {0, 1}
 * Products are exact in float and added in the order of k; the order in the hardware is not documented. */
struct mma_operands { /* fragments of one lane */
  float *d[4];
  float c[4];
  uint32_t a[4], b[2];
};

/* Stores d = c + sums, where sums = a · b. */
inline void store_result(void *const lanes[WARP], const float sums[16][8]) {
  for (int i = 0; i < WARP; i++) {
    const mma_operands &lane = *(const mma_operands *)lanes[i];
    for (int k = 0; k < 4; k++) *lane.d[k] = lane.c[k] + sums[i / 4 + k / 2 * 8][i % 4 * 2 + k % 2];
  }
}

template <float (*WIDEN)(uint16_t)> void multiply(void *const lanes[WARP]) {
  float a[16][16], b[16][8];
  for (int i = 0; i < WARP; i++) {
    const mma_operands &lane = *(const mma_operands *)lanes[i];
    for (int k = 0; k < 8; k++)
      a[i / 4 + k / 2 % 2 * 8][i % 4 * 2 + k % 2 + k / 4 * 8] = WIDEN((uint16_t)(lane.a[k / 2] >> k % 2 * 16));
    for (int k = 0; k < 4; k++) b[i % 4 * 2 + k % 2 + k / 2 * 8][i / 4] = WIDEN((uint16_t)(lane.b[k / 2] >> k % 2 * 16));
  }
  float sums[16][8] = {};
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 16; k++)
      for (int column = 0; column < 8; column++) sums[row][column] += a[row][k] * b[k][column];
  store_result(lanes, sums);
}

inline float from_half(uint16_t bits) { return (float)std::bit_cast<__half>(bits); }
inline float from_bfloat16(uint16_t bits) { return std::bit_cast<float>((uint32_t)bits << 16); }

template <float (*WIDEN)(uint16_t)> void m16n8k16(const char *name, float &d0, float &d1, float &d2, float &d3, uint32_t a0,
                                                  uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1, float c0,
                                                  float c1, float c2, float c3) {
  mma_operands own = {{&d0, &d1, &d2, &d3}, {c0, c1, c2, c3}, {a0, a1, a2, a3}, {b0, b1}};
  sync_lanes(name, ~0u, &own, multiply<WIDEN>, true);
}
template <class... Operands> void mma_sync_aligned_m16n8k16_row_col_f32_f16_f16_f32(Operands &&...operands) {
  m16n8k16<from_half>("mma.m16n8k16.f16", operands...);
}
template <class... Operands> void mma_sync_aligned_m16n8k16_row_col_f32_bf16_bf16_f32(Operands &&...operands) {
  m16n8k16<from_bfloat16>("mma.m16n8k16.bf16", operands...);
}

/* --- mma.m16n8k8 of TF32 ---------------------------------------------------------------------------------------------------- */

/* Computes d[16][8] = a[16][8] · b[8][8] + c[16][8]. Lane i holds
 *   of a   rows i / 4 and i / 4 + 8, column i % 4 in a[0] and a[1], and column i % 4 + 4 in a[2] and a[3]
 *   of b   column i / 4, rows i % 4 and i % 4 + 4
 * The lowest 13 bits of an operand are ignored. */
inline float tf32(uint32_t bits) { return std::bit_cast<float>(bits & ~0x1fffu); }

inline void multiply_tf32(void *const lanes[WARP]) {
  float a[16][8], b[8][8], sums[16][8] = {};
  for (int i = 0; i < WARP; i++) {
    const mma_operands &lane = *(const mma_operands *)lanes[i];
    for (int k = 0; k < 4; k++) a[i / 4 + k % 2 * 8][i % 4 + k / 2 * 4] = tf32(lane.a[k]);
    for (int k = 0; k < 2; k++) b[i % 4 + k * 4][i / 4] = tf32(lane.b[k]);
  }
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 8; k++)
      for (int column = 0; column < 8; column++) sums[row][column] += a[row][k] * b[k][column];
  store_result(lanes, sums);
}

inline void mma_sync_aligned_m16n8k8_row_col_f32_tf32_tf32_f32(float &d0, float &d1, float &d2, float &d3, uint32_t a0,
                                                               uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
                                                               float c0, float c1, float c2, float c3) {
  mma_operands own = {{&d0, &d1, &d2, &d3}, {c0, c1, c2, c3}, {a0, a1, a2, a3}, {b0, b1}};
  sync_lanes("mma.m16n8k8.tf32", ~0u, &own, multiply_tf32, true);
}
/* Rounds to nearest, ties away from zero. */
inline void cvt_rna_tf32_f32(uint32_t &to, float from) {
  const uint32_t bits = std::bit_cast<uint32_t>(from);
  to = std::isfinite(from) ? (bits + 0x1000) & ~0x1fffu : bits;
}

/* --- mma.sp.m16n8k32 -------------------------------------------------------------------------------------------------------- */

/* Computes d[16][8] = a[16][32] · b[32][8] + c[16][8], where a is sparse: of a group of four values, two are stored. Lane i holds
 *   of a   the groups i % 4 (a[0], a[1]) and i % 4 + 4 (a[2], a[3]), of rows i / 4 (a[0], a[2]) and i / 4 + 8 (a[1], a[3])
 *   of b   column i / 4, rows 8 j + 2 (i % 4) + {0, 1} in b[j]
 * Lane 4 i + j, j < 2, holds the metadata of the groups 4 j to 4 j + 3, four bits each, of row i and, 16 bits higher, i + 8. The
 * indices of the two values must be in increasing order (PTX ISA 9.0, "mma.sp"). */
struct sparse_mma_operands { /* fragments of one lane */
  mma_operands sums;         /* only d and c */
  uint32_t a[4], b[4], metadata;
};

inline void multiply_sparse(void *const lanes[WARP]) {
  float a[16][32] = {}, b[32][8], sums[16][8] = {};
  const auto lane = [&](int i) -> const sparse_mma_operands & { return *(const sparse_mma_operands *)lanes[i]; };
  for (int row = 0; row < 16; row++)
    for (int group = 0; group < 8; group++) {
      const uint32_t metadata = lane(row % 8 * 4 + group / 4).metadata >> (row / 8 * 16 + group % 4 * 4) & 0xf,
                     first = metadata & 3, second = metadata >> 2,
                     values = lane(row % 8 * 4 + group % 4).a[row / 8 + group / 4 * 2];
      if (first >= second) die("mma.sp with the metadata %#x", metadata);
      a[row][group * 4 + first] = from_half((uint16_t)values);
      a[row][group * 4 + second] = from_half((uint16_t)(values >> 16));
    }
  for (int i = 0; i < WARP; i++)
    for (int k = 0; k < 8; k++) b[k / 2 * 8 + i % 4 * 2 + k % 2][i / 4] = from_half((uint16_t)(lane(i).b[k / 2] >> k % 2 * 16));
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 32; k++)
      for (int column = 0; column < 8; column++) sums[row][column] += a[row][k] * b[k][column];
  void *operands[WARP];
  for (int i = 0; i < WARP; i++) operands[i] = &((sparse_mma_operands *)lanes[i])->sums;
  store_result(operands, sums);
}

inline void mma_sp_ordered_metadata_sync_aligned_m16n8k32_row_col_f32_f16_f16_f32(
    float &d0, float &d1, float &d2, float &d3, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1,
    uint32_t b2, uint32_t b3, float c0, float c1, float c2, float c3, uint32_t metadata, int selector) {
  if (selector != 0) die("mma.sp with the selector %d", selector);
  sparse_mma_operands own = {{{&d0, &d1, &d2, &d3}, {c0, c1, c2, c3}}, {a0, a1, a2, a3}, {b0, b1, b2, b3}, metadata};
  sync_lanes("mma.sp.m16n8k32", ~0u, &own, multiply_sparse, true);
}

/* --- wgmma ------------------------------------------------------------------------------------------------------------------ */

/* wgmma of FP16, with operands in shared memory in swizzled rows. A warpgroup computes d[64][N] += a[64][16] · b[16][N]; warp w
 * has rows 16 w to 16 w + 15, and computes them when its lanes issue the instruction. In these rows a lane holds d as in mma, for
 * each eight columns. Of a sparse a[64][32], two of four adjacent elements of a row are stored, like an a[64][16].
 *
 * A descriptor has the address of an operand (bits 0 to 13), the distance of the next block of a transposed operand (bits 16 to
 * 29), the distance of the next eight rows (bits 32 to 45), all in units of 16 bytes, and the swizzle (bits 62 and 63): rows have
 * 128 (1) or 64 bytes (2). The swizzle exchanges the vectors of 16 bytes within 128 or 64 bytes: their index is xored with the
 * index of the 128 bytes in memory. A row has the values of a row of a (column of b) along k. If the operand is transposed, a row
 * has the values of one k; a block has the first 64 or 32 rows of a (columns of b). */
struct wgmma_operand {
  uint64_t descriptor;
  bool is_transposed;
  float at(int index, int k) const { /* index: row of a, or column of b */
    const uint32_t swizzle = (uint32_t)(descriptor >> 62), row_bytes = swizzle == 1 ? 128 : 64;
    if (swizzle != 1 && swizzle != 2) die("wgmma with swizzle %u", swizzle);
    const auto bytes_at = [&](int bit) { return (uint32_t)(descriptor >> bit & 0x3fff) << 4; };
    const uint32_t row = (uint32_t)(is_transposed ? k : index), byte = (uint32_t)(is_transposed ? index : k) * 2;
    const uint32_t linear =
        bytes_at(0) + byte / row_bytes * bytes_at(16) + byte % row_bytes + row / 8 * bytes_at(32) + row % 8 * row_bytes;
    const uint32_t vector = linear / 16 ^ linear / 128 % (row_bytes / 16);
    return from_half(((const uint16_t *)shared_pointer(vector * 16, 16))[linear % 16 / 2]);
  }
};

template <int N> struct wgmma_operands { /* of one lane */
  float *d[N / 2];
  bool accumulates, a_is_shared, a_is_sparse;
  uint32_t a[4]; /* fragments as in mma, if a is in registers */
  uint32_t metadata;
  int selector;
  wgmma_operand shared_a, shared_b;
  int first_row; /* of the warp */
};

/* Returns the depth in a sparse a of the stored element k of a row. Two lanes of four, which the selector chooses, have the
 * metadata of eight elements each, for row lane / 4 in the lower half of the register and for row lane / 4 + 8 in the upper half.
 */
template <int N> int sparse_depth(void *const lanes[WARP], int row, int k) {
  const auto index_at = [&](int element) {
    const int selector = ((const wgmma_operands<N> *)lanes[0])->selector;
    const uint32_t metadata = ((const wgmma_operands<N> *)lanes[row % 8 * 4 + selector * 2 + element / 8])->metadata;
    return (int)(metadata >> (row / 8 * 16 + element % 8 * 2) & 3);
  };
  if (index_at(k & ~1) >= index_at(k | 1)) die("wgmma with the indices %d and %d", index_at(k & ~1), index_at(k | 1));
  return k / 2 * 4 + index_at(k);
}

template <int N> void multiply_warpgroup(void *const lanes[WARP]) {
  const wgmma_operands<N> &first = *(const wgmma_operands<N> *)lanes[0];
  const int depth = first.a_is_sparse ? 32 : 16;
  float a[16][32] = {};
  for (int row = 0; row < 16; row++)
    for (int k = 0; k < 16; k++) {
      const wgmma_operands<N> &lane = *(const wgmma_operands<N> *)lanes[row % 8 * 4 + k % 8 / 2];
      a[row][first.a_is_sparse ? sparse_depth<N>(lanes, row, k) : k] =
          first.a_is_shared ? first.shared_a.at(first.first_row + row, k)
                            : from_half((uint16_t)(lane.a[row / 8 + k / 8 * 2] >> k % 2 * 16));
    }
  for (int column = 0; column < N; column++) {
    float b[32];
    for (int k = 0; k < depth; k++) b[k] = first.shared_b.at(column, k);
    for (int row = 0; row < 16; row++) {
      const wgmma_operands<N> &lane = *(const wgmma_operands<N> *)lanes[row % 8 * 4 + column % 8 / 2];
      float sum = 0;
      for (int k = 0; k < depth; k++) sum += a[row][k] * b[k];
      float *d = lane.d[column / 8 * 4 + row / 8 * 2 + column % 2];
      *d = (lane.accumulates ? *d : 0) + sum;
    }
  }
}

/* The operands of the PTX text after the sums. */
template <int N> void wgmma_shared(float *const d[N / 2], uint64_t a, uint64_t b, bool accumulates, int, int, int a_is_transposed,
                                   int b_is_transposed) {
  wgmma_operands<N> own = {.accumulates = accumulates, .a_is_shared = true};
  std::copy(d, d + N / 2, own.d);
  own.shared_a = {a, a_is_transposed != 0};
  own.shared_b = {b, b_is_transposed != 0};
  own.first_row = (int)(warp() % 4 * 16);
  sync_lanes("wgmma", ~0u, &own, multiply_warpgroup<N>, true);
}
template <int N> void wgmma_registers(float *const d[N / 2], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint64_t b,
                                      bool accumulates, int, int, int b_is_transposed) {
  wgmma_operands<N> own = {.accumulates = accumulates, .a = {a0, a1, a2, a3}};
  std::copy(d, d + N / 2, own.d);
  own.shared_b = {b, b_is_transposed != 0};
  sync_lanes("wgmma", ~0u, &own, multiply_warpgroup<N>, true);
}

template <int N> void wgmma_sparse(float *const d[N / 2], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint64_t b,
                                   uint32_t metadata, int selector, bool accumulates, int, int, int b_is_transposed) {
  if (selector != 0 && selector != 1) die("wgmma.sp with selector %d", selector);
  wgmma_operands<N> own = {
      .accumulates = accumulates, .a_is_sparse = true, .a = {a0, a1, a2, a3}, .metadata = metadata, .selector = selector};
  std::copy(d, d + N / 2, own.d);
  own.shared_b = {b, b_is_transposed != 0};
  sync_lanes("wgmma.sp", ~0u, &own, multiply_warpgroup<N>, true);
}

/* Calls function(d, rest...) for operands that begin with COUNT sums. */
template <int COUNT, class Function, class... Operands> void with_sums(Function function, Operands &&...operands) {
  auto all = std::forward_as_tuple(operands...);
  [&]<size_t... SUM, size_t... REST>(std::index_sequence<SUM...>, std::index_sequence<REST...>) {
    float *const d[] = {&std::get<SUM>(all)...};
    function(d, std::get<COUNT + REST>(all)...);
  }
  (std::make_index_sequence<COUNT>(), std::make_index_sequence<sizeof...(Operands) - COUNT>());
}

/* A in shared memory is one operand, a descriptor; A in registers is four. */
template <int N, class... Operands> void wgmma(Operands &&...operands) {
  if constexpr (sizeof...(Operands) == N / 2 + 7) with_sums<N / 2>(wgmma_shared<N>, operands...);
  else with_sums<N / 2>(wgmma_registers<N>, operands...);
}
template <class... Operands> void wgmma_mma_async_sync_aligned_m64n32k16_f32_f16_f16(Operands &&...operands) {
  wgmma<32>(operands...);
}
template <class... Operands> void wgmma_mma_async_sync_aligned_m64n96k16_f32_f16_f16(Operands &&...operands) {
  wgmma<96>(operands...);
}
template <class... Operands> void wgmma_mma_async_sp_sync_aligned_m64n64k32_f32_f16_f16(Operands &&...operands) {
  with_sums<32>(wgmma_sparse<64>, operands...);
}
template <class... Operands> void wgmma_mma_async_sp_sync_aligned_m64n96k32_f32_f16_f16(Operands &&...operands) {
  with_sums<48>(wgmma_sparse<96>, operands...);
}
inline void wgmma_fence_sync_aligned() {}
inline void wgmma_commit_group_sync_aligned() {}
inline void wgmma_wait_group_sync_aligned(int) {}
inline void fence_proxy_async() {}
inline void fence_proxy_async_shared_cta() {}
inline void prefetch_global_L2(const void *) {}
inline void setmaxnreg_inc_sync_aligned_u32(int) {}
inline void setmaxnreg_dec_sync_aligned_u32(int) {}
inline void setp_ne_b32(bool &p, int a, int b) { p = a != b; }

/* --- barriers --------------------------------------------------------------------------------------------------------------- */

inline void bar_sync(uint32_t id, uint32_t threads = 0) { block_barrier("bar.sync", id, threads); }
inline void bar_arrive(uint32_t id, uint32_t threads) { block_barrier("bar.arrive", id, threads, false); }
inline void barrier_cluster_arrive_aligned() { cluster_arrive(); }
inline void barrier_cluster_wait_aligned() { cluster_wait(); }
inline void barrier_cluster_arrive_release_aligned() { cluster_arrive(); }
inline void barrier_cluster_arrive_relaxed_aligned() { cluster_arrive(); }
inline void barrier_cluster_wait_acquire_aligned() { cluster_wait(); }

/* --- distributed shared memory ---------------------------------------------------------------------------------------------- */

inline void mapa_shared_cluster_u32(uint32_t &to, uint32_t address, uint32_t rank) { to = mapa(address, rank); }

/* --- accesses to global memory that other blocks share; at each, the scheduler may run another thread ---------------------- */

inline void red_release_gpu_global_add_u32(uint32_t *to, uint32_t by) {
  yield_point();
  *to += by;
}
inline void atom_release_gpu_global_add_u32(uint32_t &before, uint32_t *to, uint32_t by) {
  yield_point();
  before = *to;
  *to += by;
  yield_point();
}
inline void red_relaxed_gpu_global_add_u64(uint64_t *to, uint64_t by) {
  yield_point();
  *to += by;
}
inline void ld_relaxed_gpu_global_u64(uint64_t &to, const uint64_t *from) {
  yield_point();
  to = *from;
}
inline void ld_acquire_gpu_global_u32(uint32_t &to, const uint32_t *from) {
  yield_point();
  to = *from;
}
inline void ld_relaxed_gpu_global_v4_u32(uint32_t &a, uint32_t &b, uint32_t &c, uint32_t &d, const void *from) {
  yield_point();
  const uint32_t *words = (const uint32_t *)from;
  a = words[0], b = words[1], c = words[2], d = words[3];
}
inline void st_relaxed_gpu_global_v2_f32(float *to, float a, float b) { to[0] = a, to[1] = b; }
inline void st_relaxed_gpu_global_v4_f32(float *to, float a, float b, float c, float d) {
  to[0] = a, to[1] = b, to[2] = c, to[3] = d;
}

/* --- approximations, emulated by exact functions; .ftz flushes subnormals --------------------------------------------------- */

inline float flush(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
inline void max_NaN_f32(float &to, float a, float b) { to = std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); }
inline void sqrt_approx_ftz_f32(float &y, float x) { y = std::sqrt(flush(x)); }
inline void rcp_approx_ftz_f32(float &y, float x) { y = flush(1 / flush(x)); }
inline void ex2_approx_ftz_f32(float &y, float x) { y = flush(std::exp2(flush(x))); }
/* Computes only the upper word of the result, which has 20 bits of fraction (PTX ISA, "rcp.approx.ftz.f64"). */
inline void rcp_approx_ftz_f64(double &y, double x) {
  y = std::bit_cast<double>(std::bit_cast<uint64_t>(1 / x) & 0xffffffff00000000u);
}

}  // namespace simt::ptx

#endif
