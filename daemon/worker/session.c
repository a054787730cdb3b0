#include "worker/session.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/commit.h"
#include "worker/pass.h"

enum { OPEN_MOST = 2 };
static const int64_t PROGRESS_EVERY_NS = 200000000;

const rl_pass_def rl_pass_defs[RL_PASSES] = {[RL_PASS_TIMING] = {"timing", rl_timing_run},
                                             [RL_PASS_ACTIVITY] = {"activity", rl_activity_run},
                                             [RL_PASS_COUNTERS] = {"counters", rl_counters_run}};

typedef struct resident { /* an instance that stays open */
  const rl_workload *workload;
  const rl_engine *engine;
  void *params;
  rl_instance *instance;
  rl_plan *iteration, *evaluation; /* NULL until first run */
  uint64_t last_used;
  rl_memory memory; /* bytes: what it holds; peaks since it was opened */
} resident;

struct rl_service {
  rl_service_options options;
  resident open[OPEN_MOST];
  uint64_t requests;
  int64_t shown_ns; /* when progress was last shown */
  rl_session session;
  rl_observer observer; /* of every request; context: this */
  resident *current;
  uint64_t others[RL_MEMORY_PURPOSES], others_total; /* bytes that are not the current instance's */
  /* Of the device's memory, beside what our allocator handed out: until the request began, and both counts as it began. */
  double context_bytes, used_at_start, ours_at_start;
};

/* ---- progress -------------------------------------------------------------------------------------------------------- */

static void show(rl_session *session, bool at_once) {
  rl_service *service = session->context;
  int64_t now = rl_monotonic_ns();
  if (!at_once && now - service->shown_ns < PROGRESS_EVERY_NS) return;
  service->shown_ns = now;
  rl_progress *at = &session->position;
  double within = at->steps > 0 ? (double)at->step / (double)at->steps : 0;
  bool iterating = strcmp(at->phase, "epoch") == 0 || strcmp(at->phase, "warmup") == 0 || strcmp(at->phase, "trace") == 0;
  double part = session->units > 0 ? (session->units_done + (iterating ? within : 0)) / session->units : 0;
  at->eta_s = part > 0 && part <= 1 ? (double)(now - session->started_ns) * 1e-9 * (1 - part) / part : NAN;
  if (iterating && session->instance->samples > 0 && at->step > 0 &&
      session->device->kind == RL_DEVICE_CPU) /* a GPU's steps are only queued by then */
    at->images_per_s = (double)session->instance->samples * within / ((double)(now - session->entered_ns) * 1e-9);
  session->progress(session, at);
}

static void pass_on(rl_session *session, const rl_progress *progress) {
  rl_service *service = session->context;
  if (service->options.progress) service->options.progress(service->options.context, progress);
}

static void advanced(void *context, uint64_t done, uint64_t of) {
  rl_session *session = &((rl_service *)context)->session;
  session->position.step = (int64_t)done;
  session->position.steps = (int64_t)of;
  show(session, false);
}

static bool is_cancelled(void *context) {
  rl_service *service = context;
  return service->options.cancelled && service->options.cancelled(service->options.context);
}

void rl_pass_enter(rl_session *session, const char *phase, int64_t epoch, int64_t epochs) {
  bool first = session->position.phase[0] == '\0';
  snprintf(session->position.phase, sizeof session->position.phase, "%s", phase);
  session->position.epoch = epoch;
  session->position.epochs = epochs;
  session->position.step = session->position.steps = -1;
  session->entered_ns = rl_monotonic_ns();
  show(session, first);
}

void rl_pass_unit_done(rl_session *session) { session->units_done++; }

rl_outcome rl_pass_outcome(int rc, const rl_error *err) {
  if (rc == 0) return RL_OUTCOME_DONE;
  return err->domain == RL_SYS && err->code == ECANCELED ? RL_OUTCOME_CANCELLED : RL_OUTCOME_FAILED;
}

int rl_pass_measure(rl_session *session, const char *name, double value, const char *reason, rl_error *err) {
  return rl_records_measure(session->records, name, value, isnan(value) ? reason : NULL, err);
}

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

/* From now on peaks are of what is done for this instance. */
static void watch_memory(rl_service *service, const resident *open) {
  rl_memory *memory = &service->options.device->memory;
  for (int p = 0; p < RL_MEMORY_PURPOSES; p++) {
    memory->peak_bytes[p] = memory->bytes[p];
    service->others[p] = memory->bytes[p] - open->memory.bytes[p];
  }
  memory->peak_total_bytes = memory->total_bytes;
  service->others_total = memory->total_bytes - open->memory.total_bytes;
}

static void raise_peak(uint64_t *peak, uint64_t top) {
  if (top > *peak) *peak = top;
}

/* What there is beside the others' is the instance's. */
static void settle_memory(const rl_service *service, resident *open) {
  const rl_memory *memory = &service->options.device->memory;
  for (int p = 0; p < RL_MEMORY_PURPOSES; p++) {
    open->memory.bytes[p] = memory->bytes[p] - service->others[p];
    raise_peak(&open->memory.peak_bytes[p], memory->peak_bytes[p] - service->others[p]);
  }
  open->memory.total_bytes = memory->total_bytes - service->others_total;
  raise_peak(&open->memory.peak_total_bytes, memory->peak_total_bytes - service->others_total);
}

rl_memory rl_session_memory(const rl_session *session) {
  const rl_service *service = session->context;
  settle_memory(service, service->current);
  return service->current->memory;
}

static double used_bytes(const rl_service *service) {
  rl_reading reading;
  rl_sensors_read(service->options.sensors, &reading);
  return reading.memory_used_bytes;
}

/* Only this process uses the device while it serves a request, so what grew beside our allocator is the context's. */
double rl_session_context_bytes(const rl_session *session) {
  const rl_service *service = session->context;
  double grown = used_bytes(service) - service->used_at_start;
  return service->context_bytes + grown - ((double)session->device->memory.total_bytes - service->ours_at_start);
}

double rl_session_before_bytes(const rl_session *session) { return ((const rl_service *)session->context)->options.before_bytes; }

/* ---- resident instances ------------------------------------------------------------------------------------------------ */

static void close_resident(rl_device *device, resident *open) {
  if (open->evaluation) device->ops->plan_free(device, open->evaluation);
  if (open->iteration) device->ops->plan_free(device, open->iteration);
  if (open->instance) open->instance->ops->close(open->instance);
  free(open->params);
  *open = (resident){0};
}

/* kept: NULL for none. */
static void close_all_but(rl_service *service, const resident *kept) {
  for (int i = 0; i < OPEN_MOST; i++)
    if (&service->open[i] != kept) close_resident(service->options.device, &service->open[i]);
}

static resident *find_resident(rl_service *service, const rl_workload *workload, const void *params) {
  for (int i = 0; i < OPEN_MOST; i++) {
    resident *open = &service->open[i];
    if (open->instance && open->workload == workload && memcmp(open->params, params, workload->params_size) == 0) return open;
  }
  return NULL;
}

static resident *oldest(rl_service *service) {
  resident *found = &service->open[0];
  for (int i = 1; i < OPEN_MOST; i++)
    if (service->open[i].last_used < found->last_used) found = &service->open[i];
  return found;
}

/* Fill a free slot; params (owned by the caller) are copied. When the device is full, all others are given up first. */
static int open_resident(rl_service *service, const rl_workload *workload, const void *params, resident **made, rl_error *err) {
  rl_device *device = service->options.device;
  const rl_engine *engine = rl_engine_find(workload->name, rl_workload_engine_name(workload, params), params, err);
  if (!engine) return -1;
  resident *open = oldest(service);
  close_resident(device, open);
  for (int attempt = 0;; attempt++) {
    *open = (resident){.workload = workload, .engine = engine, .params = malloc(workload->params_size)};
    if (!open->params) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for parameters");
    memcpy(open->params, params, workload->params_size);
    watch_memory(service, open);
    if (engine->open(device, open->params, &open->instance, err) == 0) {
      settle_memory(service, open);
      *made = open;
      return 0;
    }
    close_resident(device, open);
    if (attempt > 0 || service->others_total == 0 || err->domain == RL_INPUT) return -1;
    close_all_but(service, NULL);
  }
}

static void close_others(rl_service *service) {
  settle_memory(service, service->current);
  close_all_but(service, service->current);
  watch_memory(service, service->current);
}

static int run_planned(rl_session *session, const rl_program *program, rl_plan **plan, const rl_observer *observer,
                       rl_elapsed *elapsed, rl_error *err) {
  rl_device *device = session->device;
  if (!*plan && device->ops->plan(device, program, plan, err)) {
    close_others((rl_service *)session->context); /* the device may be full */
    if (device->ops->plan(device, program, plan, err)) return -1;
  }
  return device->ops->run(device, *plan, observer, elapsed, err);
}

int rl_session_iterate(rl_session *session, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  resident *open = ((rl_service *)session->context)->current;
  return run_planned(session, &open->instance->iteration, &open->iteration, observer, elapsed, err);
}

int rl_session_evaluate(rl_session *session, rl_elapsed *elapsed, rl_error *err) {
  resident *open = ((rl_service *)session->context)->current;
  return run_planned(session, &open->instance->evaluation, &open->evaluation, &session->observer, elapsed, err);
}

/* ---- requests ---------------------------------------------------------------------------------------------------------- */

static int fill_facts(const rl_service *service, const resident *open, rl_run_facts *facts, rl_error *err) {
  const rl_instance *instance = open->instance;
  rl_cost cost = open->workload->cost(open->params);
  *facts = (rl_run_facts){.deterministic = instance->deterministic,
                          .partial = instance->partial,
                          .images_per_epoch = (int64_t)instance->samples,
                          .steps_per_epoch = (int64_t)instance->steps,
                          .parameters = (int64_t)instance->parameters,
                          .floor_operations = cost.operations,
                          .floor_bytes = cost.bytes,
                          .floor_written_bytes = cost.written_bytes,
                          .commit = RL_COMMIT};
  snprintf(facts->floor_precision, sizeof facts->floor_precision, "%s", cost.precision ? cost.precision : "");
  snprintf(facts->engine, sizeof facts->engine, "%s", open->engine->description->name);
  snprintf(facts->dataset, sizeof facts->dataset, "%s", instance->dataset);
  snprintf(facts->dataset_sha256, sizeof facts->dataset_sha256, "%s", instance->dataset_sha256);
  if (instance->deterministic_note)
    snprintf(facts->deterministic_note, sizeof facts->deterministic_note, "%s", instance->deterministic_note);
  rl_auto(rl_free_text) char *device = rl_device_facts(service->options.device->index, err);
  if (!device) return -1;
  if (strlen(device) >= sizeof facts->device_facts)
    return rl_fail(err, RL_SYS, EOVERFLOW, "the facts of the device take %zu bytes", strlen(device));
  strcpy(facts->device_facts, device);
  return 0;
}

static int check_role(const rl_service *service, int pass, rl_error *err) {
  const char *role = service->options.role;
  const char *needed = pass == RL_PASS_TIMING ? "clean" : "profiled";
  if (strcmp(role, "any") == 0 || strcmp(role, needed) == 0) return 0;
  return rl_fail(err, RL_INPUT, 0, "the %s pass belongs to a worker in the %s role; this one's is %s", rl_pass_names[pass],
                 needed, role);
}

static int decode(const rl_request *request, const rl_workload **workload, void **params, rl_error *err) {
  const rl_workload *found = rl_workload_find(request->workload);
  if (!found) return rl_fail_at(err, "/workload", "there is no workload \"%s\"", request->workload);
  void *decoded = calloc(1, found->params_size);
  if (!decoded) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for parameters");
  found->defaults(decoded);
  if (rl_fields_parse(found->fields, request->params, strlen(request->params), decoded, found->params_size, err)) {
    free(decoded);
    return -1;
  }
  *workload = found;
  *params = decoded;
  return 0;
}

/* What the counters pass is to look at; the usual things where the request does not say. */
static int decode_profile(const rl_request *request, rl_profile *profile, rl_error *err) {
  rl_profile asked = {.launch = -1};
  if (request->profile[0] != '\0' &&
      rl_fields_parse(rl_profile_fields, request->profile, strlen(request->profile), &asked, sizeof asked, err) < 0)
    return -1;
  *profile = rl_profile_resolve(RL_PROFILE_SET_AUTO, &asked);
  return 0;
}

void rl_service_release(rl_service *service) {
  rl_profiler *profiler = service->options.profiler;
  if (profiler && profiler->ops->release) profiler->ops->release(profiler);
}

/* Have the instance for the request in service->current, warm or new, and the session about it. */
static int prepare(rl_service *service, const rl_request *request, rl_records *records, rl_error *err) {
  const rl_workload *workload = NULL;
  void *params = NULL;
  rl_profile profile;
  if (check_role(service, request->pass, err) || decode_profile(request, &profile, err) ||
      decode(request, &workload, &params, err))
    return -1;
  service->current = find_resident(service, workload, params);
  if (!service->current || request->pass != RL_PASS_COUNTERS) rl_service_release(service);
  int rc = service->current ? 0 : open_resident(service, workload, params, &service->current, err);
  free(params);
  if (rc) return -1;
  service->current->last_used = ++service->requests;
  if (fill_facts(service, service->current, &records->facts, err)) return -1;
  records->has_facts = true;
  if (service->options.opened) service->options.opened(service->options.context, &records->facts);

  const rl_service_options *options = &service->options;
  resident *open = service->current;
  rl_session *session = &service->session;
  *session = (rl_session){.device = options->device,
                          .profiler = options->profiler,
                          .instance = open->instance,
                          .workload = open->workload,
                          .engine = open->engine,
                          .params = open->params,
                          .records = records,
                          .progress = pass_on,
                          .context = service,
                          .profiler_reason = options->profiler_reason,
                          .sensors = options->sensors,
                          .profile = profile,
                          .started_ns = rl_monotonic_ns(),
                          .position = {.epoch = -1,
                                       .epochs = -1,
                                       .step = -1,
                                       .steps = -1,
                                       .train_loss = NAN,
                                       .images_per_s = NAN,
                                       .eta_s = NAN,
                                       .test_accuracy_ratio = NAN}};
  session->observer = service->observer;
  snprintf(session->position.pass, sizeof session->position.pass, "%s", rl_pass_names[request->pass]);
  return 0;
}

rl_outcome rl_service_serve(rl_service *service, const rl_request *request, rl_records *records, rl_error *err) {
  rl_error ignored;
  if (!err) err = &ignored;
  service->used_at_start = used_bytes(service);
  service->ours_at_start = (double)service->options.device->memory.total_bytes;
  if (prepare(service, request, records, err)) return rl_pass_outcome(-1, err);
  watch_memory(service, service->current);
  rl_outcome outcome = rl_pass_defs[request->pass].run(&service->session, err);
  settle_memory(service, service->current);
  service->context_bytes = rl_session_context_bytes(&service->session);
  return outcome;
}

bool rl_service_healthy(rl_service *service) {
  rl_device *device = service->options.device;
  void *memory;
  uint32_t word = 1;
  if (device->ops->allocate(device, RL_MEMORY_WORKSPACE, sizeof word, &memory, NULL)) return false;
  int rc = device->ops->clear(device, memory, sizeof word, NULL);
  if (!rc) rc = device->ops->download(device, &word, memory, sizeof word, NULL);
  device->ops->release(device, memory);
  return rc == 0 && word == 0;
}

int rl_service_open(const rl_service_options *options, rl_service **service, rl_error *err) {
  rl_service *opened = calloc(1, sizeof *opened);
  if (!opened) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for the service");
  opened->options = *options;
  opened->observer = (rl_observer){.context = opened, .cancelled = is_cancelled, .advanced = advanced};
  options->device->observer = &opened->observer;
  opened->context_bytes = used_bytes(opened) - options->before_bytes;
  *service = opened;
  return 0;
}

void rl_service_close(rl_service *service) {
  if (!service) return;
  close_all_but(service, NULL);
  service->options.device->observer = NULL;
  free(service);
}
