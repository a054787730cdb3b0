/* Serves one request at a time: finds or opens the instance and runs the pass. At most two instances stay open; the least
 * recently used one is closed. Allocations are attributed to the instance that is being opened or run. */
#include "worker/service.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/commit.h"

enum { MAX_CACHED_INSTANCES = 2 };
static const int64_t PROGRESS_INTERVAL_NS = 200000000;

static rl_outcome (*const run_pass[RL_PASS_COUNT])(rl_pass_context *pass, rl_error *err) = {
    [RL_PASS_TIMING] = rl_timing_run, [RL_PASS_ACTIVITY] = rl_activity_run, [RL_PASS_COUNTERS] = rl_counters_run};

typedef struct cached_instance { /* an instance that stays open for later requests */
  const rl_workload *workload;
  const rl_engine *engine;
  void *params;
  rl_instance *instance;
  rl_executable *iteration, *evaluation; /* NULL until they first run */
  uint64_t last_used;
  rl_memory_usage memory_usage; /* memory of this instance alone; peaks are those since it was opened */
} cached_instance;

struct rl_service {
  rl_service_options options;
  cached_instance cached_instances[MAX_CACHED_INSTANCES];
  uint64_t request_count;
  int64_t progress_sent_ns; /* monotonic time at which progress was last sent */
  rl_pass_context pass;
  rl_observer observer; /* observer of every request; its context points to this service */
  cached_instance *current;
  /* Bytes that are allocated for the other instances, by purpose and in total. */
  uint64_t other_instances_bytes[RL_MEMORY_PURPOSE_COUNT], other_instances_total_bytes;
  double cuda_context_bytes;       /* device memory that our allocator did not allocate, after the last request */
  bool opening_overlapped;         /* rl_request.opening_overlapped; cuda_context_bytes is then NAN */
  double used_bytes_at_start;      /* device memory in use when this request started */
  double allocated_bytes_at_start; /* bytes that our allocator had allocated at that time */
};

/* ---- progress -------------------------------------------------------------------------------------------------------- */

/* Computes the remaining time and the rate, and sends the progress. Unless `immediately` is true, sends nothing within
 * PROGRESS_INTERVAL_NS of the last progress. */
static void report_progress(rl_pass_context *pass, bool immediately) {
  rl_service *service = pass->context;
  int64_t now = rl_monotonic_ns();
  if (!immediately && now - service->progress_sent_ns < PROGRESS_INTERVAL_NS) return;
  service->progress_sent_ns = now;
  rl_progress *progress = &pass->current_progress;
  double iteration_ratio = progress->steps > 0 ? (double)progress->step / (double)progress->steps : 0;
  bool iterating =
      strcmp(progress->phase, "epoch") == 0 || strcmp(progress->phase, "warmup") == 0 || strcmp(progress->phase, "trace") == 0;
  double done_ratio =
      pass->iterations_total > 0 ? (pass->iterations_done + (iterating ? iteration_ratio : 0)) / pass->iterations_total : 0;
  progress->eta_s =
      done_ratio > 0 && done_ratio <= 1 ? (double)(now - pass->started_ns) * 1e-9 * (1 - done_ratio) / done_ratio : NAN;
  if (iterating && pass->instance->images > 0 && progress->step > 0 &&
      pass->device->kind == RL_DEVICE_CPU) /* on CUDA the number of finished steps is known too late for a rate */
    progress->images_per_s = (double)pass->instance->images * iteration_ratio / ((double)(now - pass->phase_started_ns) * 1e-9);
  pass->progress(pass, progress);
}

static void forward_progress(rl_pass_context *pass, const rl_progress *progress) {
  rl_service *service = pass->context;
  if (service->options.progress) service->options.progress(service->options.context, progress);
}

static void on_progress(void *context, uint64_t done, uint64_t total) {
  rl_pass_context *pass = &((rl_service *)context)->pass;
  pass->current_progress.step = (int64_t)done;
  pass->current_progress.steps = (int64_t)total;
  report_progress(pass, false);
}

static bool is_cancelled(void *context) {
  rl_service *service = context;
  return service->options.cancelled && service->options.cancelled(service->options.context);
}

static void enter_stage(const rl_service *service, const char *stage) {
  if (service->options.stage) service->options.stage(service->options.context, stage);
}

void rl_pass_enter_phase(rl_pass_context *pass, const char *phase, int64_t epoch, int64_t epochs) {
  enter_stage((const rl_service *)pass->context, phase);
  bool first = pass->current_progress.phase[0] == '\0';
  snprintf(pass->current_progress.phase, sizeof pass->current_progress.phase, "%s", phase);
  pass->current_progress.epoch = epoch;
  pass->current_progress.epochs = epochs;
  pass->current_progress.step = pass->current_progress.steps = -1;
  pass->phase_started_ns = rl_monotonic_ns();
  report_progress(pass, first);
}

void rl_pass_iteration_done(rl_pass_context *pass) { pass->iterations_done++; }

rl_outcome rl_outcome_of_error(int rc, const rl_error *err) {
  if (rc == 0) return RL_OUTCOME_DONE;
  return err->domain == RL_ERRNO && err->code == ECANCELED ? RL_OUTCOME_CANCELLED : RL_OUTCOME_FAILED;
}

int rl_pass_add_measurement(rl_pass_context *pass, const char *name, double value, const char *reason, rl_error *err) {
  return rl_records_add_measurement(pass->records, name, value, isnan(value) ? reason : NULL, err);
}

int rl_pass_add_measurements(rl_pass_context *pass, const rl_named_value *values, size_t count, rl_error *err) {
  for (size_t i = 0; i < count; i++)
    if (rl_pass_add_measurement(pass, values[i].name, values[i].value, values[i].reason, err) < 0) return -1;
  return 0;
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/* Attributes allocations from now on to this instance, and resets the peaks to the bytes in use now. */
static void begin_memory_attribution(rl_service *service, const cached_instance *entry) {
  rl_memory_usage *usage = &service->options.device->memory_usage;
  for (int p = 0; p < RL_MEMORY_PURPOSE_COUNT; p++) {
    usage->peak_bytes[p] = usage->bytes[p];
    service->other_instances_bytes[p] = usage->bytes[p] - entry->memory_usage.bytes[p];
  }
  usage->peak_total_bytes = usage->total_bytes;
  service->other_instances_total_bytes = usage->total_bytes - entry->memory_usage.total_bytes;
}

static void raise_peak(uint64_t *peak, uint64_t bytes) {
  if (bytes > *peak) *peak = bytes;
}

/* Updates the instance's memory usage: all allocated bytes except those of other instances. */
static void update_memory_usage(const rl_service *service, cached_instance *entry) {
  const rl_memory_usage *usage = &service->options.device->memory_usage;
  for (int p = 0; p < RL_MEMORY_PURPOSE_COUNT; p++) {
    entry->memory_usage.bytes[p] = usage->bytes[p] - service->other_instances_bytes[p];
    raise_peak(&entry->memory_usage.peak_bytes[p], usage->peak_bytes[p] - service->other_instances_bytes[p]);
  }
  entry->memory_usage.total_bytes = usage->total_bytes - service->other_instances_total_bytes;
  raise_peak(&entry->memory_usage.peak_total_bytes, usage->peak_total_bytes - service->other_instances_total_bytes);
}

rl_memory_usage rl_pass_memory_usage(const rl_pass_context *pass) {
  const rl_service *service = pass->context;
  update_memory_usage(service, service->current);
  return service->current->memory_usage;
}

/* Assumes that no other process allocates or frees memory of the device during a request. Then the growth of used memory that our
 * allocator did not allocate belongs to the CUDA context. */
double rl_pass_cuda_context_bytes(const rl_pass_context *pass) {
  const rl_service *service = pass->context;
  double grown_bytes = rl_sensors_read_used_bytes(service->options.sensors) - service->used_bytes_at_start;
  return service->cuda_context_bytes + grown_bytes -
         ((double)pass->device->memory_usage.total_bytes - service->allocated_bytes_at_start);
}

const char *rl_pass_no_context_bytes_reason(const rl_pass_context *pass) {
  const rl_service *service = pass->context;
  return service->opening_overlapped ? "another worker of rooflined opened the device at the same time" : "";
}

double rl_pass_used_bytes_before_open(const rl_pass_context *pass) {
  return ((const rl_service *)pass->context)->options.used_bytes_before_open;
}

/* ---- cached instances ------------------------------------------------------------------------------------------------ */

static void close_cached_instance(rl_device *device, cached_instance *entry) {
  if (entry->evaluation) device->ops->free_executable(device, entry->evaluation);
  if (entry->iteration) device->ops->free_executable(device, entry->iteration);
  if (entry->instance) entry->instance->ops->close(entry->instance);
  free(entry->params);
  *entry = (cached_instance){0};
}

/* Closes every instance except `except` (NULL: all). */
static void close_cached_instances(rl_service *service, const cached_instance *except) {
  for (int i = 0; i < MAX_CACHED_INSTANCES; i++)
    if (&service->cached_instances[i] != except) close_cached_instance(service->options.device, &service->cached_instances[i]);
}

static cached_instance *find_cached_instance(rl_service *service, const rl_workload *workload, const void *params) {
  for (int i = 0; i < MAX_CACHED_INSTANCES; i++) {
    cached_instance *entry = &service->cached_instances[i];
    if (entry->instance && entry->workload == workload && memcmp(entry->params, params, workload->params_size) == 0) return entry;
  }
  return NULL;
}

static cached_instance *least_recently_used(rl_service *service) {
  cached_instance *found = &service->cached_instances[0];
  for (int i = 1; i < MAX_CACHED_INSTANCES; i++)
    if (service->cached_instances[i].last_used < found->last_used) found = &service->cached_instances[i];
  return found;
}

/* Closes the least recently used instance and opens another in its place. Copies params. After a failure other than RL_INPUT, the
 * device may be out of memory: closes all other instances and tries once more. */
static int open_cached_instance(rl_service *service, const rl_workload *workload, const void *params, cached_instance **opened,
                                rl_error *err) {
  rl_device *device = service->options.device;
  const rl_engine *engine = rl_engine_find(workload->name, rl_workload_engine_name(workload, params), params, err);
  if (!engine) return -1;
  cached_instance *entry = least_recently_used(service);
  close_cached_instance(device, entry);
  for (int attempt = 0;; attempt++) {
    *entry = (cached_instance){.workload = workload, .engine = engine, .params = malloc(workload->params_size)};
    if (!entry->params) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for parameters");
    memcpy(entry->params, params, workload->params_size);
    begin_memory_attribution(service, entry);
    if (engine->open(device, entry->params, &entry->instance, err) >= 0) {
      update_memory_usage(service, entry);
      *opened = entry;
      return 0;
    }
    close_cached_instance(device, entry);
    if (attempt > 0 || service->other_instances_total_bytes == 0 || err->domain == RL_INPUT) return -1;
    close_cached_instances(service, NULL);
  }
}

static void close_other_instances(rl_service *service) {
  update_memory_usage(service, service->current);
  close_cached_instances(service, service->current);
  begin_memory_attribution(service, service->current);
}

static int run_sequence_list(rl_pass_context *pass, const rl_sequence_list *sequence_list, rl_executable **executable,
                             const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  rl_device *device = pass->device;
  if (!*executable && device->ops->instantiate(device, sequence_list, executable, err) < 0) {
    close_other_instances((rl_service *)pass->context); /* the device may be out of memory */
    if (device->ops->instantiate(device, sequence_list, executable, err) < 0) return -1;
  }
  return device->ops->run(device, *executable, observer, elapsed, err);
}

int rl_pass_run_iteration(rl_pass_context *pass, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  cached_instance *entry = ((rl_service *)pass->context)->current;
  return run_sequence_list(pass, &entry->instance->iteration, &entry->iteration, observer, elapsed, err);
}

int rl_pass_run_evaluation(rl_pass_context *pass, rl_elapsed *elapsed, rl_error *err) {
  cached_instance *entry = ((rl_service *)pass->context)->current;
  return run_sequence_list(pass, &entry->instance->evaluation, &entry->evaluation, &pass->observer, elapsed, err);
}

/* ---- requests ---------------------------------------------------------------------------------------------------------- */

static int fill_metadata(const rl_service *service, const cached_instance *entry, rl_run_metadata *metadata, rl_error *err) {
  const rl_instance *instance = entry->instance;
  rl_cost cost = entry->workload->cost(entry->params, instance->images);
  *metadata = (rl_run_metadata){.deterministic = instance->deterministic,
                                .partial = instance->partial_dataset,
                                .images_per_epoch = (int64_t)instance->images,
                                .steps_per_epoch = (int64_t)instance->steps,
                                .parameters = (int64_t)instance->trained_parameters,
                                .floor_operations = cost.operations,
                                .floor_bytes = cost.bytes,
                                .floor_written_bytes = cost.written_bytes,
                                .commit = RL_COMMIT};
  snprintf(metadata->floor_precision, sizeof metadata->floor_precision, "%s", cost.precision ? cost.precision : "");
  snprintf(metadata->engine, sizeof metadata->engine, "%s", entry->engine->description->name);
  snprintf(metadata->dataset, sizeof metadata->dataset, "%s", instance->dataset);
  snprintf(metadata->dataset_sha256, sizeof metadata->dataset_sha256, "%s", instance->dataset_sha256);
  if (instance->deterministic_note)
    snprintf(metadata->deterministic_note, sizeof metadata->deterministic_note, "%s", instance->deterministic_note);
  RL_CLEANUP(rl_free_text) char *device = rl_device_properties(service->options.device->index, err);
  if (!device) return -1;
  if (strlen(device) >= sizeof metadata->device_properties)
    return rl_fail(err, RL_ERRNO, EOVERFLOW, "the device's properties need %zu bytes, more than the limit of %zu", strlen(device),
                   sizeof metadata->device_properties - 1);
  strcpy(metadata->device_properties, device);
  return 0;
}

static int check_role(const rl_service *service, int pass, rl_error *err) {
  const char *role = service->options.role;
  const char *needed = pass == RL_PASS_TIMING ? "unprofiled" : "profiled";
  if (strcmp(role, "any") == 0 || strcmp(role, needed) == 0) return 0;
  return rl_fail(err, RL_INPUT, 0, "the %s pass needs a worker in the role %s; this worker has the role %s", rl_pass_names[pass],
                 needed, role);
}

static int decode_params(const rl_request *request, const rl_workload **workload, void **params, rl_error *err) {
  const rl_workload *found = rl_workload_find(request->workload);
  if (!found) return rl_fail_at(err, "/workload", "there is no workload \"%s\"", request->workload);
  void *decoded = calloc(1, found->params_size);
  if (!decoded) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for parameters");
  found->defaults(decoded);
  if (rl_fields_parse(found->fields, request->params, strlen(request->params), decoded, found->params_size, err) < 0) {
    free(decoded);
    return -1;
  }
  *workload = found;
  *params = decoded;
  return 0;
}

/* Decodes the options of the counters pass; options that the request lacks get their defaults. */
static int decode_profile_options(const rl_request *request, rl_profile_options *profile_options, rl_error *err) {
  rl_profile_options requested = {.matching_index = RL_ALL_MATCHING_KERNELS};
  if (request->profile[0] != '\0' && rl_fields_parse(rl_profile_options_fields, request->profile, strlen(request->profile),
                                                     &requested, sizeof requested, err) < 0)
    return -1;
  *profile_options = rl_profile_options_resolve(RL_PROFILE_SET_AUTO, &requested);
  return 0;
}

void rl_service_release_profiler(rl_service *service) {
  rl_profiler *profiler = service->options.profiler;
  if (profiler && profiler->ops->release_counters) profiler->ops->release_counters(profiler);
}

/* Finds or opens the request's instance, stores it in service->current, and initialises service->pass for it. */
static int prepare_request(rl_service *service, const rl_request *request, rl_records *records, rl_error *err) {
  const rl_workload *workload = NULL;
  void *params = NULL;
  rl_profile_options profile_options;
  if (check_role(service, request->pass, err) < 0 || decode_profile_options(request, &profile_options, err) < 0 ||
      decode_params(request, &workload, &params, err) < 0)
    return -1;
  service->current = find_cached_instance(service, workload, params);
  if (!service->current || request->pass != RL_PASS_COUNTERS) rl_service_release_profiler(service);
  int rc = service->current ? 0 : open_cached_instance(service, workload, params, &service->current, err);
  free(params);
  if (rc) return -1;
  service->current->last_used = ++service->request_count;
  if (fill_metadata(service, service->current, &records->metadata, err) < 0) return -1;
  records->has_metadata = true;
  if (service->options.instance_opened) service->options.instance_opened(service->options.context, &records->metadata);

  const rl_service_options *options = &service->options;
  cached_instance *entry = service->current;
  rl_pass_context *pass = &service->pass;
  *pass = (rl_pass_context){.device = options->device,
                            .profiler = options->profiler,
                            .instance = entry->instance,
                            .workload = entry->workload,
                            .engine = entry->engine,
                            .params = entry->params,
                            .records = records,
                            .progress = forward_progress,
                            .context = service,
                            .no_profiler_reason = options->no_profiler_reason,
                            .sensors = options->sensors,
                            .profile_options = profile_options,
                            .started_ns = rl_monotonic_ns(),
                            .current_progress = {.epoch = -1,
                                                 .epochs = -1,
                                                 .step = -1,
                                                 .steps = -1,
                                                 .train_loss = NAN,
                                                 .images_per_s = NAN,
                                                 .eta_s = NAN,
                                                 .test_accuracy_ratio = NAN}};
  pass->observer = service->observer;
  snprintf(pass->current_progress.pass, sizeof pass->current_progress.pass, "%s", rl_pass_names[request->pass]);
  return 0;
}

rl_outcome rl_service_serve(rl_service *service, const rl_request *request, rl_records *records, rl_error *err) {
  rl_error ignored;
  if (!err) err = &ignored;
  enter_stage(service, "open");
  service->opening_overlapped = request->opening_overlapped;
  if (request->opening_overlapped) service->cuda_context_bytes = NAN;
  service->used_bytes_at_start = rl_sensors_read_used_bytes(service->options.sensors);
  service->allocated_bytes_at_start = (double)service->options.device->memory_usage.total_bytes;
  if (prepare_request(service, request, records, err) < 0) return rl_outcome_of_error(-1, err);
  begin_memory_attribution(service, service->current);
  rl_outcome outcome = run_pass[request->pass](&service->pass, err);
  update_memory_usage(service, service->current);
  service->cuda_context_bytes = rl_pass_cuda_context_bytes(&service->pass);
  return outcome;
}

bool rl_service_device_works(rl_service *service) {
  rl_device *device = service->options.device;
  void *memory;
  uint32_t word = 1;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, sizeof word, &memory, NULL) < 0) return false;
  int rc = device->ops->fill(device, memory, 0, sizeof word, NULL);
  if (!rc) rc = device->ops->download(device, &word, memory, sizeof word, NULL);
  device->ops->release(device, memory);
  return rc == 0 && word == 0;
}

int rl_service_open(const rl_service_options *options, rl_service **service, rl_error *err) {
  rl_service *opened = calloc(1, sizeof *opened);
  if (!opened) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the service");
  opened->options = *options;
  opened->observer = (rl_observer){.context = opened, .cancelled = is_cancelled, .progress = on_progress};
  options->device->observer = &opened->observer;
  opened->cuda_context_bytes = rl_sensors_read_used_bytes(options->sensors) - options->used_bytes_before_open;
  *service = opened;
  return 0;
}

void rl_service_close(rl_service *service) {
  if (!service) return;
  close_cached_instances(service, NULL);
  service->options.device->observer = NULL;
  free(service);
}
