/* The state of a device as GET /devices reports it. */
#ifndef RL_SUPERVISOR_DEVICE_STATE_H
#define RL_SUPERVISOR_DEVICE_STATE_H

#include <stdint.h>

typedef struct rl_device_state {
  char id[16], kind[8];  /* kind: "cpu", "cuda", or "import" for the importer, which GET /devices does not list */
  char state[16];        /* "idle", "busy", "starting" or "unusable" */
  char reason[256];      /* reason why the device is unusable; "": it is usable */
  char properties[4096]; /* JSON object; "": unknown */
  int64_t job_id;        /* id of the job that runs on the device; 0: none */
  int64_t restarts;
  int64_t frames, bytes; /* received from its workers */
} rl_device_state;

#endif
