/* Implements the command export, which downloads a job's trace, report or measurements in the format of another tool. Writes the
 * bytes to FILE.XXXXXX and renames it to FILE at the end, so that FILE is never an incomplete export. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/client/http.h"
#include "base/clock.h"

static const int64_t PROGRESS_INTERVAL_NS = 200000000;

typedef struct export_options {
  long long job, run;        /* run 0: the only run of the job */
  const char *format, *file; /* file "-": stdout; NULL: the name that the daemon suggests */
} export_options;

const rl_cli_option *rl_export_options(void) {
  static const rl_cli_option options[] = {{"--format", "FORMAT", "chrome, perfetto, nsys, ncu-csv, csv or openmetrics"},
                                          {"--run", "N", "run to export; required if the job has several runs"},
                                          {"-o", "FILE", "default: a name in the current folder; -: standard output"},
                                          {0}};
  return options;
}

/* Parses an option. value: NULL if the command line ends after the option's name. */
static int parse_value(export_options *options, const char *name, const char *value, rl_error *err) {
  if (value == NULL) return rl_fail_usage(err, "%s needs a value", name);
  if (strcmp(name, "--run") == 0) return rl_parse_number(value, 1, "a run's number after --run", &options->run, err);
  if (strcmp(name, "-o") == 0) options->file = value;
  else options->format = value;
  return 0;
}

static int parse_options(const rl_cli *cli, export_options *options, rl_error *err) {
  const char *job = NULL;
  *options = (export_options){0};
  for (int i = 0; i < cli->argc; i++) {
    const char *word = cli->argv[i];
    if (strcmp(word, "--format") == 0 || strcmp(word, "--run") == 0 || strcmp(word, "-o") == 0) {
      if (parse_value(options, word, cli->argv[++i], err) < 0) return -1;
    } else if (job != NULL || word[0] == '-') return rl_fail_argument(err, "export", word);
    else job = word;
  }
  if (options->format == NULL) return rl_fail_usage(err, "export needs --format; rooflinectl export --help lists the formats");
  if (rl_check_name(options->format, "format", err) < 0) return -1;
  return rl_parse_number(job, 1, "a job's number (rooflinectl list prints them)", &options->job, err);
}

/* --- progress ---------------------------------------------------------------------------------------------------------- */

typedef struct progress {
  bool is_shown;
  int64_t bytes;   /* bytes received so far */
  int64_t next_ns; /* rl_monotonic_ns at which the progress is printed next; 0: it was not printed yet */
} progress;

static void show_progress(progress *shown, size_t added_bytes) {
  shown->bytes += (int64_t)added_bytes;
  if (!shown->is_shown || rl_monotonic_ns() < shown->next_ns) return;
  shown->next_ns = rl_monotonic_ns() + PROGRESS_INTERVAL_NS;
  fprintf(stderr, "\r%.1f MB", (double)shown->bytes / 1e6);
}

static void end_progress(const progress *shown) {
  if (shown->next_ns != 0) fprintf(stderr, "\r%.1f MB\n", (double)shown->bytes / 1e6);
}

/* --- the file ---------------------------------------------------------------------------------------------------------- */

typedef struct output {
  FILE *file;
  char *partial; /* name of the file while it is incomplete; NULL: stdout */
  progress progress;
} output;

static void discard_output(output *out) {
  if (out->partial == NULL) return;
  if (out->file != NULL) fclose(out->file);
  unlink(out->partial);
  free(out->partial);
}

static int open_output(const export_options *options, output *out, rl_error *err) {
  if (options->file != NULL && strcmp(options->file, "-") == 0) {
    out->file = stdout;
    return 0;
  }
  if (asprintf(&out->partial, "%s.XXXXXX", options->file != NULL ? options->file : "rooflinectl-export") < 0) {
    out->partial = NULL;
    return rl_fail_errno(err, "can't write the export");
  }
  int descriptor = mkstemp(out->partial);
  if (descriptor >= 0) out->file = fdopen(descriptor, "w");
  if (out->file != NULL) return 0;
  rl_fail_errno(err, "can't create %s", out->partial);
  if (descriptor >= 0) close(descriptor);
  return -1;
}

static bool write_bytes(void *context, const char *bytes, size_t length) {
  output *out = context;
  show_progress(&out->progress, length);
  return fwrite(bytes, 1, length, out->file) == length;
}

/* Gives the complete file the permissions of a new file (0666 without the umask), and renames it. */
static int rename_complete_output(output *out, const char *name, rl_error *err) {
  const mode_t mask = umask(0);
  umask(mask);
  int rc = fchmod(fileno(out->file), 0666 & ~mask);
  if (fclose(rl_take_ownership(&out->file)) != 0) rc = -1;
  if (rc < 0 || rename(out->partial, name) < 0) return rl_fail_errno(err, "can't write %s", name);
  free(rl_take_ownership(&out->partial));
  puts(name);
  return 0;
}

int rl_command_export(rl_cli *cli, rl_error *err) {
  export_options options;
  RL_CLEANUP(discard_output) output out = {.progress.is_shown = isatty(STDERR_FILENO) == 1 && !cli->json};
  rl_download download = {.write = write_bytes, .context = &out};
  char path[128], run[32] = "";
  if (parse_options(cli, &options, err) < 0) return -1;
  if (options.run > 0) snprintf(run, sizeof run, "&run=%lld", options.run);
  snprintf(path, sizeof path, "/jobs/%lld/export?format=%.40s%s", options.job, options.format, run);
  if (open_output(&options, &out, err) < 0 || rl_http_download(cli, path, &download, err) < 0) return -1;
  end_progress(&out.progress);
  if (out.partial == NULL) return fflush(stdout) == 0 ? RL_EXIT_COMPLETED : rl_fail_errno(err, "can't write the export");
  const char *name = options.file != NULL ? options.file : download.file_name;
  if (name[0] == '\0') return rl_fail(err, RL_HTTP, 0, "the daemon suggests no file name: name the file with -o");
  return rename_complete_output(&out, name, err) < 0 ? -1 : RL_EXIT_COMPLETED;
}
