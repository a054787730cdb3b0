/* The settings: one table (name, type, default, bounds, summary), read from an INI file (section [rooflined]), the environment
 * (ROOFLINED_<NAME>) and the command line (--name). Later sources override earlier ones. A value in the file extends to the end
 * of its line. */
#ifndef RL_CONFIG_H
#define RL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum { RL_PATH_SIZE = 1024 };

typedef struct rl_config {
  char address[64];              /* 127.0.0.1 */
  int64_t port;                  /* 8731; 0: the kernel picks a free port */
  char state[RL_PATH_SIZE];      /* $STATE_DIRECTORY, else $XDG_STATE_HOME/rooflined, else ~/.local/state/rooflined */
  char web[RL_PATH_SIZE];        /* static files */
  char workers[RL_PATH_SIZE];    /* folder of rooflined-worker-* */
  char builds[2 * RL_PATH_SIZE]; /* further builds of the workers, in the syntax of named_paths.h */
  char mnist_dir[RL_PATH_SIZE];
  char suites[2 * RL_PATH_SIZE];      /* folders of regression suites, separated by colons */
  char devices[256];                  /* "all", or ids separated by commas: "cpu,gpu0" */
  int64_t queue_limit;                /* 1000 */
  int64_t body_limit_bytes;           /* 1 MiB */
  int64_t import_limit_bytes;         /* 2 GiB: largest trace that is imported */
  int64_t import_spool_bytes;         /* 8 GiB: largest total size of the uploads that wait for their import */
  int64_t connection_limit;           /* 4096 */
  int64_t request_timeout_s;          /* 15: headers and body must arrive within this time */
  int64_t request_deadline_s;         /* 10: the queries of a request end after this time */
  int64_t job_deadline_s;             /* 3600 */
  bool refresh_ceilings;              /* measure again when a device's driver or clocks have changed */
  bool allow_source;                  /* execute code that clients with a token post */
  char source_includes[RL_PATH_SIZE]; /* folders that posted code may include files from, separated by colons */
  int64_t source_buffer_bytes;        /* 16 GiB: largest total size of a posted kernel's buffers */
  int64_t spare_worker_s;             /* 60: how long spare workers wait for the next posted kernel; 0: no spare workers */
  int64_t activity_days, job_days, max_bytes; /* retention; 0: no limit */
  char tls_certificate[RL_PATH_SIZE], tls_key[RL_PATH_SIZE];
  bool behind_proxy;
  bool require_token;      /* clients on loopback need a token too */
  char allowed_hosts[256]; /* additional Host names that requests may use, comma-separated */
  int64_t spill_bytes;     /* 64 MiB: size of the spill file of each device; 0: no spill files */
  char webhook_url[RL_PATH_SIZE];
  char webhook_secret_file[RL_PATH_SIZE]; /* a relative path is relative to $CREDENTIALS_DIRECTORY */
  char webhook_ca_file[RL_PATH_SIZE];     /* "": the system's authorities */
  int64_t webhook_retry_s;                /* 10: time from the first failure of a delivery to the next attempt */
  int64_t threads;                        /* threads of the CPU engines; 0: one for each core */
  char log_level[16];                     /* error warning info debug */
} rl_config;

typedef enum rl_config_key_type { RL_KEY_TEXT, RL_KEY_INT, RL_KEY_BOOL } rl_config_key_type;
typedef struct rl_config_key {
  const char *name; /* "port": --port, ROOFLINED_PORT, port = */
  rl_config_key_type type;
  size_t offset, size;
  int64_t minimum, maximum;
  const char *default_value, *summary;
  const char *const *allowed_values;                                /* TEXT: accepted values, NULL-terminated; NULL: any */
  int (*check)(const char *name, const char *value, rl_error *err); /* TEXT: checks a value other than ""; NULL: no check */
} rl_config_key;
extern const rl_config_key rl_config_keys[]; /* ends with {0} */

/* The command-line options that are not settings: indices into rl_config_options. */
enum { RL_OPTION_CONFIG, RL_OPTION_CHECK, RL_OPTION_PRINT, RL_OPTION_VERSION, RL_OPTION_HELP, RL_OPTION_COUNT };
typedef struct rl_config_option {
  const char *name;
  const char *argument; /* name of the option's argument in the help text; "": the option has no argument */
  const char *summary;
} rl_config_option;
extern const rl_config_option rl_config_options[]; /* ends with {0} */

/* Reads defaults, then file (NULL: $ROOFLINED_CONFIG, else /etc/rooflined/rooflined.conf if it exists), then the environment,
 * then overrides ("name=value" from the command line). The message of an RL_INPUT error names the source and, for the file, the
 * line. */
int rl_config_load(const char *file, const char *const *overrides, int override_count, rl_config *config, rl_error *err);
/* Applies the settings of one file to *config, which is unchanged on failure. source is the file's name in errors ("source:line:
 * …"). */
int rl_config_read(FILE *stream, const char *source, rl_config *config, rl_error *err);
/* Returns whether the address is a loopback address. */
bool rl_config_is_loopback(const rl_config *config);
/* Prints every setting with its summary, in the format that rl_config_read accepts. */
void rl_config_print(const rl_config *config, FILE *out);

#endif
