#include "supervisor/fleet.h"

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
#include "base/utf8.h"
#include "supervisor/lane.h"
#include "base/process.h"
#include "wire/wire.h"

enum { LIST_WAIT_MS = 20000, LIST_GRACE_MS = 1000 };
static const char prefix[] = "rooflined-worker-";

typedef struct entry {
  char program[RL_PATH_SIZE];
  rl_device_state state; /* of a device without a lane */
  rl_lane *lane;         /* NULL: it can't serve */
} entry;

struct rl_fleet {
  rl_config config;
  rl_queue *jobs;
  entry entries[RL_DEVICES_MAX];
  int count;
};

/* --- what a worker program has ----------------------------------------------------------------------------------------- */

static entry *find(rl_fleet *fleet, const char *id) {
  for (int i = 0; i < fleet->count; i++)
    if (strcmp(fleet->entries[i].state.id, id) == 0) return &fleet->entries[i];
  return NULL;
}

/* A new entry, or the one that has this id already (the first program that names a device has it); NULL when the table
 * is full. */
static entry *add(rl_fleet *fleet, const char *program, const char *kind, const char *id) {
  entry *known = find(fleet, id);
  if (known != NULL || fleet->count == RL_DEVICES_MAX) return known;
  entry *made = &fleet->entries[fleet->count++];
  snprintf(made->program, sizeof made->program, "%s", program);
  snprintf(made->state.id, sizeof made->state.id, "%s", id);
  snprintf(made->state.kind, sizeof made->state.kind, "%s", kind);
  snprintf(made->state.state, sizeof made->state.state, "unusable");
  return made;
}

/* Why it can't serve, as UTF-8: what is quoted need not be, and the end may have cut a character in two. */
static void explain(entry *of, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void explain(entry *of, const char *format, ...) {
  char *reason = of->state.reason;
  va_list quoted;
  va_start(quoted, format);
  vsnprintf(reason, sizeof of->state.reason, format, quoted);
  va_end(quoted);
  rl_utf8_sanitize(reason, strlen(reason));
}

/* The last line that the program wrote to its standard error, all of which goes on to ours. */
static void last_line(int errors, char *line, size_t size) {
  char text[4096];
  ssize_t got;
  *line = '\0';
  if (lseek(errors, 0, SEEK_SET) < 0) return;
  while ((got = read(errors, text, sizeof text - 1)) > 0) {
    ssize_t ignored = write(STDERR_FILENO, text, (size_t)got);
    (void)ignored;
    text[got] = '\0';
    char *end = text + got;
    while (end > text && (unsigned char)end[-1] <= ' ') *--end = '\0';
    char *begin = strrchr(text, '\n');
    if (end > text) snprintf(line, size, ": %s", begin != NULL ? begin + 1 : text);
  }
}

static void take_hello(rl_fleet *fleet, const char *program, const char *kind, const rl_hello *hello) {
  entry *made = add(fleet, program, kind, hello->device);
  if (made == NULL || made->state.facts[0] != '\0' || made->state.reason[0] != '\0') return;
  snprintf(made->state.facts, sizeof made->state.facts, "%s", hello->facts);
  if (!rl_lane_serves(kind)) explain(made, "this daemon knows no devices of the kind %s", kind);
  else if (hello->usable) snprintf(made->state.state, sizeof made->state.state, "idle");
  else explain(made, "%s", hello->reason[0] != '\0' ? hello->reason : "its worker gives no reason");
}

/* Take the hellos of `PROGRAM --list`; *count of them. -1 when it broke the protocol or took too long. */
static int read_list(rl_fleet *fleet, const char *program, const char *kind, rl_frame_reader *reader, int *count, rl_error *err) {
  int64_t until = rl_monotonic_ns() + (int64_t)LIST_WAIT_MS * 1000000;
  for (*count = 0;; ++*count) {
    rl_frame frame;
    rl_hello hello = {0};
    int64_t left_ms = (until - rl_monotonic_ns()) / 1000000;
    if (rl_frame_read(reader, left_ms > 0 ? (int)left_ms : 0, &frame, err) < 0)
      return err->domain == RL_WIRE && err->code == RL_WIRE_CLOSED ? 0 : -1;
    if (frame.type != RL_FRAME_HELLO) return rl_fail(err, RL_WIRE, RL_WIRE_PAYLOAD, "its list has a frame that is not HELLO");
    if (rl_fields_parse(rl_hello_fields, (const char *)frame.payload, frame.length, &hello, sizeof hello, err) < 0) return -1;
    if (hello.protocol != RL_WIRE_VERSION || hello.device[0] == '\0')
      return rl_fail(err, RL_WIRE, RL_WIRE_BAD_VERSION, "its HELLO has another protocol or no device");
    take_hello(fleet, program, kind, &hello);
  }
}

static void list_devices(rl_fleet *fleet, const char *program) {
  const char *kind = strrchr(program, '/') + sizeof prefix;
  const char *const arguments[] = {program, "--list", NULL}, *const none[] = {NULL};
  char ending[RL_EXIT_STATUS_SIZE] = "", line[192];
  rl_error err = {0};
  rl_process process = {0};
  int count = 0, rc = -1;
  rl_auto(rl_close_descriptor) int errors = memfd_create("errors", MFD_CLOEXEC);
  if (rl_process_start(arguments, none, errors, &process, &err) == 0) {
    rl_frame_reader *reader = rl_frame_reader_new(process.output);
    rc = reader != NULL ? read_list(fleet, program, kind, reader, &count, &err) : rl_fail(&err, RL_SYS, ENOMEM, "no memory");
    rl_frame_reader_free(reader);
    rl_process_terminate(&process, rc == 0 ? LIST_GRACE_MS : 0, ending);
  }
  last_line(errors, line, sizeof line);
  entry *blamed = rc < 0 || count == 0 ? add(fleet, program, kind, kind) : NULL;
  if (blamed == NULL) return;
  const char *name = strrchr(program, '/') + 1;
  if (rc < 0) explain(blamed, "%s: %s", name, err.message);
  else explain(blamed, "%s names no device; it %s%s", name, ending, line);
}

static void list_programs(rl_fleet *fleet) {
  char pattern[RL_PATH_SIZE + sizeof prefix + 2];
  glob_t found = {0};
  snprintf(pattern, sizeof pattern, "%s/%s*", fleet->config.workers, prefix);
  if (glob(pattern, 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; i++)
      if (strlen(found.gl_pathv[i]) < RL_PATH_SIZE && access(found.gl_pathv[i], X_OK) == 0)
        list_devices(fleet, found.gl_pathv[i]);
  globfree(&found);
}

/* --- which of them serve ----------------------------------------------------------------------------------------------- */

static bool in_list(const char *list, const char *id) {
  size_t length = strlen(id);
  for (const char *at = list; *at != '\0'; at += strcspn(at, ", "), at += strspn(at, ", "))
    if (strcspn(at, ", ") == length && strncmp(at, id, length) == 0) return true;
  return false;
}

/* The setting `devices`: leave out what it doesn't name, and list what it names and nobody has. */
static void apply_setting(rl_fleet *fleet) {
  const char *list = fleet->config.devices;
  if (strcmp(list, "all") == 0) return;
  for (int i = 0; i < fleet->count; i++) {
    entry *at = &fleet->entries[i];
    if (in_list(list, at->state.id)) continue;
    snprintf(at->state.state, sizeof at->state.state, "unusable");
    explain(at, "left out by the setting devices = %s", list);
  }
  for (const char *at = list; *at != '\0'; at += strcspn(at, ", "), at += strspn(at, ", ")) {
    char id[sizeof fleet->entries[0].state.id];
    snprintf(id, sizeof id, "%.*s", (int)strcspn(at, ", "), at);
    if (id[0] != '\0' && find(fleet, id) == NULL) {
      entry *made = add(fleet, "", "", id);
      if (made != NULL) explain(made, "no installed worker has this device");
    }
  }
}

static bool usable(const entry *which) { return strcmp(which->state.state, "unusable") != 0; }

static int tell_jobs(rl_fleet *fleet, rl_error *err) {
  const char *ids[RL_DEVICES_MAX], *fallback = NULL;
  bool can[RL_DEVICES_MAX];
  for (int i = 0; i < fleet->count; i++) {
    const entry *at = &fleet->entries[i];
    ids[i] = at->state.id;
    can[i] = usable(at);
    rl_log(RL_LOG_INFO, "device %s: %s%s", at->state.id, can[i] ? "usable" : "not usable: ", at->state.reason);
  }
  for (int gpu = 1; gpu >= 0; gpu--) /* the first usable GPU, else the first usable device */
    for (int i = 0; i < fleet->count && fallback == NULL; i++)
      if (can[i] && (!gpu || strcmp(fleet->entries[i].state.kind, "cuda") == 0)) fallback = ids[i];
  if (fallback == NULL) rl_log(RL_LOG_WARNING, "no device can take jobs; workers are looked for in %s", fleet->config.workers);
  rl_queue_set_deadline(fleet->jobs, fleet->config.job_deadline_s);
  rl_queue_set_refresh(fleet->jobs, fleet->config.refresh_ceilings);
  return rl_queue_set_devices(fleet->jobs, ids, can, fleet->count, fallback, err);
}

int rl_fleet_open(const rl_config *config, rl_queue *jobs, rl_fleet **fleet, rl_error *err) {
  rl_fleet *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for the workers");
  made->config = *config;
  made->jobs = jobs;
  list_programs(made);
  apply_setting(made);
  int rc = tell_jobs(made, err);
  for (int i = 0; rc == 0 && i < made->count; i++) {
    entry *at = &made->entries[i];
    if (usable(at)) rc = rl_lane_open(at->program, &at->state, &made->config, jobs, &at->lane, err);
  }
  if (rc < 0) {
    rl_fleet_close(made);
    return -1;
  }
  *fleet = made;
  return 0;
}

void rl_fleet_close(rl_fleet *fleet) {
  if (fleet == NULL) return;
  rl_queue_stop(fleet->jobs);
  for (int i = 0; i < fleet->count; i++)
    if (fleet->entries[i].lane != NULL) rl_lane_stop(fleet->entries[i].lane);
  for (int i = 0; i < fleet->count; i++) rl_lane_close(fleet->entries[i].lane);
  free(fleet);
}

int rl_fleet_devices(rl_fleet *fleet, rl_device_state *states, int capacity) {
  for (int i = 0; i < fleet->count && i < capacity; i++) {
    if (fleet->entries[i].lane != NULL) rl_lane_state(fleet->entries[i].lane, &states[i]);
    else states[i] = fleet->entries[i].state;
  }
  return fleet->count;
}
