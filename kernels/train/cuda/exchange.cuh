/* Exchange of data between the blocks of one launch through global memory. The blocks must be co-resident, because they wait for
 * each other. There are four mechanisms: grid barriers, votes, tagged words and fixed-point sums.
 *
 * Grid barrier: a counter that is never reset. Every block adds 1 to it in every phase. Phase n is complete when the counter has
 * reached n times the number of blocks. A thread that has waited for the phase (grid_barrier_wait) sees everything that any
 * thread wrote before its block arrived (grid_barrier_arrive): release and acquire at gpu scope.
 *
 * Votes: a 64-bit counter that is never reset. The lower half counts the blocks that have decided in a phase, the upper half
 * those that decided to vote. It orders no other accesses to memory.
 *
 * Tagged word: a float that one thread writes and any number of threads read, without a barrier. Its lowest bit is the parity of
 * the phase in which it was written. A reader that wants the value of phase n polls until the bit is the parity of n, and then
 * clears the bit. A float that was converted from FP16 has zeros in its low bits and loses nothing; any other float loses its
 * lowest mantissa bit. WAR: the writer may overwrite a word only after all its readers have signalled, by any means, that they
 * have read it.
 *
 * Fixed-point sum: a 64-bit integer in global memory, to which threads add floats by atomic additions: the upper 56 bits are the
 * sum in units of 2⁻³⁸, the lower 8 bits count the addends. A float is rounded to a multiple of the unit. Additions of integers
 * are exact, so the sum does not depend on their order, and results are reproducible although blocks add when they are ready (as
 * the forces in Le Grand, Götz & Walker 2013, SPFP, doi:10.1016/j.cpc.2012.09.022). A reader polls the sum itself until the count
 * is complete, so no barrier is needed. WAR: as for a tagged word, before the sum is set to 0.
 *
 * Phases count from 1, and counters and words start as zeros. A wait of more than about 4 seconds ends the kernel with __trap. */
#ifndef RL_TRAIN_CUDA_EXCHANGE_H
#define RL_TRAIN_CUDA_EXCHANGE_H

#include <stdint.h>

/* Call it after each failed poll, which takes about 0.5 µs. Ends the kernel after 2²³ of them. polls: the number of failed polls
 * of this wait so far. */
static __device__ __forceinline__ void trap_on_timeout(uint32_t *polls) {
  if (++*polls == 1u << 23) __trap();
}

/* Returns whether the calling thread is the leader of its block: lane 0 of the last warp. Only the leader arrives and polls for
 * the block; __syncthreads orders the other threads with it. Its red.release waits until the block's outstanding stores have
 * drained, so it is in a warp that has little other work. */
static __device__ __forceinline__ bool is_leader(void) { return threadIdx.x == blockDim.x - 32; }

/* Returns whether the calling thread is in the leader's warp. */
static __device__ __forceinline__ bool is_leader_warp(void) { return threadIdx.x >= blockDim.x - 32; }

/* Arrives for the block, without waiting. Only one thread calls it; the caller must have ordered the other threads of the block
 * before it, by __syncthreads. */
static __device__ __forceinline__ void grid_barrier_arrive_in_one_thread(uint32_t *counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(1) : "memory");
}

/* Arrives for the block, without waiting. All threads of the block call it. */
static __device__ __forceinline__ void grid_barrier_arrive(uint32_t *counter) {
  __syncthreads();
  if (is_leader()) grid_barrier_arrive_in_one_thread(counter);
}

static __device__ __forceinline__ uint32_t load_acquire(const uint32_t *counter) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}

/* Waits until every block has arrived `phase` times. One thread calls it; the caller then synchronises the other threads that
 * rely on the wait with this thread. */
static __device__ __forceinline__ void grid_barrier_wait_in_one_thread(const uint32_t *counter, uint32_t phase) {
  for (uint32_t polls = 0; load_acquire(counter) < phase * gridDim.x;) trap_on_timeout(&polls);
}

/* Waits until every block has arrived `phase` times. All threads of the block call it. */
static __device__ __forceinline__ void grid_barrier_wait(const uint32_t *counter, uint32_t phase) {
  if (is_leader()) grid_barrier_wait_in_one_thread(counter, phase);
  __syncthreads();
}

static __device__ __forceinline__ uint64_t load_relaxed(const uint64_t *word) {
  uint64_t bits;
  asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(bits) : "l"(word) : "memory");
  return bits;
}

enum { VOTE_COUNT_BITS = 32 };

/* Adds the block's decision. One thread of the block calls it. */
static __device__ __forceinline__ void vote(uint64_t *votes, bool decision) {
  const uint64_t count = 1 + ((uint64_t)decision << VOTE_COUNT_BITS);
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(votes), "l"(count) : "memory");
}

/* Returns the value with the parity of the phase in its lowest bit. */
static __device__ __forceinline__ float set_phase_bit(float value, uint32_t phase) {
  return __uint_as_float((__float_as_uint(value) & ~1u) | (phase & 1));
}

/* Returns the value of a tagged word: the float with the lowest bit cleared. */
static __device__ __forceinline__ float clear_phase_bit(uint32_t bits) { return __uint_as_float(bits & ~1u); }

static __device__ __forceinline__ float4 clear_phase_bit(uint4 bits) {
  return make_float4(clear_phase_bit(bits.x), clear_phase_bit(bits.y), clear_phase_bit(bits.z), clear_phase_bit(bits.w));
}

/* send_tagged stores two or four neighbouring tagged words with one store instruction. */
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

/* Returns a | (b ^ c) by one instruction. The compiler would compute only the lowest bit, with predicates, which takes three
 * times as many instructions. */
static __device__ __forceinline__ uint32_t or_xor(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t result;
  asm("lop3.b32 %0, %1, %2, %3, 0xf6;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}

/* Returns a number whose lowest bit is 0 if all four words have the parity of the phase. */
static __device__ __forceinline__ uint32_t phase_mismatch(uint4 bits, uint32_t phase) {
  return or_xor(or_xor(or_xor(bits.x ^ phase, bits.y, phase), bits.z, phase), bits.w, phase);
}

/* Waits until four neighbouring words have been written in the phase, and returns their values. bits: the words as the caller has
 * loaded them before. */
static __device__ __forceinline__ float4 receive_tagged(const float *words, uint4 bits, uint32_t phase) {
  for (uint32_t polls = 0; phase_mismatch(bits, phase) & 1; bits = load_relaxed(words)) trap_on_timeout(&polls);
  return clear_phase_bit(bits);
}
static __device__ __forceinline__ float4 receive_tagged(const float *words, uint32_t phase) {
  return receive_tagged(words, load_relaxed(words), phase);
}

/* Units of a fixed-point sum in 1, and the bound of an addend: a sum of 2⁷ smaller ones does not overflow. */
static const float FIXED_POINT_ONE = 0x1p38f, FIXED_POINT_MAX_ADDEND = 0x1p10f;
enum { ADDEND_COUNT_BITS = 8 };

/* Adds v, or the nearest value within ± FIXED_POINT_MAX_ADDEND; the maximum if v is NaN. Returns whether v is within. */
static __device__ __forceinline__ bool add_to_fixed_point_sum(uint64_t *sum, float v) {
  const float addend = fmaxf(fminf(v, FIXED_POINT_MAX_ADDEND), -FIXED_POINT_MAX_ADDEND);
  const uint64_t units = (uint64_t)__float2ll_rn(addend * FIXED_POINT_ONE), with_count = (units << ADDEND_COUNT_BITS) + 1;
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(sum), "l"(with_count) : "memory");
  return fabsf(v) < FIXED_POINT_MAX_ADDEND;
}

/* Returns the sum in the bits of a fixed-point sum. */
static __device__ __forceinline__ float fixed_point_sum(uint64_t bits) {
  return __ll2float_rn((int64_t)bits >> ADDEND_COUNT_BITS) * (1 / FIXED_POINT_ONE);
}

/* Lets the compiler use the words only after the loads that precede this call. Otherwise it may wait for the words of the first
 * load before it issues the second one. */
static __device__ __forceinline__ void order_after_loads(uint4 &bits) {
  asm volatile("" : "+r"(bits.x));
  asm volatile("" : "+r"(bits.y));
  asm volatile("" : "+r"(bits.z));
  asm volatile("" : "+r"(bits.w));
}

typedef struct float4_pair {
  float4 a, b;
} float4_pair;

/* Does the same for two addresses with four words each. The loads from both addresses overlap, so that a poll takes no longer
 * than a poll of one address. */
static __device__ __forceinline__ float4_pair receive_tagged(const float *words_a, const float *words_b, uint32_t phase) {
  uint4 a, b;
  for (uint32_t polls = 0;; trap_on_timeout(&polls)) {
    a = load_relaxed(words_a);
    b = load_relaxed(words_b);
    order_after_loads(a), order_after_loads(b);
    if (!((phase_mismatch(a, phase) | phase_mismatch(b, phase)) & 1)) break;
  }
  return {clear_phase_bit(a), clear_phase_bit(b)};
}

#endif
