/* The machine itself: that what is right in CUDA is right here in every order, and that what is wrong shows. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern "C" {
#include <cmocka.h>
}

#include "clusters.cuh"
#include "train/cuda/mma.cuh"

enum { THREADS = 96, RUNS = 64 };

/* How many of RUNS launches leave something else than `wanted` in out[0]. */
template <class... Parameters> static int wrong_results(float wanted, dim3 grid, dim3 block,
                                                        void (*kernel)(float *, Parameters...),
                                                        std::type_identity_t<Parameters>... parameters) {
  int wrong = 0;
  for (int run = 0; run < RUNS; run++) {
    float out[1] = {};
    kernel<<<grid, block>>>(out, parameters...);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    wrong += !(out[0] == wanted);
  }
  return wrong;
}

/* --- order ------------------------------------------------------------------------------------------------------------------ */

/* Sum of a neighbour's number, twice: without the barrier that is left out (1: before reading, 2: before writing again; 0: none)
 * it may be wrong. */
static __global__ void exchange(float *out, int left_out) {
  __shared__ float numbers[THREADS], sums[THREADS];
  float sum = 0;
  for (int turn = 0; turn < 2; turn++) {
    numbers[threadIdx.x] = (float)(threadIdx.x + turn);
    if (left_out != 1) __syncthreads();
    sum += numbers[(threadIdx.x + 33) % THREADS];
    if (left_out != 2) __syncthreads();
  }
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < THREADS; i++) out[0] += sums[i];
}

static void barriers_are_needed(void **) {
  const float wanted = THREADS * (THREADS - 1) + THREADS;
  assert_int_equal(wrong_results(wanted, 1, THREADS, exchange, 0), 0);
  assert_true(wrong_results(wanted, 1, THREADS, exchange, 1) > RUNS / 2);
  assert_true(wrong_results(wanted, 1, THREADS, exchange, 2) > RUNS / 2);
}

static __global__ void hand_on(float *out, bool synchronised) {
  __shared__ float numbers[32];
  numbers[threadIdx.x] = 1;
  if (synchronised) __syncwarp();
  const float next = numbers[(threadIdx.x + 1) % 32];
  const uint32_t right = __ballot_sync(~0u, next == 1);
  if (threadIdx.x == 0) out[0] = (float)__popc(right);
}

static void lanes_are_not_in_step(void **) {
  assert_int_equal(wrong_results(32, 1, 32, hand_on, true), 0);
  assert_true(wrong_results(32, 1, 32, hand_on, false) > RUNS / 2);
}

/* The last block to be done adds up what all have left; late: it counts itself in before it has. */
static __global__ void last_block(float *out, float *parts, uint32_t *ticket, bool late) {
  if (!late) parts[blockIdx.x] = 1;
  __threadfence();
  const bool last = atomicAdd(ticket, 1) == gridDim.x - 1;
  if (late) parts[blockIdx.x] = 1;
  if (!last) return;
  for (uint32_t i = 0; i < gridDim.x; i++) out[0] += parts[i];
  for (uint32_t i = 0; i < gridDim.x; i++) parts[i] = 0;
  *ticket = 0;
}

static void blocks_come_in_any_order(void **) {
  float parts[8] = {};
  uint32_t ticket = 0;
  assert_int_equal(wrong_results(8, 8, 1, last_block, parts, &ticket, false), 0);
  assert_true(wrong_results(8, 8, 1, last_block, parts, &ticket, true) > 0);
}

/* All blocks have to be there for any to get on. */
static __global__ void meet_in_the_grid(float *out, uint32_t *come, uint32_t *counted) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(come, 1);
    while (__ldcg(come) % gridDim.x != 0) __nanosleep(20);
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(counted, 1) % gridDim.x == gridDim.x - 1)
    out[0] = (float)(*come / gridDim.x * gridDim.x == *come);
}

static void a_grid_may_wait_for_itself(void **) {
  uint32_t come = 0, counted = 0;
  float out[1] = {};
  meet_in_the_grid<<<40, 64>>>(out, &come, &counted);
  assert_true(out[0] == 1 && come == 40 && counted == 40);
}

/* --- memory ----------------------------------------------------------------------------------------------------------------- */

static __global__ void copy_in(float *out, const float *from, bool waits) {
  __shared__ __align__(16) float to[4 * 32];
  cp_async_16(&to[4 * threadIdx.x], &from[4 * threadIdx.x]);
  if (waits) cp_async_wait_all();
  float sum = 0;
  for (int i = 0; i < 4; i++) sum += to[4 * threadIdx.x + i];
  for (int offset = 16; offset; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x == 0) out[0] = sum;
}

static void copies_have_to_be_waited_for(void **) {
  alignas(16) float from[4 * 32];
  for (float &x : from) x = 0.5f;
  assert_int_equal(wrong_results(64, 1, 32, copy_in, from, true), 0);
  assert_int_equal(wrong_results(64, 1, 32, copy_in, from, false), RUNS); /* 32 of them at once by luck: once in 2^32 */
}

static __global__ void use_before_writing(float *out) {
  __shared__ float number;
  out[0] = number;
  number = 1;
}

static void shared_memory_is_no_number_at_first(void **) {
  assert_int_equal(wrong_results(1, 5, 1, use_before_writing), RUNS);
  float out[1] = {};
  use_before_writing<<<1, 1>>>(out);
  assert_true(out[0] != out[0]);
}

/* Each block of a cluster gives its neighbour a number; without the second barrier a block may be gone when it is read. */
static __global__ void ask_the_neighbour(float *out, bool stays) {
  __shared__ float number;
  cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
  if (threadIdx.x == 0) number = (float)cluster.block_rank();
  cluster.sync();
  const float got = *cluster.map_shared_rank(&number, (cluster.block_rank() + 1) % cluster.num_blocks());
  if (threadIdx.x == 0) atomicAdd(out, got * (float)cluster.block_rank());
  if (stays) cluster.sync();
}

/* Blocks of a warp, so many to a cluster. */
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
  for (int run = 0; run < RUNS; run++) assert_int_equal(launch_cluster(4, 8, ask_the_neighbour, out, true), cudaSuccess);
  assert_true(out[0] == RUNS * 2 * (0 * 1 + 1 * 2 + 2 * 3 + 3 * 0));
  assert_int_equal(launch_cluster(4, 6, ask_the_neighbour, out, true), cudaErrorInvalidConfiguration);
}

/* Each lane of a block sends a number to its pair's other block, in two turns, and that adds up what it has got. */
static __global__ void send_to_the_other(float *out, bool waits, uint32_t expected) {
  __shared__ __align__(8) mbarrier came;
  __shared__ __align__(8) float numbers[2][64];
  const uint32_t other = rank_in_cluster() ^ 1;
  if (threadIdx.x == 0) mbarrier_init(&came);
  cluster_barrier();
  float sum = 0;
  for (uint32_t turn = 1; turn <= 2; turn++) {
    if (threadIdx.x == 31) mbarrier_arrive_expect_tx(&came, expected);
    st_async(other, &numbers[turn - 1][threadIdx.x * 2], make_float2(1, (float)turn), &came);
    while (waits && !mbarrier_try_wait(&came, turn)) {
    }
    sum += numbers[turn - 1][63 - threadIdx.x * 2] + numbers[turn - 1][62 - threadIdx.x * 2];
    while (!mbarrier_try_wait(&came, turn)) {
    }
    cluster_barrier();
  }
  for (int offset = 16; offset; offset >>= 1) sum += __shfl_xor_sync(~0u, sum, offset);
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

static void what_is_sent_has_to_be_waited_for(void **) {
  int wrong = 0;
  for (int run = 0; run < RUNS; run++) {
    float right[1] = {}, early[1] = {};
    assert_int_equal(launch_cluster(2, 2, send_to_the_other, right, true, 32 * 8), cudaSuccess);
    assert_true(right[0] == 2 * 32 * (2 + 3));
    assert_int_equal(launch_cluster(2, 2, send_to_the_other, early, false, 32 * 8), cudaSuccess);
    wrong += !(early[0] == right[0]);
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
  if (lane % 2) out[160 + lane] = __shfl_xor_sync(0xaaaaaaaa, lane, 2); /* half of the warp among itself */
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
  __shared__ __align__(16) __half left[16 * 16], right[16 * 8];
  for (int i = threadIdx.x; i < 16 * 16; i += 32) left[i] = a[i];
  for (int i = threadIdx.x; i < 16 * 8; i += 32) right[i] = b[i];
  __syncwarp();
  uint32_t of_a[4], of_b[4];
  float sum[4] = {};
  ldmatrix_x4(of_a, shared_address(&left[threadIdx.x % 16 * 16 + threadIdx.x / 16 * 8]));
  ldmatrix_x4_trans(of_b, shared_address(&right[threadIdx.x % 16 * 8]));
  mma_m16n8k16(sum, of_a, of_b);
  for (int i = 0; i < 4; i++) c[(threadIdx.x / 4 + i / 2 * 8) * 8 + threadIdx.x % 4 * 2 + i % 2] = sum[i];
}

static void fragments_make_a_product(void **) {
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

/* --- what ends the program -------------------------------------------------------------------------------------------------- */

static __global__ void diverge() {
  if (threadIdx.x < 40) __syncthreads();
}
static __global__ void leave_a_lane() {
  if (threadIdx.x != 7) __shfl_sync(~0u, 1, 0);
  else __syncthreads();
}
static __global__ void mix() {
  if (threadIdx.x < 16) __shfl_xor_sync(~0u, 1, 1);
  else __ballot_sync(~0u, 1);
}
static __global__ void reach_too_far() {
  extern __shared__ __align__(16) float numbers[];
  uint32_t to[4];
  ldmatrix_x4(to, shared_address(numbers) + 16 * threadIdx.x);
}
static __global__ void read_askew() {
  __shared__ __align__(16) __half numbers[32 * 8 + 1];
  uint32_t to[4];
  ldmatrix_x4(to, shared_address(&numbers[8 * threadIdx.x + 1]));
}
static __global__ void expect_from_nowhere() {
  __shared__ __align__(8) mbarrier came;
  mbarrier_arrive_expect_tx(&came, 8);
}
static __global__ void spin_for_ever(uint32_t *flag) {
  while (__ldcg(flag) == 0) {
  }
}

/* What the launch prints before it aborts has to say so. */
template <class Launch> static void dies(const char *saying, Launch launch) {
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
  for (ssize_t got; used < sizeof text - 1 && (got = read(pipes[0], text + used, sizeof text - 1 - used)) > 0;)
    used += (size_t)got;
  close(pipes[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(text, saying))
    fail_msg("wanted \"%s\", got status %#x and %s", saying, status, text);
}

static void what_is_wrong_ends_the_program(void **) {
  dies("deadlock\n  block (0, 0, 0), warp 0, lanes 0 to 31: __syncthreads\n", [] { diverge<<<1, 64>>>(); });
  dies("lanes 8 to 31: __shfl_sync\n", [] { leave_a_lane<<<1, 32>>>(); });
  dies("at __shfl_xor_sync with mask 0xffffffff, lane 16 at __ballot_sync", [] { mix<<<1, 32>>>(); });
  dies("out of bounds", [] { reach_too_far<<<1, 32, 31 * 16>>>(); });
  dies("is not aligned to 16 bytes", [] { read_askew<<<1, 32>>>(); });
  dies("nobody gets any further", [] {
    float out[1];
    launch_cluster(2, 2, send_to_the_other, out, true, 33 * 8); /* one more than is sent */
  });
  dies("has not been initialised", [] { expect_from_nowhere<<<1, 32>>>(); });
  dies("nobody gets any further", [] {
    uint32_t flag = 0;
    spin_for_ever<<<1, 1>>>(&flag);
  });
}

static void launches_beyond_the_limits_are_refused(void **) {
  float out[1];
  use_before_writing<<<1, 1025>>>(out);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
  use_before_writing<<<0, 1>>>(out);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidConfiguration);
  use_before_writing<<<1, 1, 50000>>>(out);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
  assert_int_equal(cudaFuncSetAttribute(use_before_writing, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000), cudaSuccess);
  use_before_writing<<<1, 1, 50000>>>(out);
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
  assert_int_equal(cudaLaunchKernelEx(&config, use_before_writing, out), cudaErrorInvalidClusterSize);
  assert_int_equal(cudaFuncSetAttribute(use_before_writing, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), cudaSuccess);
  assert_int_equal(cudaLaunchKernelEx(&config, use_before_writing, out), cudaSuccess);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(barriers_are_needed),
                                     cmocka_unit_test(lanes_are_not_in_step),
                                     cmocka_unit_test(blocks_come_in_any_order),
                                     cmocka_unit_test(a_grid_may_wait_for_itself),
                                     cmocka_unit_test(copies_have_to_be_waited_for),
                                     cmocka_unit_test(shared_memory_is_no_number_at_first),
                                     cmocka_unit_test(clusters_share_memory),
                                     cmocka_unit_test(what_is_sent_has_to_be_waited_for),
                                     cmocka_unit_test(shuffles_move_numbers),
                                     cmocka_unit_test(fragments_make_a_product),
                                     cmocka_unit_test(what_is_wrong_ends_the_program),
                                     cmocka_unit_test(launches_beyond_the_limits_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
