/* What the blocks of a kernel that stays for a whole epoch tell each other through memory, all of them being there at once.
 *
 * Barriers: a counter each, that only grows. What any thread of a block wrote before arrive is seen by all threads behind wait.
 *
 * Mail: single floats from one writer to any readers, without a barrier: the lowest bit of each says whether it was written in an
 * odd or an even turn, and a reader waits until it is the bit of its turn. The bit is cleared on arrival: a value that is FP16's
 * has it free, another loses half a unit of its last place. A place may be written again once its readers have answered, by
 * whatever way: turns of a place are counted from 1, the memory begins as zeros.
 *
 * Whoever waits too long ends the kernel with an error rather than hang. */
#ifndef RL_TRAIN_CUDA_EXCHANGE_H
#define RL_TRAIN_CUDA_EXCHANGE_H

#include <stdint.h>

/* Some seconds: each look takes half a microsecond. */
static __device__ __forceinline__ void lose_patience(uint32_t *looks) {
  if (++*looks == 1u << 23) __trap();
}

/* One thread, of the last warp, speaks for all that it has met, and looks; the others are behind a barrier once they have met
 * that one. To speak takes it as long as all stores of the block are on their way. */
static __device__ __forceinline__ bool watches(void) { return threadIdx.x == blockDim.x - 32; }

static __device__ __forceinline__ void barrier_arrive(uint32_t *counter) {
  __syncthreads();
  if (watches()) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(1) : "memory");
}

static __device__ __forceinline__ uint32_t look_at(const uint32_t *counter) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
  return value;
}

/* Until all blocks have arrived for the turn-th time: of one thread, and of all. */
static __device__ __forceinline__ void watch(const uint32_t *counter, uint32_t turn) {
  for (uint32_t looks = 0; look_at(counter) < turn * gridDim.x;) lose_patience(&looks);
}

static __device__ __forceinline__ void barrier_wait(const uint32_t *counter, uint32_t turn) {
  if (watches()) watch(counter, turn);
  __syncthreads();
}

static __device__ __forceinline__ float stamped(float value, uint32_t turn) {
  return __uint_as_float((__float_as_uint(value) & ~1u) | (turn & 1));
}

static __device__ __forceinline__ float opened(uint32_t letter) { return __uint_as_float(letter & ~1u); }

static __device__ __forceinline__ void post(float *to, uint32_t turn, float v) {
  asm volatile("st.relaxed.gpu.global.f32 [%0], %1;" ::"l"(to), "f"(stamped(v, turn)) : "memory");
}

static __device__ __forceinline__ void post(float *to, uint32_t turn, float a, float b) {
  asm volatile("st.relaxed.gpu.global.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(stamped(a, turn)), "f"(stamped(b, turn)) : "memory");
}

static __device__ __forceinline__ void post(float *to, uint32_t turn, float4 v) {
  asm volatile("st.relaxed.gpu.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(stamped(v.x, turn)), "f"(stamped(v.y, turn)),
               "f"(stamped(v.z, turn)), "f"(stamped(v.w, turn))
               : "memory");
}

static __device__ __forceinline__ uint4 look_into(const float *box) {
  uint4 v;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(box)
               : "memory");
  return v;
}

static __device__ __forceinline__ bool have_come(uint4 v, uint32_t turn) {
  return (((v.x ^ turn) | (v.y ^ turn) | (v.z ^ turn) | (v.w ^ turn)) & 1) == 0;
}

static __device__ __forceinline__ float4 opened(uint4 v) {
  return make_float4(opened(v.x), opened(v.y), opened(v.z), opened(v.w));
}

static __device__ __forceinline__ float4 receive(const float *from, uint32_t turn) {
  uint4 v;
  for (uint32_t looks = 0; !have_come(v = look_into(from), turn);) lose_patience(&looks);
  return opened(v);
}

/* Two at once: a look takes as long as for one. */
static __device__ __forceinline__ void receive(const float *from, const float *other_from, uint32_t turn, float4 *to,
                                               float4 *other_to) {
  uint4 v, w;
  for (uint32_t looks = 0;; lose_patience(&looks)) {
    v = look_into(from);
    w = look_into(other_from);
    if (have_come(v, turn) && have_come(w, turn)) break;
  }
  *to = opened(v);
  *other_to = opened(w);
}

#endif
