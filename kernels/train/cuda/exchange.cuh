/* How co-resident blocks of one launch exchange data through global memory: with grid barriers and with tagged words.
 *
 * A grid barrier is a counter that only grows: every block adds 1 in every phase. Writes of any thread before grid_barrier_arrive
 * are visible to every thread after grid_barrier_wait (release, acquire at gpu scope).
 *
 * A tagged word is a float with one writer and any number of readers, without a barrier. Its lowest bit is the parity of the
 * phase in which it was written; a reader spins until the bit matches its phase, then clears it. A float converted from FP16 does
 * not use the bit; any other loses its lowest mantissa bit. A word may be overwritten once its readers have signalled, by any
 * means, that they have read it (WAR). Phases count from 1, and the memory starts as zeros.
 *
 * A wait of more than some seconds ends the kernel with __trap. */
#ifndef RL_TRAIN_CUDA_EXCHANGE_H
#define RL_TRAIN_CUDA_EXCHANGE_H

#include <stdint.h>

/* Counts a failed poll, which takes about 0.5 µs. */
static __device__ __forceinline__ void trap_on_timeout(uint32_t *polls) {
  if (++*polls == 1u << 23) __trap();
}

/* The thread that arrives and polls for its block, the leader: lane 0 of the last warp. __syncthreads orders the other threads
 * with it. The leader's red.release waits until the block's outstanding stores have drained, so the leader is in a warp that has
 * little other work. */
static __device__ __forceinline__ bool is_leader(void) { return threadIdx.x == blockDim.x - 32; }

static __device__ __forceinline__ void grid_barrier_arrive(uint32_t *counter) {
  __syncthreads();
  if (is_leader()) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(1) : "memory");
}

static __device__ __forceinline__ uint32_t load_acquire(const uint32_t *counter) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}

/* Waits until every block has arrived `phase` times. One thread calls it; it does not synchronise the block. */
static __device__ __forceinline__ void grid_barrier_spin(const uint32_t *counter, uint32_t phase) {
  for (uint32_t polls = 0; load_acquire(counter) < phase * gridDim.x;) trap_on_timeout(&polls);
}

/* All threads of the block wait. */
static __device__ __forceinline__ void grid_barrier_wait(const uint32_t *counter, uint32_t phase) {
  if (is_leader()) grid_barrier_spin(counter, phase);
  __syncthreads();
}

static __device__ __forceinline__ float set_phase_bit(float value, uint32_t phase) {
  return __uint_as_float((__float_as_uint(value) & ~1u) | (phase & 1));
}

static __device__ __forceinline__ float clear_phase_bit(uint32_t bits) { return __uint_as_float(bits & ~1u); }

static __device__ __forceinline__ float4 clear_phase_bit(uint4 bits) {
  return make_float4(clear_phase_bit(bits.x), clear_phase_bit(bits.y), clear_phase_bit(bits.z), clear_phase_bit(bits.w));
}

static __device__ __forceinline__ void send_tagged(float *word, uint32_t phase, float v) {
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(word), "f"(set_phase_bit(v, phase)) : "memory");
}

static __device__ __forceinline__ void send_tagged(float *words, uint32_t phase, float a, float b) {
  asm volatile("st.relaxed.gpu.global.v2.f32 [%0], {%1, %2};" ::"l"(words), "f"(set_phase_bit(a, phase)),
               "f"(set_phase_bit(b, phase))
               : "memory");
}

static __device__ __forceinline__ void send_tagged(float *words, uint32_t phase, float4 v) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(words), "f"(set_phase_bit(v.x, phase)),
               "f"(set_phase_bit(v.y, phase)), "f"(set_phase_bit(v.z, phase)), "f"(set_phase_bit(v.w, phase))
               : "memory");
}

static __device__ __forceinline__ uint4 load_relaxed(const float *words) {
  uint4 bits;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
               : "l"(words)
               : "memory");
  return bits;
}

static __device__ __forceinline__ bool phase_matches(uint4 bits, uint32_t phase) {
  return (((bits.x ^ phase) | (bits.y ^ phase) | (bits.z ^ phase) | (bits.w ^ phase)) & 1) == 0;
}

/* Waits for four neighbouring words of the phase. */
static __device__ __forceinline__ float4 receive_tagged(const float *words, uint32_t phase) {
  uint4 bits;
  for (uint32_t polls = 0; !phase_matches(bits = load_relaxed(words), phase);) trap_on_timeout(&polls);
  return clear_phase_bit(bits);
}

typedef struct float4_pair {
  float4 a, b;
} float4_pair;

/* Waits for four words at each of two addresses. Their loads overlap, so that a poll takes as long as a poll of four words. */
static __device__ __forceinline__ float4_pair receive_tagged(const float *words_a, const float *words_b, uint32_t phase) {
  uint4 a, b;
  for (uint32_t polls = 0;; trap_on_timeout(&polls)) {
    a = load_relaxed(words_a);
    b = load_relaxed(words_b);
    if (phase_matches(a, phase) && phase_matches(b, phase)) break;
  }
  return {clear_phase_bit(a), clear_phase_bit(b)};
}

#endif
