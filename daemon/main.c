/* rooflined: the daemon's program. It opens the store, stores the results that the last daemon left in spill files, opens the
 * queue, the supervisor and the server in this order, waits for a signal, and closes them in the reverse order. */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <sysexits.h>
#include <time.h>

#include "api/server.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/commit.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/stop_signal.h"
#include "config.h"
#include "health.h"
#include "recovery.h"
#include "suite/suite_runner.h"
#include "suite/suites.h"
#include "supervisor/supervisor.h"
#include "upload/spool.h"
#include "webhook/webhook.h"

enum { KEYS_MAX = 64, OVERRIDES_MAX = 128, HOUSEKEEPING_FIRST_S = 10, HOUSEKEEPING_S = 3600, HOUSEKEEPING_RETRY_S = 5 };
enum { MALLOC_ARENAS = 4 }; /* each arena keeps its own free memory; glibc's default is eight arenas for each processor */
/* malloc takes larger arrays, such as those of traces, from mmap, so that free returns their memory to the kernel. The threshold
 * is set because glibc would otherwise raise it by itself to up to 32 MB. */
enum { MALLOC_MMAP_THRESHOLD_BYTES = 1 << 20 };
static const int64_t SECOND_NS = 1000000000;

/* --- options ----------------------------------------------------------------------------------------------------------- */

enum { OPTION_CONFIG = KEYS_MAX + RL_OPTION_CONFIG, OPTION_CHECK, OPTION_PRINT, OPTION_VERSION, OPTION_HELP };

typedef struct command {
  const char *file;
  const char *overrides[OVERRIDES_MAX]; /* "name=value" */
  int override_count;
  int action_then_exit; /* OPTION_CHECK or OPTION_PRINT; 0: serve */
} command;

static void print_help(void) {
  printf("Usage: rooflined [OPTION]...\nMeasures jobs on GPUs and CPUs and stores the results, behind an HTTP API.\n\n");
  for (const rl_config_option *option = rl_config_options; option->name != NULL; option++) {
    char option_text[64];
    snprintf(option_text, sizeof option_text, "--%s %s", option->name, option->argument);
    printf("  %-28s %s\n", option_text, option->summary);
  }
  printf(
      "\nEvery setting is an option, an environment variable (ROOFLINED_PORT) and a line of the file ([rooflined], "
      "port = ...):\n\n");
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++) {
    char option_text[64];
    snprintf(option_text, sizeof option_text, "--%s %s", key->name,
             key->type == RL_KEY_BOOL  ? "[=BOOL]"
             : key->type == RL_KEY_INT ? "N"
                                       : "TEXT");
    for (char *c = option_text; *c != ' '; c++)
      if (*c == '_') *c = '-';
    printf("  %-28s %s%s%s%s\n", option_text, key->summary, *key->default_value != '\0' ? " [" : "", key->default_value,
           *key->default_value != '\0' ? "]" : "");
  }
}

/* Adds the text "name=value", which is never freed. */
static void add_override(command *out, const rl_config_key *key, const char *value) {
  char *text = NULL;
  if (out->override_count == OVERRIDES_MAX || asprintf(&text, "%s=%s", key->name, value != NULL ? value : "true") < 0) {
    fprintf(stderr, "rooflined: too many options\n");
    exit(EX_CONFIG);
  }
  out->overrides[out->override_count++] = text;
}

static void read_options(int argc, char **argv, command *out) {
  struct option options[KEYS_MAX + RL_OPTION_COUNT + 1] = {0};
  static char names[KEYS_MAX][32];
  int keys = 0;
  for (; rl_config_keys[keys].name != NULL; keys++) {
    snprintf(names[keys], sizeof names[keys], "%s", rl_config_keys[keys].name);
    for (char *c = names[keys]; *c != '\0'; c++)
      if (*c == '_') *c = '-';
    options[keys] = (struct option){names[keys], rl_config_keys[keys].type == RL_KEY_BOOL ? optional_argument : required_argument,
                                    NULL, keys};
  }
  for (int i = 0; i < RL_OPTION_COUNT; i++) {
    bool has_argument = rl_config_options[i].argument[0] != '\0';
    options[keys + i] =
        (struct option){rl_config_options[i].name, has_argument ? required_argument : no_argument, NULL, KEYS_MAX + i};
  }
  for (int option_value; (option_value = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (option_value) {
      case OPTION_CONFIG: out->file = optarg; break;
      case OPTION_CHECK:
      case OPTION_PRINT: out->action_then_exit = option_value; break;
      case OPTION_VERSION: printf("rooflined %s (%s)\n", RL_VERSION, RL_COMMIT); exit(0);
      case OPTION_HELP: print_help(); exit(0);
      case '?': fprintf(stderr, "rooflined --help lists the options\n"); exit(EX_CONFIG);
      default: add_override(out, &rl_config_keys[option_value], optarg);
    }
  }
  if (optind < argc) {
    fprintf(stderr, "rooflined: %s is not an option; rooflined --help lists them\n", argv[optind]);
    exit(EX_CONFIG);
  }
}

/* --- housekeeping ------------------------------------------------------------------------------------------------------ */

typedef struct housekeeper { /* a separate thread, so that a long clean-up does not delay the watchdog */
  const rl_config *config;
  rl_store *store;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t stop;
  atomic_bool stopping; /* changes only while the mutex is locked */
} housekeeper;

/* Returns false if the database can't be cleaned up now: it is locked by another program, or the disk is full. */
static bool clean_up(housekeeper *keeper) {
  const rl_retention retention = {keeper->config->activity_days, keeper->config->job_days, keeper->config->max_bytes};
  char cache[RL_PATH_SIZE + 32];
  rl_error err;
  int64_t removed = 0, excess = 0;
  snprintf(cache, sizeof cache, "%s/" RL_CACHE_FOLDER, keeper->config->state);
  rl_cache_prune(cache, rl_realtime_ns());
  if (rl_store_apply_retention(keeper->store, &retention, rl_realtime_ns(), &keeper->stopping, &removed, &err) < 0 ||
      rl_store_excess_bytes(keeper->store, retention.max_bytes, &excess, &err) < 0) {
    rl_log(RL_LOG_WARNING, "can't clean up the database: %s", err.message);
    return false;
  }
  if (removed > 0) rl_log(RL_LOG_INFO, "retention removed %lld rows", (long long)removed);
  if (excess > 0 && !atomic_load(&keeper->stopping))
    rl_log(
        RL_LOG_WARNING,
        "the database exceeds max_bytes by %lld bytes after retention, which keeps unfinished jobs, ceilings, baselines and the "
        "newest suite runs: if this repeats, raise max_bytes",
        (long long)excess);
  return true;
}

static void *run_housekeeper(void *argument) {
  housekeeper *keeper = argument;
  struct timespec next = rl_condition_deadline(HOUSEKEEPING_FIRST_S * SECOND_NS);
  int retry_s = HOUSEKEEPING_RETRY_S; /* doubled after each consecutive failure */
  pthread_mutex_lock(&keeper->mutex);
  while (!atomic_load(&keeper->stopping)) {
    if (pthread_cond_timedwait(&keeper->stop, &keeper->mutex, &next) != ETIMEDOUT) continue;
    pthread_mutex_unlock(&keeper->mutex);
    bool cleaned = clean_up(keeper);
    next = rl_condition_deadline((cleaned ? HOUSEKEEPING_S : retry_s) * SECOND_NS);
    retry_s = cleaned ? HOUSEKEEPING_RETRY_S : retry_s < HOUSEKEEPING_S / 2 ? 2 * retry_s : HOUSEKEEPING_S;
    pthread_mutex_lock(&keeper->mutex);
  }
  pthread_mutex_unlock(&keeper->mutex);
  return NULL;
}

static int housekeeper_start(housekeeper *keeper, rl_error *err) {
  rl_condition_init(&keeper->stop);
  pthread_mutex_init(&keeper->mutex, NULL);
  int code = pthread_create(&keeper->thread, NULL, run_housekeeper, keeper);
  return code == 0 ? 0 : rl_fail(err, RL_ERRNO, code, "can't start the housekeeping thread: %s", strerror(code));
}

static void housekeeper_stop(housekeeper *keeper) {
  pthread_mutex_lock(&keeper->mutex);
  atomic_store(&keeper->stopping, true);
  pthread_cond_signal(&keeper->stop);
  pthread_mutex_unlock(&keeper->mutex);
  pthread_join(keeper->thread, NULL);
}

/* --- serving ----------------------------------------------------------------------------------------------------------- */

/* Waits for SIGTERM or SIGINT and returns it. SIGHUP is only logged, because its default action would end the daemon when its
 * terminal is closed. While waiting, notifies systemd's watchdog at each interval in which the health check passes. */
static int wait_for_signal(const sigset_t *signals, rl_server *server, rl_store *store) {
  uint64_t watchdog_us = 0;
  bool watched = sd_watchdog_enabled(0, &watchdog_us) > 0;
  struct timespec interval = {.tv_sec = (time_t)(watchdog_us / 2 / 1000000), .tv_nsec = (long)(watchdog_us / 2 % 1000000) * 1000};
  for (;;) {
    rl_error err;
    int signal_number = watched ? sigtimedwait(signals, NULL, &interval) : sigwaitinfo(signals, NULL);
    if (signal_number == SIGHUP)
      rl_log(RL_LOG_INFO, "SIGHUP: ignored; settings are read at the start, so restart to change them");
    else if (signal_number > 0) return signal_number;
    if (signal_number > 0 || !watched || errno != EAGAIN) continue;
    if (rl_health_check(server, store, (int64_t)watchdog_us * 1000, &err) >= 0) sd_notify(0, "WATCHDOG=1");
    else rl_log(RL_LOG_ERROR, "the watchdog was not notified: %s", err.message);
  }
}

static void announce(const rl_config *config, int port) {
  bool is_ipv6 = strchr(config->address, ':') != NULL;
  char url[128];
  snprintf(url, sizeof url, "%s://%s%s%s:%d", config->tls_certificate[0] != '\0' ? "https" : "http", is_ipv6 ? "[" : "",
           config->address, is_ipv6 ? "]" : "", port);
  printf("listening on %s\n", url);
  fflush(stdout);
  sd_notifyf(0, "READY=1\nSTATUS=listening on %s", url);
  rl_log(RL_LOG_INFO, "rooflined %s (%s) listens on %s, state in %s", RL_VERSION, RL_COMMIT, url, config->state);
}

static int serve(const rl_config *config, const sigset_t *signals, rl_error *err) {
  RL_CLEANUP(rl_store_cleanup) rl_store *store = NULL;
  RL_CLEANUP(rl_webhook_cleanup) rl_webhook *webhook = NULL;
  RL_CLEANUP(rl_queue_cleanup) rl_queue *jobs = NULL;
  RL_CLEANUP(rl_upload_spool_cleanup) rl_upload_spool *uploads = NULL;
  RL_CLEANUP(rl_supervisor_cleanup) rl_supervisor *supervisor = NULL;
  RL_CLEANUP(rl_suites_cleanup) rl_suites *suites = NULL;
  RL_CLEANUP(rl_suite_runner_cleanup) rl_suite_runner *suite_runner = NULL;
  RL_CLEANUP(rl_server_cleanup) rl_server *server = NULL;
  const rl_job_policy policy = {.posting = config->allow_source ? RL_POSTING_ALLOWED : RL_POSTING_OFF,
                                .source_buffer_bytes = config->source_buffer_bytes,
                                .builds = config->builds};
  housekeeper keeper = {.config = config};
  int port = 0;
  const rl_upload_limits upload_limits = {config->import_limit_bytes, config->import_spool_bytes};
  const rl_webhook_target target = {config->webhook_url, config->webhook_secret_file, config->webhook_ca_file,
                                    config->webhook_retry_s};
  if (rl_store_open(config->state, &store, err) < 0 ||
      (target.url[0] != '\0' && rl_webhook_open(store, &target, &webhook, err) < 0) ||
      rl_recover_spilled_passes(config->state, store, err) < 0 || rl_queue_open(store, config->queue_limit, &jobs, err) < 0 ||
      rl_upload_spool_open(config->state, &upload_limits, store, &uploads, err) < 0 ||
      rl_supervisor_open(config, jobs, uploads, &supervisor, err) < 0 ||
      rl_suites_open(config->suites, &policy, &suites, err) < 0 ||
      rl_suite_runner_open(store, jobs, &policy, config->queue_limit, &suite_runner, err) < 0)
    return -1;
  const rl_server_parts parts = {store, jobs, uploads, supervisor, suites, suite_runner};
  if (rl_server_open(config, &parts, &server, &port, err) < 0) return -1;
  keeper.store = store;
  if (housekeeper_start(&keeper, err) < 0) return -1;
  announce(config, port);
  int signal_number = wait_for_signal(signals, server, store);
  sd_notify(0, "STOPPING=1");
  rl_log(RL_LOG_INFO, "SIG%s: stopping", sigabbrev_np(signal_number));
  sigprocmask(SIG_UNBLOCK, signals, NULL); /* a second signal ends the process at once */
  rl_suite_runner_stop(suite_runner);
  rl_supervisor_stop(supervisor); /* workers end and their results are stored while the other parts stop */
  housekeeper_stop(&keeper);
  return 0;
}

/* Returns whether SIGTERM or SIGINT has ended the start while it listed devices or waited for the database's lock. */
static bool is_caused_by_stop(const rl_error *err) {
  return (err->domain == RL_ERRNO && err->code == EINTR) || (rl_is_storage_locked(err) && rl_stop_signal_is_pending());
}

int main(int argc, char **argv) {
  static command options; /* static, because its texts are used until the program ends */
  rl_config config;
  rl_error err;
  read_options(argc, argv, &options);
  if (rl_config_load(options.file, options.overrides, options.override_count, &config, &err) < 0) {
    fprintf(stderr, "rooflined: %s\n", err.message);
    return EX_CONFIG;
  }
  if (options.action_then_exit == OPTION_PRINT) rl_config_print(&config, stdout);
  if (options.action_then_exit == OPTION_CHECK) printf("the configuration is valid\n");
  if (options.action_then_exit != 0) return 0;

  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGHUP);
  sigprocmask(SIG_BLOCK, &signals, NULL); /* before any thread starts, so that only main receives them */
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a file that would exceed RLIMIT_FSIZE is an error of its write, not the end of the daemon */
  mallopt(M_ARENA_MAX, MALLOC_ARENAS);
  mallopt(M_MMAP_THRESHOLD, MALLOC_MMAP_THRESHOLD_BYTES);
  umask(077);
  rl_log_open("rooflined", rl_log_level_by_name(config.log_level));
  if (serve(&config, &signals, &err) >= 0) return 0;
  bool was_stopped = is_caused_by_stop(&err);
  rl_log(was_stopped ? RL_LOG_INFO : RL_LOG_ERROR, "%s%s", was_stopped ? "stopped during the start: " : "", err.message);
  if (was_stopped) return 0;
  return err.domain == RL_INPUT ? EX_CONFIG : 1;
}
