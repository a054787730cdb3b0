/* Tests the operation `sample` of a CUDA device (rl_device_ops) on launches whose times and effects are known: kernels that wait
 * for a given time, and a kernel that uses up a buffer which a restore launch must empty before each repetition. */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/statistics.h"
#include "cuda_check.h"
#include "device/device.h"

enum {
  WAITS = 32,        /* launches of WAIT_NS in a sample */
  SHORT_WAITS = 200, /* launches of 1 ns in a sample */
  WAIT_NS = 5000,
  LONG_NS = 3000000, /* duration of a restore launch, far above WAIT_NS */
  SAMPLES = 41,
  SLOTS = 1024, /* slots of the buffer; the launch that fills it takes all of them */
  REPEATS = 70  /* repetitions of the filling launch in a sequence */
};
static const double EXPECTED_US = WAITS * WAIT_NS * 1e-3;

static rl_device *device;
static int failures;

static void expect(bool condition, const char *expectation) {
  if (condition) return;
  printf("failed: %s\n", expectation);
  failures++;
}

static void assert_ok(int rc, const rl_error *err) {
  if (rc >= 0) return;
  fprintf(stderr, "test_samples: %s\n", err->message);
  exit(1);
}

__global__ static void wait_for(uint64_t ns) {
  uint64_t begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < ns);
}

static int wait_on_device(void *ns, rl_stream stream, rl_error *err) {
  wait_for<<<1, 1, 0, (cudaStream_t)stream>>>(*(const uint64_t *)ns);
  return rl_cuda_check_launch("waiting", err);
}

static double median_us(const rl_sequence *sequence, rl_cache_state cache) {
  double us[SAMPLES];
  rl_error err;
  assert_ok(device->ops->sample(device, sequence, cache, SAMPLES, NULL, us, &err), &err);
  return rl_summarize_sample(us, SAMPLES).median;
}

/* Tests that a sample of many launches is the sum of their device times, without the host's time to issue them, with a cold and
 * with a warm cache. */
static void launches_add_up(void) {
  static uint64_t ns[] = {WAIT_NS, 1};
  rl_launch long_waits[WAITS], short_waits[SHORT_WAITS];
  for (rl_launch &each : long_waits) each = {"wait", "kernel", wait_on_device, &ns[0]};
  for (rl_launch &each : short_waits) each = {"wait", "kernel", wait_on_device, &ns[1]};
  const rl_sequence few = {"waits", long_waits, WAITS, 1, NULL}, many = {"short waits", short_waits, SHORT_WAITS, 1, NULL};
  double cold = median_us(&few, RL_CACHE_COLD), warm = median_us(&few, RL_CACHE_WARM);
  printf("%d launches of %.0f us: cold %.1f us, warm %.1f us\n", WAITS, WAIT_NS * 1e-3, cold, warm);
  expect(cold >= EXPECTED_US && cold < 1.6 * EXPECTED_US, "cold samples add up the launches");
  expect(warm >= EXPECTED_US && warm < 1.6 * EXPECTED_US, "warm samples add up the launches");
  cold = median_us(&many, RL_CACHE_COLD), warm = median_us(&many, RL_CACHE_WARM);
  printf("%d short launches: cold %.1f us, warm %.1f us\n", SHORT_WAITS, cold, warm);
  expect(cold < 1.25 * warm, "in cold samples the device does not wait for the host");
  rl_sequence paused = few;
  paused.pause_ms = 5;
  cold = median_us(&paused, RL_CACHE_COLD), warm = median_us(&paused, RL_CACHE_WARM);
  printf("%d launches of %.0f us after a pause: cold %.1f us, warm %.1f us\n", WAITS, WAIT_NS * 1e-3, cold, warm);
  expect(cold >= EXPECTED_US && cold < 1.6 * EXPECTED_US, "cold samples exclude the pause");
  expect(warm >= EXPECTED_US && warm < 1.6 * EXPECTED_US, "warm samples exclude the pause");
}

typedef struct buffer {
  int *next, *overruns; /* counters on the device: the next free slot of SLOTS, and the requests that found no free slot */
} buffer;

__global__ static void take_slot(int *next, int *overruns) {
  if (atomicAdd(next, 1) >= SLOTS) atomicAdd(overruns, 1);
}

static int take_all_slots(void *arg, rl_stream stream, rl_error *err) {
  const buffer *b = (const buffer *)arg;
  take_slot<<<SLOTS / 128, 128, 0, (cudaStream_t)stream>>>(b->next, b->overruns);
  return rl_cuda_check_launch("filling", err);
}

static int empty_buffer(void *arg, rl_stream stream, rl_error *err) {
  return rl_cuda_check(cudaMemsetAsync(((const buffer *)arg)->next, 0, sizeof(int), (cudaStream_t)stream), "emptying", err);
}

static int read_overruns(const buffer *b) {
  int count = 0;
  rl_error err;
  assert_ok(device->ops->download(device, &count, b->overruns, sizeof count, &err), &err);
  assert_ok(device->ops->fill(device, b->overruns, 0, sizeof count, &err), &err);
  return count;
}

static uint64_t count_launches(const rl_sequence *sequence) {
  const rl_sequence_list sequence_list = {"whole", sequence, 1};
  rl_executable *executable;
  rl_elapsed elapsed;
  rl_error err;
  assert_ok(device->ops->instantiate(device, &sequence_list, &executable, &err), &err);
  assert_ok(device->ops->run(device, executable, NULL, &elapsed, &err), &err);
  device->ops->free_executable(device, executable);
  return elapsed.stream_operations;
}

/* Tests that the restore launch of a sequence runs before each repetition, in a graph, without one and in samples. */
static void each_repeat_is_restored(void) {
  buffer b;
  rl_error err;
  rl_elapsed elapsed;
  assert_ok(device->ops->allocate(device, RL_MEMORY_DATASET, sizeof(int), (void **)&b.next, &err), &err);
  assert_ok(device->ops->allocate(device, RL_MEMORY_DATASET, sizeof(int), (void **)&b.overruns, &err), &err);
  assert_ok(device->ops->fill(device, b.next, 0, sizeof(int), &err), &err);
  assert_ok(device->ops->fill(device, b.overruns, 0, sizeof(int), &err), &err);
  const rl_launch launch = {"fill", "kernel", take_all_slots, &b}, restore = {"empty", "data", empty_buffer, &b};
  const rl_sequence bare = {"bare", &launch, 1, REPEATS, NULL}, restored = {"restored", &launch, 1, REPEATS, &restore};
  const rl_sequence_list sequence_list = {"whole", &restored, 1};
  expect(count_launches(&bare) == REPEATS && read_overruns(&b) == (REPEATS - 1) * SLOTS,
         "without a restore launch the buffer overruns");
  expect(count_launches(&restored) == 2 * REPEATS && read_overruns(&b) == 0,
         "in a graph each repeat starts with an empty buffer");
  assert_ok(device->ops->run_eager(device, &sequence_list, NULL, &elapsed, &err), &err);
  expect(elapsed.stream_operations == 2 * REPEATS && read_overruns(&b) == 0,
         "without a graph each repeat starts with an empty buffer");
  const double cold = median_us(&restored, RL_CACHE_COLD);
  expect(read_overruns(&b) == 0, "each cold sample starts with an empty buffer");
  const double warm = median_us(&restored, RL_CACHE_WARM);
  expect(read_overruns(&b) == 0, "each warm sample starts with an empty buffer");
  printf("a restored launch: cold %.2f us, warm %.2f us; unrestored, warm: %.2f us\n", cold, warm,
         median_us(&bare, RL_CACHE_WARM));
  device->ops->release(device, b.next);
  device->ops->release(device, b.overruns);
}

/* Tests that samples exclude the time of the restore launch. */
static void restoring_is_not_timed(void) {
  static uint64_t long_ns = LONG_NS, short_ns = WAIT_NS;
  const rl_launch restore = {"restore", "data", wait_on_device, &long_ns}, one = {"wait", "kernel", wait_on_device, &short_ns};
  const rl_launch two[] = {one, one};
  const rl_sequence sequence_of_one = {"one", &one, 1, 1, &restore}, sequence_of_two = {"two", two, 2, 1, &restore};
  for (int cache = RL_CACHE_COLD; cache <= RL_CACHE_WARM; cache++) {
    const double one_us = median_us(&sequence_of_one, (rl_cache_state)cache),
                 two_us = median_us(&sequence_of_two, (rl_cache_state)cache);
    printf("%s: a wait of %.0f us after restoring: %.2f us, two: %.2f us\n", cache == RL_CACHE_COLD ? "cold" : "warm",
           WAIT_NS * 1e-3, one_us, two_us);
    expect(one_us >= WAIT_NS * 1e-3 && one_us < 4 * WAIT_NS * 1e-3, "a sample of one launch excludes the restore");
    expect(two_us >= 2 * WAIT_NS * 1e-3 && two_us < 5 * WAIT_NS * 1e-3, "a sample of two launches excludes the restore");
  }
}

int main(void) {
  rl_error err;
  if (rl_device_count(&err) == 0) {
    printf("skipped: %s\n", err.message);
    return 77;
  }
  device = rl_device_open(0, &err);
  assert_ok(device ? 0 : -1, &err);
  launches_add_up();
  each_repeat_is_restored();
  restoring_is_not_timed();
  device->ops->close(device);
  printf(failures ? "%d failed\n" : "all passed\n", failures);
  return failures != 0;
}
