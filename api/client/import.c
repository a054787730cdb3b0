/* Implements the command import, which uploads a trace and follows its job until the job ends. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/client/cells.h"
#include "api/client/follow.h"
#include "api/client/http.h"
#include "api/client/print.h"

typedef struct import_options {
  const char *file, *format;
} import_options;

const rl_cli_option *rl_import_options(void) {
  static const rl_cli_option options[] = {
      {"--format", "kineto|nsys", "format of the file; default: determined by its first bytes"}, {0}};
  return options;
}

static int parse_options(const rl_cli *cli, import_options *options, rl_error *err) {
  *options = (import_options){.format = "auto"};
  for (int i = 0; i < cli->argc; i++) {
    const char *word = cli->argv[i];
    if (strcmp(word, "--format") == 0 && i + 1 < cli->argc) options->format = cli->argv[++i];
    else if (options->file != NULL || word[0] == '-') return rl_fail_argument(err, "import", word);
    else options->file = word;
  }
  if (options->file == NULL) return rl_fail_usage(err, "import needs a FILE");
  return rl_check_name(options->format, "format", err);
}

/* Makes the request's path. Its query parameter file_name is the last component of the file's path. */
static int make_path(const import_options *options, char path[1024], rl_error *err) {
  const char *slash = strrchr(options->file, '/'), *name = slash != NULL ? slash + 1 : options->file;
  char *escaped = curl_easy_escape(NULL, name, 0);
  if (escaped == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a request");
  int length = snprintf(path, 1024, "/imports?format=%s&file_name=%s", options->format, escaped);
  curl_free(escaped);
  return length < 1024 ? 0 : rl_fail_usage(err, "the file's name is too long");
}

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

int rl_command_import(rl_cli *cli, rl_error *err) {
  import_options options;
  char path[1024];
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  if (parse_options(cli, &options, err) < 0 || make_path(&options, path, err) < 0) return -1;
  RL_CLEANUP(close_file) FILE *file = fopen(options.file, "re");
  if (file == NULL) return rl_fail_usage(err, "can't open %s: %s", options.file, strerror(errno));
  if (rl_http_upload(cli, path, file, &response, err) < 0) return -1;
  RL_CLEANUP(rl_json_free) cJSON *job = cJSON_Parse(response.data != NULL ? response.data : "");
  double id = rl_json_number(job, "id");
  if (isnan(id)) return rl_fail(err, RL_HTTP, 0, "the daemon accepted the trace but returned no id");
  if (!cli->json) fprintf(stderr, "job %.0f: %s/job.html?id=%.0f\n", id, cli->url, id);
  return rl_follow_job(cli, (long long)id, true, err);
}
