/* Implements watch.h: renders the text every second, and prints it if it differs from the text printed before. */
#include "api/client/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { INTERVAL_S = 1 };

bool rl_remove_flag(rl_cli *cli, const char *flag) {
  int kept = 0;
  for (int i = 0; i < cli->argc; i++)
    if (strcmp(cli->argv[i], flag) != 0) cli->argv[kept++] = cli->argv[i];
  bool found = kept < cli->argc;
  cli->argc = kept;
  cli->argv[kept] = NULL;
  return found;
}

bool rl_job_state_has_ended(const char *state) {
  static const char *const ended[] = {"completed", "failed", "cancelled"};
  for (size_t i = 0; i < sizeof ended / sizeof *ended; i++)
    if (strcmp(state, ended[i]) == 0) return true;
  return false;
}

static int render(rl_cli *cli, rl_print_once print, void *context, char **text, bool *has_ended, rl_error *err) {
  size_t size;
  FILE *out = open_memstream(text, &size);
  if (out == NULL) return rl_fail(err, RL_ERRNO, errno, "no memory for the output");
  int code = print(cli, out, context, has_ended, err);
  fclose(out);
  return code;
}

/* Clears the terminal and prints the text. If standard output is not a terminal, prints the text after an empty line. */
static void replace_text(const char *text, bool is_first) {
  if (isatty(STDOUT_FILENO)) fputs("\033[H\033[2J", stdout);
  else if (!is_first) fputc('\n', stdout);
  fputs(text, stdout);
  fflush(stdout);
}

int rl_print_repeatedly(rl_cli *cli, bool repeats, rl_print_once print, void *context, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *shown = NULL;
  bool has_ended = !repeats;
  if (!repeats) return print(cli, stdout, context, &has_ended, err);
  while (true) {
    char *text = NULL;
    int code = render(cli, print, context, &text, &has_ended, err);
    if (code >= 0 && (shown == NULL || strcmp(shown, text) != 0)) replace_text(text, shown == NULL);
    free(shown);
    shown = text;
    if (code < 0 || has_ended || ferror(stdout)) return code;
    sleep(INTERVAL_S);
  }
}
