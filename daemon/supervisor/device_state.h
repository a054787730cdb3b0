/* The state of a device as GET /devices reports it. */
#ifndef RL_SUPERVISOR_DEVICE_STATE_H
#define RL_SUPERVISOR_DEVICE_STATE_H

#include <stdint.h>

typedef struct rl_device_state {
  char id[16], kind[8];  /* kind: "cpu", "cuda", or "import" for the importer, which GET /devices does not list */
  char state[16];        /* "idle", "busy", "starting" or "unusable" */
  char reason[256];      /* reason why the device is unusable; "": it is usable */
  char properties[4096]; /* JSON object; "": unknown */
  int64_t job_id;        /* id of the running job; 0: no job runs on the device */
  int64_t restarts;      /* number of worker processes started after a crash */
  int64_t frames, bytes; /* numbers of frames and bytes received from the device's workers */
} rl_device_state;

#endif
