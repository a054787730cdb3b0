/* Implements journal.h. Passes an array of fields to sd_journal_sendv. */
#include "api/client/journal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "api/client/cells.h"
#include "api/client/suite_metrics.h"

enum { MAX_JOBS = 512, MAX_FIELDS = MAX_JOBS + 8 }; /* journald refuses entries of more than 1024 fields */

typedef struct journal_entry {
  struct iovec fields[MAX_FIELDS];
  int count;
} journal_entry;

static void add_field(journal_entry *message, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_field(journal_entry *message, const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  const int length = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (length >= 0) message->fields[message->count++] = (struct iovec){.iov_base = text, .iov_len = (size_t)length};
}

static bool stderr_is_journal(void) {
  const char *stream = getenv("JOURNAL_STREAM");
  struct stat status;
  unsigned long long device, inode;
  return stream != NULL && sscanf(stream, "%llu:%llu", &device, &inode) == 2 && fstat(STDERR_FILENO, &status) == 0 &&
         device == status.st_dev && inode == status.st_ino;
}

static int priority_of(bool completed, const char *verdict) {
  if (!completed || strcmp(verdict, "slower") == 0) return LOG_ERR;
  return strcmp(verdict, "same") == 0 || strcmp(verdict, "faster") == 0 ? LOG_INFO : LOG_WARNING;
}

static void add_jobs(journal_entry *message, const cJSON *run) {
  const cJSON *job;
  int count = 0;
  cJSON_ArrayForEach (job, rl_json_at(run, "jobs")) {
    const double id = rl_json_number(job, "job"); /* NAN: retention has deleted the job */
    if (!isnan(id) && count++ < MAX_JOBS) add_field(message, "JOB_ID=%.0f", id);
  }
}

int rl_journal_send_verdict(const cJSON *run, rl_error *err) {
  const char *suite = rl_json_text(run, "suite"), *state = rl_json_text(run, "state"), *verdict = rl_suite_run_verdict(run);
  const bool completed = strcmp(state, "completed") == 0;
  const double id = rl_json_number(run, "id");
  journal_entry message = {0};
  if (!stderr_is_journal()) return 0;
  add_field(&message, "MESSAGE=suite %s, run %.0f: %s: %s", suite, id, completed ? verdict : state, rl_suite_run_reason(run));
  add_field(&message, "PRIORITY=%d", priority_of(completed, verdict));
  add_field(&message, "SYSLOG_IDENTIFIER=rooflinectl");
  add_field(&message, "SUITE=%s", suite);
  add_field(&message, "SUITE_RUN_ID=%.0f", id);
  add_field(&message, "STATE=%s", state);
  if (completed) add_field(&message, "VERDICT=%s", verdict);
  add_jobs(&message, run);
  const int rc = sd_journal_sendv(message.fields, message.count);
  for (int i = 0; i < message.count; i++) free(message.fields[i].iov_base);
  return rc < 0 ? rl_fail(err, RL_ERRNO, -rc, "the journal refuses the verdict: %s", strerror(-rc)) : 0;
}
