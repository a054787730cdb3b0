/* A table has each setting with its limits. Values come from defaults, the file, the environment and the command line; a later
 * source replaces an earlier one. */
#include "config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/named_paths.h"

static const char *const log_levels[] = {"error", "warning", "info", "debug", NULL};
enum { MAX_FILE_BYTES = 64 << 10 };
#define HOST_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_"

static int check_url(const char *name, const char *value, rl_error *err);
static int check_builds(const char *name, const char *value, rl_error *err);
static int check_folders(const char *name, const char *value, rl_error *err);

#define KEY(MEMBER, TYPE, DEFAULT_VALUE, SUMMARY, ...)                                                                \
  {                                                                                                                   \
    .name = #MEMBER, .type = (TYPE), .offset = offsetof(rl_config, MEMBER), .size = sizeof(((rl_config *)0)->MEMBER), \
    .default_value = (DEFAULT_VALUE), .summary = (SUMMARY), __VA_ARGS__                                               \
  }
#define TEXT(MEMBER, DEFAULT_VALUE, SUMMARY, ...) KEY(MEMBER, RL_KEY_TEXT, DEFAULT_VALUE, SUMMARY, __VA_ARGS__)
#define INT(MEMBER, DEFAULT_VALUE, MINIMUM, MAXIMUM, SUMMARY) \
  KEY(MEMBER, RL_KEY_INT, DEFAULT_VALUE, SUMMARY, .minimum = (MINIMUM), .maximum = (MAXIMUM))
#define BOOL(MEMBER, DEFAULT_VALUE, SUMMARY) KEY(MEMBER, RL_KEY_BOOL, DEFAULT_VALUE, SUMMARY)

const rl_config_option rl_config_options[] = {
    [RL_OPTION_CONFIG] = {"config", "FILE",
                          "file of the settings; default: $ROOFLINED_CONFIG, else /etc/rooflined/rooflined.conf"},
    [RL_OPTION_CHECK] = {"check-config", "", "check the configuration, and exit"},
    [RL_OPTION_PRINT] = {"print-config", "", "print the effective settings as a configuration file, and exit"},
    [RL_OPTION_VERSION] = {"version", "", "print the version, and exit"},
    [RL_OPTION_HELP] = {"help", "", "print this help, and exit"},
    [RL_OPTION_COUNT] = {0}};

const rl_config_key rl_config_keys[] = {
    TEXT(address, "127.0.0.1",
         "IP address to listen on; an address other than loopback requires a token, and TLS or behind_proxy"),
    INT(port, "8731", 0, 65535, "port to listen on; 0: any free port"),
    TEXT(state, "",
         "folder of the database; empty: $STATE_DIRECTORY, else $XDG_STATE_HOME/rooflined, else "
         "~/.local/state/rooflined"),
    TEXT(web, "", "folder of the web page's files; empty: ../share/rooflined/web, relative to the program's folder"),
    TEXT(workers, "", "folder of rooflined-worker-*; empty: the program's folder if it has a worker, else ../libexec/rooflined"),
    TEXT(builds, "",
         "further builds of the workers, which jobs and baselines of suite runs select by worker_build: NAME=FOLDER of "
         "rooflined-worker-*, separated by commas",
         .check = check_builds),
    TEXT(mnist_dir, "", "folder of the four MNIST files (plain or gzip); empty: synthetic digits"),
    TEXT(suites, "",
         "folders of regression suites, separated by colons; empty: /etc/rooflined/suites.d, then ../share/rooflined/suites.d, "
         "relative to the program's folder"),
    TEXT(devices, "all", "devices to serve: all, or ids separated by commas (cpu,gpu0)"),
    INT(queue_limit, "1000", 1, 1000000, "largest number of queued jobs; further submissions are answered with 429"),
    INT(body_limit_bytes, "1048576", 1024, 64 << 20, "largest request body"),
    INT(import_limit_bytes, "2147483648", 1024, INT64_C(1) << 50, "largest trace that is imported"),
    INT(import_spool_bytes, "8589934592", 1024, INT64_C(1) << 50,
        "largest total size of uploaded traces that wait for their import, in the state folder"),
    INT(connection_limit, "4096", 1, 65536,
        "largest number of open connections; when more than 7/8 are open, each new one closes the oldest that has never sent a "
        "complete request, else the one that has been idle longest"),
    INT(request_timeout_s, "15", 1, 3600, "seconds within which headers and body must arrive"),
    INT(request_deadline_s, "10", 1, 3600, "seconds after which the daemon stops working on a request, waiting in line included"),
    INT(job_deadline_s, "3600", 1, 604800, "deadline of a job that names none, in seconds from its start"),
    BOOL(refresh_ceilings, "true", "submit a ceilings job when a device's driver or clocks have changed"),
    BOOL(allow_source, "false", "execute kernel source posted by clients that have a token"),
    TEXT(source_includes, "",
         "folders that posted code may include files from, besides CUDA's headers, separated by colons (/opt/cutlass/include)",
         .check = check_folders),
    INT(source_buffer_bytes, "17179869184", 1, INT64_C(1) << 50,
        "largest total size of the buffers of a posted kernel, in bytes"),
    INT(spare_worker_s, "60", 0, 86400,
        "seconds after the last posted kernel during which spare workers, already started, wait for the next one; 0: no spare "
        "workers; each of them holds a CUDA context"),
    INT(activity_days, "30", 0, 36500, "days to keep raw activity records; 0: forever"),
    INT(job_days, "0", 0, 36500, "days to keep jobs and their results; 0: forever"),
    INT(max_bytes, "0", 0, INT64_C(1) << 50, "database size above which the oldest rows are deleted; 0: no limit"),
    TEXT(tls_certificate, "", "certificate chain (PEM)"),
    TEXT(tls_key, "", "private key of the certificate (PEM)"),
    BOOL(behind_proxy, "false",
         "a proxy in front of the daemon terminates TLS; the client is the last address in X-Forwarded-For, else in Forwarded"),
    BOOL(require_token, "false", "require a token on loopback too"),
    TEXT(allowed_hosts, "", "additional Host names that requests may use, separated by commas"),
    INT(spill_bytes, "67108864", 0, INT64_C(1) << 40,
        "bytes of disk allocated for each device to keep results while the database can't be written; 0: none"),
    TEXT(webhook_url, "", "http or https URL to which events of regression suites are posted; empty: none", .check = check_url),
    TEXT(
        webhook_secret_file, "",
        "file with the key that signs the posts to webhook_url, in base64 with the prefix whsec_; a relative path is relative to "
        "$CREDENTIALS_DIRECTORY"),
    TEXT(webhook_ca_file, "",
         "certificates (PEM) of the authorities that the receiver's certificate is checked against; empty: the system's"),
    INT(webhook_retry_s, "10", 1, 3600,
        "seconds after which a failed post is repeated; doubled after each further failure, up to an hour"),
    INT(threads, "0", 0, 4096, "threads of the CPU engines; 0: one for each core"),
    TEXT(log_level, "info", "error, warning, info or debug", .allowed_values = log_levels),
    {0}};

/* --- one value --------------------------------------------------------------------------------------------------------- */

static const rl_config_key *find_key(const char *name) {
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++)
    if (strcmp(key->name, name) == 0) return key;
  return NULL;
}

static void free_text(char **text) { free(*text); }

/* Returns the length of HOST or HOST:PORT at the beginning of text; 0 if there is no host or the port is invalid. */
static size_t measure_authority(const char *text) {
  size_t length = *text == '[' ? 1 + strspn(text + 1, "0123456789abcdefABCDEF:.") : strspn(text, HOST_CHARACTERS);
  if (*text == '[') length = length > 1 && text[length] == ']' ? length + 1 : 0;
  if (length == 0 || text[length] != ':') return length;
  const size_t digits = strspn(text + length + 1, "0123456789");
  const long port = digits <= 5 ? strtol(text + length + 1, NULL, 10) : 0;
  return port >= 1 && port <= 65535 ? length + 1 + digits : 0;
}

static int check_builds(const char *name, const char *value, rl_error *err) {
  const char *problem = rl_named_paths_check(value);
  return problem == NULL ? 0 : rl_fail(err, RL_INPUT, 0, "%s %s", name, problem);
}

/* Checks that each item is an absolute path. */
static int check_folders(const char *name, const char *value, rl_error *err) {
  for (const char *folder = value; folder != NULL; folder = strchr(folder, ':') != NULL ? strchr(folder, ':') + 1 : NULL)
    if (folder[0] != '/') return rl_fail(err, RL_INPUT, 0, "%s must list absolute paths, separated by colons", name);
  return 0;
}

/* Checks the syntax of an http or https URL. The error message does not repeat the URL, because its path may be a secret. */
static int check_url(const char *name, const char *value, rl_error *err) {
  const char *authority = strncmp(value, "https://", 8) == 0 ? value + 8 : strncmp(value, "http://", 7) == 0 ? value + 7 : "";
  const size_t length = measure_authority(authority);
  const char *path = authority + length;
  if (length > 0 && strchr("/?", *path) != NULL && path[strspn(path, HOST_CHARACTERS "/?%:@!$&'()*+,;=[]~_")] == '\0') return 0;
  return rl_fail(err, RL_INPUT, 0, "%s must be http://HOST[:PORT][/PATH] or https://..., without user, password and fragment",
                 name);
}

static int set_text(const rl_config_key *key, const char *value, char *out, rl_error *err) {
  size_t length = strlen(value);
  if (length > 0 && (isspace((unsigned char)value[0]) || isspace((unsigned char)value[length - 1])))
    return rl_fail(err, RL_INPUT, 0, "%s must not begin or end with white space", key->name);
  for (size_t i = 0; i < length; i++)
    if (iscntrl((unsigned char)value[i])) return rl_fail(err, RL_INPUT, 0, "%s has a control character", key->name);
  if (length >= key->size) return rl_fail(err, RL_INPUT, 0, "%s must be shorter than %zu bytes", key->name, key->size);
  bool is_allowed = key->allowed_values == NULL;
  for (int i = 0; !is_allowed && key->allowed_values[i] != NULL; i++) is_allowed = strcmp(key->allowed_values[i], value) == 0;
  if (!is_allowed) return rl_fail(err, RL_INPUT, 0, "%s must be one of %s, not \"%s\"", key->name, key->summary, value);
  if (length > 0 && key->check != NULL && key->check(key->name, value, err) < 0) return -1;
  memcpy(out, value, length + 1);
  return 0;
}

static int set_int(const rl_config_key *key, const char *value, int64_t *out, rl_error *err) {
  char *end = NULL;
  errno = 0;
  long long number = strtoll(value, &end, 10);
  if (end == value || *end != '\0' || errno != 0 || number < key->minimum || number > key->maximum)
    return rl_fail(err, RL_INPUT, 0, "%s must be a whole number from %lld to %lld, not \"%s\"", key->name,
                   (long long)key->minimum, (long long)key->maximum, value);
  *out = number;
  return 0;
}

static int set_bool(const rl_config_key *key, const char *value, bool *out, rl_error *err) {
  static const struct {
    const char *word;
    bool meaning;
  } words[] = {{"true", true},   {"yes", true}, {"on", true},   {"1", true},
               {"false", false}, {"no", false}, {"off", false}, {"0", false}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcasecmp(words[i].word, value) == 0) {
      *out = words[i].meaning;
      return 0;
    }
  return rl_fail(err, RL_INPUT, 0, "%s must be true or false, not \"%s\"", key->name, value);
}

static int set_value(const rl_config_key *key, const char *value, rl_config *config, rl_error *err) {
  void *out = (char *)config + key->offset;
  switch (key->type) {
    case RL_KEY_TEXT: return set_text(key, value, out, err);
    case RL_KEY_INT: return set_int(key, value, out, err);
    case RL_KEY_BOOL: return set_bool(key, value, out, err);
  }
  return -1;
}

/* --- the file ---------------------------------------------------------------------------------------------------------- */

typedef struct file_reader {
  rl_config config; /* settings so far */
  const char *source;
  int line;
  bool in_section;    /* [rooflined] was read, and no other section since */
  uint64_t keys_seen; /* bit i: rl_config_keys[i] */
} file_reader;

static char *trim(char *text) {
  while (isspace((unsigned char)*text)) text++;
  char *end = text + strlen(text);
  while (end > text && isspace((unsigned char)end[-1])) *--end = '\0';
  return text;
}

static int read_section(file_reader *reader, const char *line, rl_error *err) {
  reader->in_section = strcmp(line, "[rooflined]") == 0;
  return reader->in_section ? 0 : rl_fail(err, RL_INPUT, 0, "the only section is [rooflined], not %.64s", line);
}

static int read_setting(file_reader *reader, char *line, rl_error *err) {
  char *equals = strchr(line, '=');
  if (equals == NULL) return rl_fail(err, RL_INPUT, 0, "not a [section], a comment or name = value");
  *equals = '\0';
  const char *name = trim(line);
  if (!reader->in_section) return rl_fail(err, RL_INPUT, 0, "%.64s must stand in the section [rooflined]", name);
  const rl_config_key *key = find_key(name);
  if (key == NULL) return rl_fail(err, RL_INPUT, 0, "there is no setting %.64s", name);
  uint64_t bit = UINT64_C(1) << (key - rl_config_keys);
  if (reader->keys_seen & bit) return rl_fail(err, RL_INPUT, 0, "%s is set twice", name);
  reader->keys_seen |= bit;
  return set_value(key, trim(equals + 1), &reader->config, err);
}

/* Reads a line: it is empty, a comment (which begins with # or ;), a section or a setting. In a setting, # and ; do not begin a
 * comment, because a path may contain them. */
static int read_line(file_reader *reader, char *text, size_t length, rl_error *err) {
  if (strlen(text) != length) return rl_fail(err, RL_INPUT, 0, "the line contains a NUL byte");
  char *line = trim(text);
  if (*line == '\0' || *line == '#' || *line == ';') return 0;
  return *line == '[' ? read_section(reader, line, err) : read_setting(reader, line, err);
}

int rl_config_read(FILE *stream, const char *source, rl_config *config, rl_error *err) {
  RL_CLEANUP(free_text) char *text = NULL;
  file_reader reader = {.config = *config, .source = source};
  size_t capacity = 0;
  for (ssize_t length; (length = getline(&text, &capacity, stream)) >= 0;) {
    reader.line++;
    if (read_line(&reader, text, (size_t)length, err) < 0) return rl_wrap(err, "%s:%d", source, reader.line);
  }
  if (ferror(stream)) return rl_fail_errno(err, "can't read %s", source);
  *config = reader.config;
  return 0;
}

static int load_file(const char *file, rl_config *config, rl_error *err) {
  static const char *const default_file = "/etc/rooflined/rooflined.conf";
  if (file == NULL) file = getenv("ROOFLINED_CONFIG");
  bool must_exist = file != NULL && *file != '\0';
  if (!must_exist) file = default_file;
  FILE *stream = fopen(file, "re");
  if (stream == NULL) return !must_exist && errno == ENOENT ? 0 : rl_fail_errno(err, "can't read %s", file);
  struct stat status;
  int rc = fstat(fileno(stream), &status) >= 0 && S_ISREG(status.st_mode) && status.st_size <= MAX_FILE_BYTES
               ? rl_config_read(stream, file, config, err)
               : rl_fail(err, RL_INPUT, 0, "%s is not a regular file of at most %d bytes", file, MAX_FILE_BYTES);
  fclose(stream);
  return rc;
}

/* --- environment, command line, defaults ------------------------------------------------------------------------------- */

static int load_environment(rl_config *config, rl_error *err) {
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++) {
    char name[64];
    snprintf(name, sizeof name, "ROOFLINED_%s", key->name);
    for (char *c = name; *c != '\0'; c++) *c = (char)toupper((unsigned char)*c);
    const char *value = getenv(name);
    if (value != NULL && set_value(key, value, config, err) < 0) return rl_wrap(err, "environment variable %s", name);
  }
  return 0;
}

static int load_override(const char *override, rl_config *config, rl_error *err) {
  char name[64];
  const char *equals = strchr(override, '=');
  if (equals == NULL || (size_t)(equals - override) >= sizeof name)
    return rl_fail(err, RL_INPUT, 0, "\"%s\" is not name=value", override);
  snprintf(name, sizeof name, "%.*s", (int)(equals - override), override);
  const rl_config_key *key = find_key(name);
  if (key == NULL) return rl_fail(err, RL_INPUT, 0, "there is no setting %s", name);
  return set_value(key, equals + 1, config, err) < 0 ? rl_wrap(err, "option --%s", name) : 0;
}

static int join_path(char *path, const char *folder, const char *rest, rl_error *err) {
  if ((size_t)snprintf(path, RL_PATH_SIZE, "%s%s%s", folder, *rest != '\0' ? "/" : "", rest) >= RL_PATH_SIZE)
    return rl_fail(err, RL_INPUT, 0, "the path %.80s... is too long", folder);
  return 0;
}

/* Sets `state` from the environment. In STATE_DIRECTORY, systemd separates several folders by colons; the first one is the
 * daemon's. */
static int set_default_state(rl_config *config, rl_error *err) {
  static const struct {
    const char *variable, *rest, *separators;
  } candidates[] = {{"STATE_DIRECTORY", "", ":"}, {"XDG_STATE_HOME", "rooflined", ""}, {"HOME", ".local/state/rooflined", ""}};
  for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
    const char *folders = getenv(candidates[i].variable);
    if (folders == NULL || *folders != '/') continue;
    RL_CLEANUP(free_text) char *first = strndup(folders, strcspn(folders, candidates[i].separators));
    if (first == NULL) return rl_fail_errno(err, "can't read %s", candidates[i].variable);
    return join_path(config->state, first, candidates[i].rest, err);
  }
  return rl_fail(err, RL_INPUT, 0, "no folder for the database is known: set --state FOLDER");
}

/* Returns whether the folder contains a worker program of any kind, because a GPU host may have only the CUDA worker. */
static bool has_workers(const char *folder) {
  char pattern[RL_PATH_SIZE];
  glob_t found = {0};
  bool is_found = snprintf(pattern, sizeof pattern, "%s/rooflined-worker-*", folder) < (int)sizeof pattern &&
                  glob(pattern, 0, NULL, &found) == 0;
  globfree(&found);
  return is_found;
}

static int set_default_suites(rl_config *config, const char *program_folder, rl_error *err) {
  if (config->suites[0] != '\0') return 0;
  int length =
      snprintf(config->suites, sizeof config->suites, "/etc/rooflined/suites.d:%s/../share/rooflined/suites.d", program_folder);
  return length < (int)sizeof config->suites ? 0 : rl_fail(err, RL_INPUT, 0, "the path %.80s... is too long", program_folder);
}

/* If `web`, `suites` or `workers` is empty, derives it from the program's path, in the build tree and in an installation. */
static int set_default_folders(rl_config *config, rl_error *err) {
  char program_folder[RL_PATH_SIZE];
  ssize_t length = readlink("/proc/self/exe", program_folder, sizeof program_folder - 1);
  if (length < 0) return rl_fail_errno(err, "can't read /proc/self/exe");
  program_folder[length] = '\0';
  *strrchr(program_folder, '/') = '\0';
  if (config->web[0] == '\0' && join_path(config->web, program_folder, "../share/rooflined/web", err) < 0) return -1;
  if (set_default_suites(config, program_folder, err) < 0) return -1;
  if (config->workers[0] != '\0') return 0;
  if (has_workers(program_folder)) return join_path(config->workers, program_folder, "", err);
  return join_path(config->workers, program_folder, "../libexec/rooflined", err);
}

static int check_consistency(const rl_config *config, rl_error *err) {
  unsigned char bytes[16];
  if (inet_pton(AF_INET, config->address, bytes) != 1 && inet_pton(AF_INET6, config->address, bytes) != 1)
    return rl_fail(err, RL_INPUT, 0, "address must be an IPv4 or IPv6 address, not \"%s\"", config->address);
  if ((config->tls_certificate[0] == '\0') != (config->tls_key[0] == '\0'))
    return rl_fail(err, RL_INPUT, 0, "tls_certificate and tls_key need each other: set both or neither");
  if ((config->webhook_url[0] == '\0') != (config->webhook_secret_file[0] == '\0'))
    return rl_fail(err, RL_INPUT, 0, "webhook_url and webhook_secret_file need each other: set both or neither");
  return 0;
}

int rl_config_load(const char *file, const char *const *overrides, int override_count, rl_config *config, rl_error *err) {
  rl_config loaded = {0};
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++)
    if (set_value(key, key->default_value, &loaded, err) < 0) return -1;
  if (load_file(file, &loaded, err) < 0 || load_environment(&loaded, err) < 0) return -1;
  for (int i = 0; i < override_count; i++)
    if (load_override(overrides[i], &loaded, err) < 0) return -1;
  if (loaded.state[0] == '\0' && set_default_state(&loaded, err) < 0) return -1;
  if (set_default_folders(&loaded, err) < 0 || check_consistency(&loaded, err) < 0) return -1;
  *config = loaded;
  return 0;
}

bool rl_config_is_loopback(const rl_config *config) {
  struct in_addr ipv4;
  struct in6_addr ipv6;
  if (inet_pton(AF_INET, config->address, &ipv4) == 1) return (ntohl(ipv4.s_addr) >> 24) == 127;
  return inet_pton(AF_INET6, config->address, &ipv6) == 1 && IN6_IS_ADDR_LOOPBACK(&ipv6);
}

void rl_config_print(const rl_config *config, FILE *out) {
  fprintf(out, "[rooflined]\n");
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++) {
    const void *value = (const char *)config + key->offset;
    fprintf(out, "\n# %s\n%s = ", key->summary, key->name);
    switch (key->type) {
      case RL_KEY_TEXT: fprintf(out, "%s\n", (const char *)value); break;
      case RL_KEY_INT: fprintf(out, "%lld\n", (long long)*(const int64_t *)value); break;
      case RL_KEY_BOOL: fprintf(out, "%s\n", *(const bool *)value ? "true" : "false"); break;
    }
  }
}
