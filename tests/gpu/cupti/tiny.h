/* A device and an instance with known launches, for tests of the profiler. */
#ifndef RL_TESTS_CUPTI_TINY_H
#define RL_TESTS_CUPTI_TINY_H

#include "worker/profiler.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  TINY_SLEEP_US = 2000,
  TINY_COPY_BYTES = 256 << 20,
  TINY_PAIR_BYTES = 32 << 20,
  TINY_FMAS_PER_THREAD = 1024,
  TINY_FMA_WARPS = 132 * 8 * 8,
  TINY_STATE_FLOATS = 1 << 18, /* floats */
  TINY_NODES = 20,
};

/* Launches of the step, in this order. */
enum tiny_launch { TINY_SLEEP, TINY_COPY, TINY_FMA, TINY_FMA_TWICE, TINY_PAIR, TINY_UPDATE, TINY_LAUNCH_COUNT };

typedef struct tiny_fixture {
  rl_instance base;
  rl_device device;
  float *state; /* changed by TINY_UPDATE */
} tiny_fixture;

/* 0; 1 when there is no GPU, with the reason in err; -1 on error. One at a time. */
int tiny_open(tiny_fixture *tiny, rl_error *err);
void tiny_close(tiny_fixture *tiny);
/* Copies the state, TINY_STATE_FLOATS floats, to the host. */
int tiny_read_state(tiny_fixture *tiny, float *state, rl_error *err);

/* Runs every launch of the step, or only TINY_SLEEP, and waits. */
int tiny_run_step(tiny_fixture *tiny, rl_error *err);
int tiny_sleep(tiny_fixture *tiny, rl_error *err);
/* Launches an empty kernel of 3 blocks of 64 threads `count` times and waits. */
int tiny_launch_empty(tiny_fixture *tiny, int count, rl_error *err);
/* Captures a graph of `nodes` empty kernels. tiny_graph_run replays it, waits, and sets *replay_us to the mean time of a replay
 * in us. */
int tiny_graph_open(tiny_fixture *tiny, int nodes, void **graph, rl_error *err);
int tiny_graph_run(tiny_fixture *tiny, void *graph, int replays, double *replay_us, rl_error *err);
void tiny_graph_close(void *graph);
/* Runs the sleeping kernel in another stream, and an empty kernel that waits for it by an event. Waits for both. */
int tiny_wait_for_stream(tiny_fixture *tiny, rl_error *err);
/* Allocates bytes, sets them, copies them on the device and to the host, and frees them. */
int tiny_copy_new_memory(tiny_fixture *tiny, size_t bytes, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
