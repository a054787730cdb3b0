/* Implements log.h. A line is formatted in a buffer of fixed size and truncated if it does not fit. */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

static const char *program_name = "rooflined";
static rl_log_level threshold = RL_LOG_INFO;
static bool has_journal;

rl_log_level rl_log_level_by_name(const char *name) {
  static const struct {
    const char *name;
    rl_log_level level;
  } levels[] = {{"error", RL_LOG_ERROR}, {"warning", RL_LOG_WARNING}, {"debug", RL_LOG_DEBUG}};
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
    if (strcmp(levels[i].name, name) == 0) return levels[i].level;
  return RL_LOG_INFO;
}

void rl_log_open(const char *program, rl_log_level max_level) {
  program_name = program;
  threshold = max_level;
  has_journal = getenv("JOURNAL_STREAM") != NULL;
}

void rl_log(rl_log_level level, const char *format, ...) {
  if (level > threshold) return;
  char line[2048], instant[RL_INSTANT_SIZE];
  int used = has_journal ? snprintf(line, sizeof line, "<%d>", (int)level)
                         : snprintf(line, sizeof line, "%s %s: %s", rl_instant_format(rl_realtime_ns(), instant), program_name,
                                    level == RL_LOG_ERROR     ? "error: "
                                    : level == RL_LOG_WARNING ? "warning: "
                                                              : "");
  va_list args;
  va_start(args, format);
  int wrote = vsnprintf(line + used, sizeof line - 1 - (size_t)used, format, args);
  va_end(args);
  used += wrote < 0 ? 0 : wrote;
  if (used > (int)sizeof line - 2) used = (int)sizeof line - 2;
  line[used++] = '\n';
  /* Replaces control characters, because a line break in text from a client could forge a log line. */
  for (int i = 0; i < used - 1; i++)
    if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) line[i] = ' ';
  ssize_t ignored = write(STDERR_FILENO, line, (size_t)used);
  (void)ignored;
}
