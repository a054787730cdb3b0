/* The workers: one lane (a thread) for each device takes passes from the queue and has them done by the device's resident worker
 * processes, clean and profiled, one at a time; so the lane is the device's lease. Supervises: start, hello, deadline, kill,
 * restart with back-off (0.25 s doubling to 30 s). */
#ifndef RL_SUPERVISOR_FLEET_H
#define RL_SUPERVISOR_FLEET_H

#include "base/cleanup.h"
#include "config.h"
#include "queue/queue.h"

typedef struct rl_fleet rl_fleet;

/* Find the installed workers (rooflined-worker-*), ask each which devices it has, start a lane for each usable one, tell jobs.
 * Fails only when memory or threads are out: a worker that can't serve is listed with its reason. */
int rl_fleet_open(const rl_config *config, rl_queue *jobs, rl_fleet **fleet, rl_error *err);
/* Ends passes that run (their jobs become interrupted), ends workers, within about a second. */
void rl_fleet_close(rl_fleet *fleet);

typedef struct rl_device_state {
  char id[16], kind[8]; /* "cpu" | "cuda" */
  char state[16];       /* "idle" "busy" "starting" "unusable" */
  char reason[256];     /* why unusable; "" otherwise */
  char facts[4096];     /* JSON object, "" when not known */
  int64_t job_id;       /* 0: none */
  int64_t restarts;
  int64_t frames, bytes; /* that its workers have sent */
} rl_device_state;
/* Copies at most capacity states; returns how many devices there are: RL_DEVICES_MAX at most. */
int rl_fleet_devices(rl_fleet *fleet, rl_device_state *states, int capacity);

RL_DEFINE_CLEANUP(rl_fleet_cleanup, rl_fleet *, rl_fleet_close, NULL)
#endif
