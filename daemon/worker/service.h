/* Serves the daemon's requests in a worker: opens instances and executes passes on them. The most recently used instances stay
 * open, so that the next request with the same workload and parameters can use their data set, handles and compiled kernels. Not
 * thread-safe: all calls must come from the thread that opened the device. */
#ifndef RL_WORKER_SERVICE_H
#define RL_WORKER_SERVICE_H

#include "base/cleanup.h"
#include "model/records.h"
#include "wire/wire.h"
#include "worker/pass.h"

typedef struct rl_service rl_service;
typedef struct rl_service_options { /* borrowed; the options must outlive the service */
  rl_device *device;
  rl_profiler *profiler; /* NULL: no_profiler_reason has the reason */
  const char *no_profiler_reason;
  rl_sensors *sensors;
  const char *role;              /* passes that the worker executes: "unprofiled" (timing), "profiled" (other passes) or "any" */
  double used_bytes_before_open; /* device memory in use before the worker opened the device; NAN: not measured */
  bool (*cancelled)(void *context); /* polled during a request */
  /* instance_opened is called once per request. After it, progress is called at most five times per second. */
  void (*instance_opened)(void *context, const rl_run_metadata *metadata);
  void (*progress)(void *context, const rl_progress *progress);
  void (*stage)(void *context, const char *stage); /* "open", then the phases of rl_progress; NULL: not called */
  void *context;
} rl_service_options;

/* Returns 0, or -1 with RL_ERRNO when memory is out. */
int rl_service_open(const rl_service_options *options, rl_service **service, rl_error *err);
/* Executes one request and adds its results, metadata included, to records. err has the reason of FAILED and UNAVAILABLE. */
rl_outcome rl_service_serve(rl_service *service, const rl_request *request, rl_records *records, rl_error *err);
/* Releases reserved hardware counters, so that another process can use them. Instances stay open. */
void rl_service_release_profiler(rl_service *service);
/* Returns true when a simple operation on the device succeeds. When it fails, the process must exit. */
bool rl_service_device_works(rl_service *service);
void rl_service_close(rl_service *service); /* closes open instances; does nothing for NULL */

RL_DEFINE_CLEANUP(rl_service_cleanup, rl_service *, rl_service_close, NULL)
#endif
