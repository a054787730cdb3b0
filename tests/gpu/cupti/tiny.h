/* A device and an instance of known answers for the profiler's tests: what each launch must show can be told beforehand. */
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
  TINY_FMAS = 1024,
  TINY_FMA_WARPS = 132 * 8 * 8,
  TINY_STATE = 1 << 18, /* floats */
  TINY_NODES = 20,
};

/* Launches of the step, in this order. */
enum tiny_launch { TINY_SLEEP, TINY_COPY, TINY_FMA, TINY_FMA_TWICE, TINY_PAIR, TINY_UPDATE, TINY_LAUNCHES };

typedef struct tiny_rig {
  rl_instance base;
  rl_device device;
  float *state; /* what TINY_UPDATE changes */
} tiny_rig;

/* 0; 1 when there is no GPU, with the reason in err; -1. */
int tiny_open(tiny_rig *tiny, rl_error *err);
void tiny_close(tiny_rig *tiny);
/* The state, on the host: TINY_STATE floats. */
int tiny_state(tiny_rig *tiny, float *state, rl_error *err);

/* Every launch of the step once; tiny_sleep: only that one. They wait. */
int tiny_step(tiny_rig *tiny, rl_error *err);
int tiny_sleep(tiny_rig *tiny, rl_error *err);
/* `count` launches of an empty kernel of 3 blocks of 64. */
int tiny_launch_empty(tiny_rig *tiny, int count, rl_error *err);
/* A graph of `nodes` empty kernels; then replay it, wait, and say how long a node took. */
int tiny_graph_open(tiny_rig *tiny, int nodes, void **graph, rl_error *err);
int tiny_graph_run(tiny_rig *tiny, void *graph, int replays, double *node_us, rl_error *err);
void tiny_graph_close(void *graph);
/* Allocates bytes, sets them, copies them in place and to the host, frees them. */
int tiny_move(tiny_rig *tiny, size_t bytes, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
