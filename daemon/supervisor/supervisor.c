/* Implements supervisor.h. Merges the lists of devices that the worker programs print with --list, and applies the setting
 * `devices`. If two programs list the same device, the first program serves it. The table of devices also has an entry for the
 * importer, although it is not a device. */
#include "supervisor/supervisor.h"

#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "base/stop_signal.h"
#include "base/utf8.h"
#include "supervisor/device_runner.h"
#include "wire/wire.h"

enum { LIST_WAIT_MS = 20000, LIST_GRACE_MS = 1000, STOP_CHECK_MS = 100 };
static const char worker_prefix[] = "rooflined-worker-", importer_program[] = "rooflined-import";

typedef struct device_entry {
  char program[RL_PATH_SIZE];
  rl_device_state state; /* valid while runner is NULL; afterwards rl_device_runner_state returns the state */
  char unsupported_engines[sizeof((rl_hello *)0)->unsupported_engines];
  rl_device_runner *runner; /* NULL: the device is unusable */
} device_entry;

struct rl_supervisor {
  rl_config config;
  rl_queue *jobs;
  rl_upload_spool *uploads;
  device_entry entries[RL_DEVICES_MAX];
  int count;
};

/* --- devices of a worker program ----------------------------------------------------------------------------------------- */

static device_entry *find_entry(rl_supervisor *supervisor, const char *id) {
  for (int i = 0; i < supervisor->count; i++)
    if (strcmp(supervisor->entries[i].state.id, id) == 0) return &supervisor->entries[i];
  return NULL;
}

/* Returns the entry with this id; adds an entry if there is none. Returns NULL if the table is full. */
static device_entry *find_or_add_entry(rl_supervisor *supervisor, const char *program, const char *kind, const char *id) {
  device_entry *known = find_entry(supervisor, id);
  if (known != NULL || supervisor->count == RL_DEVICES_MAX) return known;
  device_entry *entry = &supervisor->entries[supervisor->count++];
  snprintf(entry->program, sizeof entry->program, "%s", program);
  snprintf(entry->state.id, sizeof entry->state.id, "%s", id);
  snprintf(entry->state.kind, sizeof entry->state.kind, "%s", kind);
  snprintf(entry->state.state, sizeof entry->state.state, "unusable");
  return entry;
}

/* Sets the reason for which the device is unusable. Repairs UTF-8, because text from a worker may be invalid or truncated. */
static void set_unusable_reason(device_entry *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_unusable_reason(device_entry *entry, const char *format, ...) {
  char *reason = entry->state.reason;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof entry->state.reason, format, arguments);
  va_end(arguments);
  rl_utf8_sanitize(reason, strlen(reason));
}

/* Copies the worker program's standard error to the standard error of the daemon, and its last line to `line`. */
static void forward_standard_error(int stderr_fd, char *line, size_t size) {
  char text[4096];
  ssize_t byte_count;
  *line = '\0';
  if (lseek(stderr_fd, 0, SEEK_SET) < 0) return;
  while ((byte_count = read(stderr_fd, text, sizeof text - 1)) > 0) {
    ssize_t ignored = write(STDERR_FILENO, text, (size_t)byte_count);
    (void)ignored;
    text[byte_count] = '\0';
    char *end = text + byte_count;
    while (end > text && (unsigned char)end[-1] <= ' ') *--end = '\0';
    char *begin = strrchr(text, '\n');
    if (end > text) snprintf(line, size, ": %s", begin != NULL ? begin + 1 : text);
  }
}

static void add_device(rl_supervisor *supervisor, const char *program, const char *kind, const rl_hello *hello) {
  device_entry *entry = find_or_add_entry(supervisor, program, kind, hello->device);
  if (entry == NULL || entry->state.properties[0] != '\0' || entry->state.reason[0] != '\0') return;
  snprintf(entry->state.properties, sizeof entry->state.properties, "%s", hello->properties);
  snprintf(entry->unsupported_engines, sizeof entry->unsupported_engines, "%s", hello->unsupported_engines);
  if (!rl_device_runner_supports(kind)) set_unusable_reason(entry, "this daemon does not support devices of kind %s", kind);
  else if (hello->usable) snprintf(entry->state.state, sizeof entry->state.state, "idle");
  else set_unusable_reason(entry, "%s", hello->reason[0] != '\0' ? hello->reason : "its worker gave no reason");
}

/* Reads the next frame of a list, which must end until deadline_ns. Fails earlier if a stop signal is pending. */
static int read_list_frame(rl_frame_reader *reader, int64_t deadline_ns, rl_frame *frame, rl_error *err) {
  int rc;
  do {
    if (rl_stop_signal_is_pending()) return rl_fail(err, RL_ERRNO, EINTR, "stopped while it listed its devices");
    if (rl_monotonic_ns() >= deadline_ns)
      return rl_fail(err, RL_WIRE, RL_WIRE_TIMEOUT, "it did not list its devices within %d ms", LIST_WAIT_MS);
    rc = rl_frame_read(reader, STOP_CHECK_MS, frame, err);
  } while (rc < 0 && err->domain == RL_WIRE && err->code == RL_WIRE_TIMEOUT);
  return rc;
}

/* Reads the HELLO frames that `PROGRAM --list` writes, adds their devices, and sets *count to their number. Fails with RL_WIRE
 * after a protocol error or a time-out. */
static int read_list(rl_supervisor *supervisor, const char *program, const char *kind, rl_frame_reader *reader, int *count,
                     rl_error *err) {
  int64_t deadline_ns = rl_monotonic_ns() + (int64_t)LIST_WAIT_MS * 1000000;
  for (*count = 0;; ++*count) {
    rl_frame frame;
    rl_hello hello = {0};
    if (read_list_frame(reader, deadline_ns, &frame, err) < 0)
      return err->domain == RL_WIRE && err->code == RL_WIRE_CLOSED ? 0 : -1;
    if (frame.type != RL_FRAME_HELLO)
      return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "its list contains a frame other than HELLO");
    if (rl_fields_parse(rl_hello_fields, (const char *)frame.payload, frame.length, &hello, sizeof hello, err) < 0) return -1;
    if (hello.protocol != RL_WIRE_VERSION || hello.device[0] == '\0')
      return rl_fail(err, RL_WIRE, RL_WIRE_BAD_VERSION, "its HELLO has a different protocol version or no device");
    add_device(supervisor, program, kind, &hello);
  }
}

static void list_devices(rl_supervisor *supervisor, const char *program, const char *kind) {
  const char *const arguments[] = {program, "--list", NULL}, *const no_variables[] = {NULL};
  char exit_status[RL_EXIT_STATUS_SIZE] = "", line[192];
  rl_error err = {0};
  rl_process process = {0};
  int count = 0, rc = -1;
  RL_CLEANUP(rl_close_descriptor) int stderr_fd = memfd_create("errors", MFD_CLOEXEC);
  if (rl_process_start(arguments, no_variables, stderr_fd, -1, &process, &err) >= 0) {
    rl_frame_reader *reader = rl_frame_reader_new(process.output);
    rc = reader != NULL ? read_list(supervisor, program, kind, reader, &count, &err)
                        : rl_fail(&err, RL_ERRNO, ENOMEM, "no memory");
    rl_frame_reader_free(reader);
    rl_process_terminate(&process, rc >= 0 ? LIST_GRACE_MS : 0, exit_status);
  }
  forward_standard_error(stderr_fd, line, sizeof line);
  device_entry *failed = rc < 0 || count == 0 ? find_or_add_entry(supervisor, program, kind, kind) : NULL;
  if (failed == NULL) return;
  const char *name = strrchr(program, '/') + 1;
  if (rc < 0) set_unusable_reason(failed, "%s: %s", name, err.message);
  else set_unusable_reason(failed, "%s lists no device; it %s%s", name, exit_status, line);
}

static void list_all_devices(rl_supervisor *supervisor) {
  char pattern[RL_PATH_SIZE + sizeof worker_prefix + 2];
  glob_t found = {0};
  snprintf(pattern, sizeof pattern, "%s/%s*", supervisor->config.workers, worker_prefix);
  if (glob(pattern, 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc && !rl_stop_signal_is_pending(); i++)
      if (strlen(found.gl_pathv[i]) < RL_PATH_SIZE && access(found.gl_pathv[i], X_OK) == 0)
        list_devices(supervisor, found.gl_pathv[i], strrchr(found.gl_pathv[i], '/') + sizeof worker_prefix);
  globfree(&found);
}

static void list_importer(rl_supervisor *supervisor) {
  char program[RL_PATH_SIZE + sizeof importer_program + 1];
  if (supervisor->uploads == NULL || rl_stop_signal_is_pending()) return;
  snprintf(program, sizeof program, "%s/%s", supervisor->config.workers, importer_program);
  if (strlen(program) < RL_PATH_SIZE && access(program, X_OK) == 0) list_devices(supervisor, program, RL_IMPORT_DEVICE);
}

static bool is_importer(const device_entry *entry) { return strcmp(entry->state.kind, RL_IMPORT_DEVICE) == 0; }

/* --- usable devices ----------------------------------------------------------------------------------------------- */

static bool is_in_list(const char *list, const char *id) {
  size_t length = strlen(id);
  for (const char *word = list; *word != '\0'; word += strcspn(word, ", "), word += strspn(word, ", "))
    if (strcspn(word, ", ") == length && strncmp(word, id, length) == 0) return true;
  return false;
}

/* Applies the setting `devices`: marks the devices that the setting does not name as unusable, and adds an unusable entry for
 * each named device that no worker program has listed. */
static void apply_devices_setting(rl_supervisor *supervisor) {
  const char *list = supervisor->config.devices;
  if (strcmp(list, "all") == 0) return;
  for (int i = 0; i < supervisor->count; i++) {
    device_entry *entry = &supervisor->entries[i];
    if (is_importer(entry) || is_in_list(list, entry->state.id)) continue;
    snprintf(entry->state.state, sizeof entry->state.state, "unusable");
    set_unusable_reason(entry, "excluded by the setting devices = %s", list);
  }
  for (const char *word = list; *word != '\0'; word += strcspn(word, ", "), word += strspn(word, ", ")) {
    char id[sizeof supervisor->entries[0].state.id];
    snprintf(id, sizeof id, "%.*s", (int)strcspn(word, ", "), word);
    if (id[0] != '\0' && find_entry(supervisor, id) == NULL) {
      device_entry *entry = find_or_add_entry(supervisor, "", "", id);
      if (entry != NULL) set_unusable_reason(entry, "no installed worker has this device");
    }
  }
}

static bool is_usable(const device_entry *entry) { return strcmp(entry->state.state, "unusable") != 0; }

static int configure_queue(rl_supervisor *supervisor, rl_error *err) {
  const char *ids[RL_DEVICES_MAX], *default_device = NULL;
  bool can_serve[RL_DEVICES_MAX];
  for (int i = 0; i < supervisor->count; i++) {
    const device_entry *entry = &supervisor->entries[i];
    ids[i] = entry->state.id;
    can_serve[i] = is_usable(entry);
    rl_log(RL_LOG_INFO, "device %s: %s%s", entry->state.id, can_serve[i] ? "usable" : "not usable: ", entry->state.reason);
  }
  for (int gpu_only = 1; gpu_only >= 0; gpu_only--) /* the default device is the first usable GPU, else the first usable device */
    for (int i = 0; i < supervisor->count && default_device == NULL; i++)
      if (can_serve[i] && !is_importer(&supervisor->entries[i]) &&
          (!gpu_only || strcmp(supervisor->entries[i].state.kind, "cuda") == 0))
        default_device = ids[i];
  if (default_device == NULL)
    rl_log(RL_LOG_WARNING, "no device is usable; worker programs are expected in %s", supervisor->config.workers);
  rl_queue_set_default_time_limit(supervisor->jobs, supervisor->config.job_deadline_s);
  rl_queue_set_refresh_ceilings(supervisor->jobs, supervisor->config.refresh_ceilings);
  if (rl_queue_set_devices(supervisor->jobs, ids, can_serve, supervisor->count, default_device, err) < 0) return -1;
  for (int i = 0; i < supervisor->count; i++)
    rl_queue_set_unsupported_engines(supervisor->jobs, ids[i], supervisor->entries[i].unsupported_engines);
  return 0;
}

int rl_supervisor_open(const rl_config *config, rl_queue *jobs, rl_upload_spool *uploads, rl_supervisor **supervisor,
                       rl_error *err) {
  rl_supervisor *created = calloc(1, sizeof *created);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the workers");
  created->config = *config;
  created->jobs = jobs;
  created->uploads = uploads;
  list_all_devices(created);
  list_importer(created);
  apply_devices_setting(created);
  /* A list that a stop signal cut short must not reach the queue, which would fail the jobs of the devices that it lacks. */
  int rc = rl_stop_signal_is_pending() ? rl_fail(err, RL_ERRNO, EINTR, "the devices were being listed")
                                       : configure_queue(created, err);
  const rl_runner_services services = {&created->config, jobs, uploads};
  for (int i = 0; rc >= 0 && i < created->count; i++) {
    device_entry *entry = &created->entries[i];
    if (is_usable(entry)) rc = rl_device_runner_open(entry->program, &entry->state, &services, &entry->runner, err);
  }
  if (rc < 0) {
    rl_supervisor_close(created);
    return -1;
  }
  *supervisor = created;
  return 0;
}

void rl_supervisor_stop(rl_supervisor *supervisor) {
  rl_queue_stop(supervisor->jobs);
  for (int i = 0; i < supervisor->count; i++)
    if (supervisor->entries[i].runner != NULL) rl_device_runner_stop(supervisor->entries[i].runner);
}

void rl_supervisor_close(rl_supervisor *supervisor) {
  if (supervisor == NULL) return;
  rl_supervisor_stop(supervisor);
  for (int i = 0; i < supervisor->count; i++) rl_device_runner_close(supervisor->entries[i].runner);
  free(supervisor);
}

int rl_supervisor_check_importer(rl_supervisor *supervisor, rl_error *err) {
  const device_entry *importer = find_entry(supervisor, RL_IMPORT_DEVICE);
  if (importer == NULL) return rl_fail(err, RL_HTTP, 503, "Traces can't be imported: %s is not installed.", importer_program);
  if (importer->runner != NULL) return 0;
  return rl_fail(err, RL_HTTP, 503, "Traces can't be imported: %s", importer->state.reason);
}

int rl_supervisor_devices(rl_supervisor *supervisor, rl_device_state *states, int capacity) {
  int count = 0;
  for (const device_entry *entry = supervisor->entries; entry < supervisor->entries + supervisor->count; entry++) {
    if (is_importer(entry)) continue;
    rl_device_state *state = count < capacity ? &states[count] : NULL;
    if (state != NULL && entry->runner != NULL) rl_device_runner_state(entry->runner, state);
    else if (state != NULL) *state = entry->state;
    count++;
  }
  return count;
}
