/* A device and an instance with six launches whose durations, bytes and instructions follow from the constants below, for tests
 * of the profiler; and further launches and graphs to trace. */
#ifndef RL_TESTS_CUPTI_TINY_H
#define RL_TESTS_CUPTI_TINY_H

#include "worker/profiler.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TINY_SLEEP_US = 2000,         /* duration of TINY_SLEEP */
  TINY_COPY_BYTES = 256 << 20,  /* bytes that TINY_COPY reads; it writes as many */
  TINY_PAIR_BYTES = 32 << 20,   /* bytes that each of TINY_PAIR's two kernels reads; they stay in L2 */
  TINY_FMAS_PER_THREAD = 1024,  /* multiply-adds per thread of TINY_FMA */
  TINY_FMA_WARPS = 132 * 8 * 8, /* warps of TINY_FMA */
  TINY_STATE_FLOATS = 1 << 18,  /* floats of the state that the launch TINY_UPDATE changes */
  TINY_NODES = 20,              /* kernels of the graphs that the tests capture */
};

/* Indices of the step's launches. TINY_FMA_TWICE executes twice the multiply-adds of TINY_FMA; TINY_PAIR launches two kernels. */
enum tiny_launch { TINY_SLEEP, TINY_COPY, TINY_FMA, TINY_FMA_TWICE, TINY_PAIR, TINY_UPDATE, TINY_LAUNCH_COUNT };

typedef struct tiny_fixture {
  rl_instance base;
  rl_device device;
  float *state; /* TINY_STATE_FLOATS floats on the device, changed by TINY_UPDATE */
} tiny_fixture;

/* Opens the device and the instance; only one can be open at a time. Returns 0; 1 with the reason in err when the machine has
 * no GPU; returns -1 on an error. */
int tiny_open(tiny_fixture *tiny, rl_error *err);
void tiny_close(tiny_fixture *tiny);
/* Copies the TINY_STATE_FLOATS floats of the state from the device to `state` on the host. */
int tiny_read_state(tiny_fixture *tiny, float *state, rl_error *err);

/* tiny_run_step issues every launch of the step, and tiny_sleep only TINY_SLEEP. Both functions wait until the device has
 * finished. */
int tiny_run_step(tiny_fixture *tiny, rl_error *err);
int tiny_sleep(tiny_fixture *tiny, rl_error *err);
/* Launches a kernel without instructions, with 3 blocks of 64 threads, `count` times, and waits until the device has finished. */
int tiny_launch_empty(tiny_fixture *tiny, int count, rl_error *err);
/* tiny_graph_open captures a graph of `nodes` such kernels. tiny_graph_run replays it `replays` times, waits, and sets *replay_us
 * (may be NULL) to the mean time of one replay in microseconds. */
int tiny_graph_open(tiny_fixture *tiny, int nodes, void **graph, rl_error *err);
int tiny_graph_run(tiny_fixture *tiny, void *graph, int replays, double *replay_us, rl_error *err);
void tiny_graph_close(void *graph);
/* Runs the sleeping kernel in another stream and, in the device's own stream, an empty kernel that waits for the first one by an
 * event. Waits for both kernels. */
int tiny_wait_for_stream(tiny_fixture *tiny, rl_error *err);
/* Allocates `bytes` of device memory, fills them by memset, copies them within the device and to the host, and frees them. */
int tiny_copy_new_memory(tiny_fixture *tiny, size_t bytes, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
