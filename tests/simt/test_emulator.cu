/* Tests the emulator: correct CUDA code gives the right result in every schedule, and incorrect code gives a wrong result in most
 * schedules or ends the program. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bit>

extern "C" {
#include <cmocka.h>
}

#include "clusters.cuh"
#include "train/cuda/mma.cuh"

enum { THREADS = 96, RUNS = 64 };

/* Returns how many of RUNS launches leave a value other than `expected` in out[0]. */
template <class... Parameters> static int count_wrong_results(float expected, dim3 grid, dim3 block,
                                                              void (*kernel)(float *, Parameters...),
                                                              std::type_identity_t<Parameters>... parameters) {
  int wrong = 0;
  for (int run = 0; run < RUNS; run++) {
    float out[1] = {};
    kernel<<<grid, block>>>(out, parameters...);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    wrong += !(out[0] == expected);
  }
  return wrong;
}

/* --- schedules -------------------------------------------------------------------------------------------------------------- */

/* Adds up, in two rounds, the number that a neighbour writes. missing_barrier: 0: none is missing; 1: the barrier before the read
 * (RAW) is missing; 2: the barrier before the next write (WAR) is missing. */
static __global__ void sum_of_neighbours(float *out, int missing_barrier) {
  __shared__ float numbers[THREADS], sums[THREADS];
  float sum = 0;
  for (int round = 0; round < 2; round++) {
    numbers[threadIdx.x] = (float)(threadIdx.x + round);
    if (missing_barrier != 1) __syncthreads();
    sum += numbers[(threadIdx.x + 33) % THREADS];
    if (missing_barrier != 2) __syncthreads();
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < THREADS; i++) out[0] += sums[i];
}

static void barriers_are_needed(void **) {
  const float expected = THREADS * (THREADS - 1) + THREADS;
  assert_int_equal(count_wrong_results(expected, 1, THREADS, sum_of_neighbours, 0), 0);
  assert_true(count_wrong_results(expected, 1, THREADS, sum_of_neighbours, 1) > RUNS / 2);
  assert_true(count_wrong_results(expected, 1, THREADS, sum_of_neighbours, 2) > RUNS / 2);
}

static __global__ void read_next_lane(float *out, bool synchronised) {
  __shared__ float numbers[32];
  numbers[threadIdx.x] = 1;
  if (synchronised) __syncwarp();
  const float next = numbers[(threadIdx.x + 1) % 32];
  const uint32_t right = __ballot_sync(~0u, next == 1);
  if (threadIdx.x == 0) out[0] = (float)__popc(right);
}

static void lanes_do_not_run_in_lockstep(void **) {
  assert_int_equal(count_wrong_results(32, 1, 32, read_next_lane, true), 0);
  assert_true(count_wrong_results(32, 1, 32, read_next_lane, false) > RUNS / 2);
}

/* The last block to finish adds the partial results of all. late: a block writes its partial result after it has taken its
 * ticket. */
static __global__ void last_block(float *out, float *partial, uint32_t *ticket, bool late) {
  if (!late) partial[blockIdx.x] = 1;
  __threadfence();
  const bool last = atomicAdd(ticket, 1) == gridDim.x - 1;
  if (late) partial[blockIdx.x] = 1;
  if (!last) return;
  for (uint32_t i = 0; i < gridDim.x; i++) out[0] += partial[i];
  for (uint32_t i = 0; i < gridDim.x; i++) partial[i] = 0;
  *ticket = 0;
}

static void blocks_finish_in_any_order(void **) {
  float partial[8] = {};
  uint32_t ticket = 0;
  assert_int_equal(count_wrong_results(8, 8, 1, last_block, partial, &ticket, false), 0);
  assert_true(count_wrong_results(8, 8, 1, last_block, partial, &ticket, true) > 0);
}

/* All blocks wait for each other in a spin loop. */
static __global__ void grid_barrier(float *out, uint32_t *arrived, uint32_t *leaving) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (__ldcg(arrived) % gridDim.x != 0) __nanosleep(20);
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(leaving, 1) % gridDim.x == gridDim.x - 1)
    out[0] = (float)(*arrived / gridDim.x * gridDim.x == *arrived);
}

static void blocks_may_spin_for_blocks_that_start_later(void **) {
  uint32_t arrived = 0, leaving = 0;
  float out[1] = {};
  grid_barrier<<<40, 64>>>(out, &arrived, &leaving);
  assert_true(out[0] == 1 && arrived == 40 && leaving == 40);
}

/* --- memory ----------------------------------------------------------------------------------------------------------------- */

static __global__ void copy_async(float *out, const float *from, bool waits) {
  __shared__ __align__(16) float to[4 * 32];
  cp_async_16(&to[4 * threadIdx.x], &from[4 * threadIdx.x]);
  if (waits) cp_async_wait_all();
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += to[4 * threadIdx.x + i];
  for (int offset = 16; offset; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x == 0) out[0] = sum;
}

static void async_copies_need_a_wait(void **) {
  alignas(16) float from[4 * 32];
  for (float &x : from) x = 0.5f;
  assert_int_equal(count_wrong_results(64, 1, 32, copy_async, from, true), 0);
  assert_int_equal(count_wrong_results(64, 1, 32, copy_async, from, false), RUNS); /* right by chance: once in 2^32 */
}

static __global__ void read_uninitialised(float *out) {
  __shared__ float number;
  out[0] = number;
  number = 1;
}

static void shared_memory_is_nan_at_first(void **) {
  assert_int_equal(count_wrong_results(1, 5, 1, read_uninitialised), RUNS);
  float out[1] = {};
  read_uninitialised<<<1, 1>>>(out);
  assert_true(out[0] != out[0]);
}

/* Each block reads a number of the next block of its cluster. Without the second barrier that block may have exited. */
static __global__ void read_next_block(float *out, bool second_barrier) {
  __shared__ float number;
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) number = (float)cluster.block_rank();
  cluster.sync();
  const float peer_number = *cluster.map_shared_rank(&number, (cluster.block_rank() + 1) % cluster.num_blocks());
  if (threadIdx.x == 0) atomicAdd(out, peer_number * (float)cluster.block_rank());
  if (second_barrier) cluster.sync();
}

/* Launches `grid` blocks of one warp in clusters of `blocks` blocks. */
template <class... Parameters> static cudaError_t launch_cluster(unsigned blocks, unsigned grid, void (*kernel)(Parameters...),
                                                                 std::type_identity_t<Parameters>... parameters) {
  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.gridDim = dim3(grid);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, parameters...);
}

static void clusters_share_memory(void **) {
  float out[1] = {};
  for (int run = 0; run < RUNS; run++) assert_int_equal(launch_cluster(4, 8, read_next_block, out, true), cudaSuccess);
  assert_true(out[0] == RUNS * 2 * (0 * 1 + 1 * 2 + 2 * 3 + 3 * 0));
  assert_int_equal(launch_cluster(4, 6, read_next_block, out, true), cudaErrorInvalidConfiguration);
}

/* In two phases each lane sends two numbers to the other block of the cluster, which adds what it has received. */
static __global__ void send_to_peer(float *out, bool waits, uint32_t expected_bytes) {
  __shared__ __align__(8) mbarrier received;
  __shared__ __align__(8) float numbers[2][64];
  const uint32_t peer = rank_in_cluster() ^ 1;
  if (threadIdx.x == 0) mbarrier_init(&received);
  cluster_barrier();
  float sum = 0;
  for (uint32_t phase = 1; phase <= 2; phase++) {
    if (threadIdx.x == 31) mbarrier_arrive_expect_tx(&received, expected_bytes);
    st_async(peer, &numbers[phase - 1][threadIdx.x * 2], make_float2(1, (float)phase), &received);
    while (waits && !mbarrier_try_wait(&received, phase)) {
    }
    sum += numbers[phase - 1][63 - threadIdx.x * 2] + numbers[phase - 1][62 - threadIdx.x * 2];
    while (!mbarrier_try_wait(&received, phase)) {
    }
    cluster_barrier();
  }
  for (int offset = 16; offset; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

static void async_stores_need_a_wait(void **) {
  int wrong = 0;
  for (int run = 0; run < RUNS; run++) {
    float waited[1] = {}, early[1] = {};
    assert_int_equal(launch_cluster(2, 2, send_to_peer, waited, true, 32 * 8), cudaSuccess);
    assert_true(waited[0] == 2 * 32 * (2 + 3));
    assert_int_equal(launch_cluster(2, 2, send_to_peer, early, false, 32 * 8), cudaSuccess);
    wrong += !(early[0] == waited[0]);
  }
  assert_true(wrong > RUNS / 2);
}

/* --- warps ------------------------------------------------------------------------------------------------------------------ */

static __global__ void shuffle(uint32_t *out) {
  const uint32_t lane = threadIdx.x;
  out[lane] = __shfl_sync(~0u, lane, (int)lane + 3);
  out[32 + lane] = __shfl_xor_sync(~0u, lane, 5);
  out[64 + lane] = __shfl_down_sync(~0u, lane, 9);
  out[96 + lane] = __shfl_up_sync(~0u, lane, 9, 16);
  out[128 + lane] = __ballot_sync(~0u, lane % 3 == 0);
  if (lane % 2) out[160 + lane] = __shfl_xor_sync(0xaaaaaaaa, lane, 2); /* among the odd lanes */
}

static void shuffles_move_numbers(void **) {
  uint32_t out[192] = {}, thirds = 0;
  shuffle<<<1, 32>>>(out);
  for (uint32_t i = 0; i < 32; i += 3) thirds |= 1u << i;
  for (uint32_t i = 0; i < 32; i++) {
    assert_int_equal(out[i], (i + 3) % 32);
    assert_int_equal(out[32 + i], i ^ 5);
    assert_int_equal(out[64 + i], i + 9 < 32 ? i + 9 : i);
    assert_int_equal(out[96 + i], i % 16 >= 9 ? i - 9 : i);
    assert_int_equal(out[128 + i], thirds);
    assert_int_equal(out[160 + i], i % 2 ? i ^ 2 : 0);
  }
}

static __global__ void multiply(const __half *a, const __half *b, float *c) { /* c[16][8] = a[16][16] b[16][8] */
  __shared__ __align__(16) __half a_tile[16 * 16], b_tile[16 * 8];
  for (int i = threadIdx.x; i < 16 * 16; i += 32) a_tile[i] = a[i];
  for (int i = threadIdx.x; i < 16 * 8; i += 32) b_tile[i] = b[i];
  __syncwarp();
  uint32_t a_fragment[4], b_fragment[4];
  float sum[4] = {};
  ldmatrix_x4(a_fragment, shared_address(&a_tile[threadIdx.x % 16 * 16 + threadIdx.x / 16 * 8]));
  ldmatrix_x4_trans(b_fragment, shared_address(&b_tile[threadIdx.x % 16 * 8]));
  mma_m16n8k16(sum, a_fragment, b_fragment);
  for (int i = 0; i < 4; i++) c[(threadIdx.x / 4 + i / 2 * 8) * 8 + threadIdx.x % 4 * 2 + i % 2] = sum[i];
}

static void mma_multiplies_fragments(void **) {
  __half a[256], b[128];
  float c[128];
  for (int i = 0; i < 256; i++) a[i] = __float2half((float)(i * 7 % 31 - 15));
  for (int i = 0; i < 128; i++) b[i] = __float2half((float)(i * 5 % 23 - 11));
  multiply<<<1, 32>>>(a, b, c);
  for (int row = 0; row < 16; row++)
    for (int column = 0; column < 8; column++) {
      float sum = 0;
      for (int k = 0; k < 16; k++) sum += __half2float(a[row * 16 + k]) * __half2float(b[k * 8 + column]);
      assert_true(c[row * 8 + column] == sum);
    }
}

static __global__ void multiply_sparse(const uint32_t *a, const uint32_t *b, const uint32_t *metadata, float *c) {
  const int lane = threadIdx.x;
  float sum[4] = {};
  uint32_t a_fragment[4], b_fragment[4];
  for (int i = 0; i < 4; i++) a_fragment[i] = a[i * 32 + lane], b_fragment[i] = b[i * 32 + lane];
  mma_sparse_m16n8k32(sum, a_fragment, b_fragment, metadata[lane]);
  for (int i = 0; i < 4; i++) c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = sum[i];
}

/* Distributes a sparse a[16][32] and b[32][8] among the lanes by the layout in the PTX ISA ("mma.sp"). */
static void sparse_mma_multiplies_fragments(void **) {
  const uint32_t index_pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe}; /* the sorted pairs of two of four indices */
  const auto half_bits = [](float v) { return (uint32_t)std::bit_cast<uint16_t>(__float2half(v)); };
  float a[16][32] = {}, b[32][8], c[128];
  uint32_t a_fragments[4 * 32] = {}, b_fragments[4 * 32] = {}, metadata[32] = {};
  for (int row = 0; row < 16; row++)
    for (int group = 0; group < 8; group++) {
      const uint32_t indices = index_pairs[(row * 3 + group) % 6];
      metadata[row % 8 * 4 + group / 4] |= indices << (row / 8 * 16 + group % 4 * 4);
      for (int i = 0; i < 2; i++) {
        const float value = (float)((row * 7 + group * 3 + i * 5) % 31) - 15;
        a[row][group * 4 + (indices >> i * 2 & 3)] = value;
        a_fragments[(row / 8 + group / 4 * 2) * 32 + row % 8 * 4 + group % 4] |= half_bits(value) << i * 16;
      }
    }
  for (int k = 0; k < 32; k++)
    for (int column = 0; column < 8; column++) {
      b[k][column] = (float)((k * 8 + column) * 5 % 23) - 11;
      b_fragments[k / 8 * 32 + column * 4 + k % 8 / 2] |= half_bits(b[k][column]) << k % 2 * 16;
    }
  multiply_sparse<<<1, 32>>>(a_fragments, b_fragments, metadata, c);
  for (int row = 0; row < 16; row++)
    for (int column = 0; column < 8; column++) {
      float sum = 0;
      for (int k = 0; k < 32; k++) sum += a[row][k] * b[k][column];
      assert_true(c[row * 8 + column] == sum);
    }
}

static __global__ void copy_in_bulk(const float *from, float *to, bool waits) {
  __shared__ __align__(16) float numbers[32];
  __shared__ __align__(8) mbarrier received;
  if (threadIdx.x == 0) mbarrier_init(&received);
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect_tx(&received, sizeof numbers);
    bulk_copy(numbers, from, sizeof numbers, &received);
  }
  while (waits && !mbarrier_try_wait_cta(&received, 1)) {
  }
  to[threadIdx.x] = numbers[threadIdx.x];
  while (!mbarrier_try_wait_cta(&received, 1)) {
  }
}

static void bulk_copies_need_a_wait(void **) {
  float from[32], to[32];
  int complete = 0, incomplete = 0;
  for (int i = 0; i < 32; i++) from[i] = (float)i;
  for (int repeat = 0; repeat < 50; repeat++) {
    copy_in_bulk<<<1, 32>>>(from, to, true);
    for (int i = 0; i < 32; i++) assert_true(to[i] == (float)i);
    copy_in_bulk<<<1, 32>>>(from, to, false);
    (to[31] == 31 ? complete : incomplete)++;
  }
  assert_true(complete > 0 && incomplete > 0);
}

/* --- errors that end the program -------------------------------------------------------------------------------------------- */

static __global__ void half_a_barrier() {
  if (threadIdx.x < 40) __syncthreads();
}
static __global__ void shuffle_without_a_lane() {
  if (threadIdx.x != 7) __shfl_sync(~0u, 1, 0);
  else __syncthreads();
}
static __global__ void different_operations() {
  if (threadIdx.x < 16) __shfl_xor_sync(~0u, 1, 1);
  else __ballot_sync(~0u, 1);
}
static __global__ void read_out_of_bounds() {
  extern __shared__ __align__(16) float numbers[];
  uint32_t to[4];
  ldmatrix_x4(to, shared_address(numbers) + 16 * threadIdx.x);
}
static __global__ void read_misaligned() {
  __shared__ __align__(16) __half numbers[32 * 8 + 1];
  uint32_t to[4];
  ldmatrix_x4(to, shared_address(&numbers[8 * threadIdx.x + 1]));
}
static __global__ void arrive_at_uninitialised_mbarrier() {
  __shared__ __align__(8) mbarrier barrier;
  mbarrier_arrive_expect_tx(&barrier, 8);
}
static __global__ void use_unsorted_metadata() {
  float sum[4] = {};
  const uint32_t fragment[4] = {};
  mma_sparse_m16n8k32(sum, fragment, fragment, 0x11111111u);
}
static __global__ void spin_forever(uint32_t *flag) {
  while (__ldcg(flag) == 0) {
  }
}

/* Asserts that the launch aborts with a message that contains `message`. */
template <class Launch> static void assert_aborts(const char *message, Launch launch) {
  int pipes[2];
  assert_int_equal(pipe(pipes), 0);
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipes[1], STDERR_FILENO);
    signal(SIGABRT, SIG_DFL);
    launch();
    _exit(0);
  }
  close(pipes[1]);
  char text[65536] = {};
  size_t used = 0;
  for (ssize_t count; used < sizeof text - 1 && (count = read(pipes[0], text + used, sizeof text - 1 - used)) > 0;)
    used += (size_t)count;
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(text, message))
    fail_msg("wanted \"%s\", got status %#x and %s", message, status, text);
}

static void errors_end_the_program(void **) {
  assert_aborts("deadlock\n  block (0, 0, 0), warp 0, lanes 0 to 31: __syncthreads\n", [] { half_a_barrier<<<1, 64>>>(); });
  assert_aborts("lanes 8 to 31: __shfl_sync\n", [] { shuffle_without_a_lane<<<1, 32>>>(); });
  assert_aborts("at __shfl_xor_sync with mask 0xffffffff, lane 16 at __ballot_sync", [] { different_operations<<<1, 32>>>(); });
  assert_aborts("out of bounds", [] { read_out_of_bounds<<<1, 32, 31 * 16>>>(); });
  assert_aborts("is not aligned to 16 bytes", [] { read_misaligned<<<1, 32>>>(); });
  assert_aborts("livelock", [] {
    float out[1];
    launch_cluster(2, 2, send_to_peer, out, true, 33 * 8); /* 8 bytes more than are sent */
  });
  assert_aborts("has not been initialised", [] { arrive_at_uninitialised_mbarrier<<<1, 32>>>(); });
  assert_aborts("mma.sp with the metadata 0x1", [] { use_unsorted_metadata<<<1, 32>>>(); });
  assert_aborts("livelock", [] {
    uint32_t flag = 0;
    spin_forever<<<1, 1>>>(&flag);
  });
}

static void launches_beyond_the_limits_are_refused(void **) {
  float out[1];
  read_uninitialised<<<1, 1025>>>(out);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
  read_uninitialised<<<0, 1>>>(out);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
  read_uninitialised<<<1, 1, 50000>>>(out);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
  assert_int_equal(cudaFuncSetAttribute(read_uninitialised, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000), cudaSuccess);
  read_uninitialised<<<1, 1, 50000>>>(out);
  assert_int_equal(cudaGetLastError(), cudaSuccess);

  cudaLaunchAttribute attribute = {};
  cudaLaunchConfig_t config = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 16;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.gridDim = dim3(16);
  config.blockDim = dim3(1);
  config.attrs = &attribute;
  config.numAttrs = 1;
  assert_int_equal(cudaLaunchKernelEx(&config, read_uninitialised, out), cudaErrorInvalidClusterSize);
  assert_int_equal(cudaFuncSetAttribute(read_uninitialised, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), cudaSuccess);
  assert_int_equal(cudaLaunchKernelEx(&config, read_uninitialised, out), cudaSuccess);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(barriers_are_needed),        cmocka_unit_test(lanes_do_not_run_in_lockstep),
      cmocka_unit_test(blocks_finish_in_any_order), cmocka_unit_test(blocks_may_spin_for_blocks_that_start_later),
      cmocka_unit_test(async_copies_need_a_wait),   cmocka_unit_test(shared_memory_is_nan_at_first),
      cmocka_unit_test(clusters_share_memory),      cmocka_unit_test(async_stores_need_a_wait),
      cmocka_unit_test(bulk_copies_need_a_wait),    cmocka_unit_test(sparse_mma_multiplies_fragments),
      cmocka_unit_test(shuffles_move_numbers),      cmocka_unit_test(mma_multiplies_fragments),
      cmocka_unit_test(errors_end_the_program),     cmocka_unit_test(launches_beyond_the_limits_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
