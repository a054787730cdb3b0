/* Writes log lines to standard error, each with one write(2). If systemd has set JOURNAL_STREAM, a line starts with its priority,
 * such as "<4>"; otherwise with the time and the program's name. Thread-safe. */
#ifndef RL_BASE_LOG_H
#define RL_BASE_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_log_level { RL_LOG_ERROR = 3, RL_LOG_WARNING = 4, RL_LOG_INFO = 6, RL_LOG_DEBUG = 7 } rl_log_level;

/* Returns the level "error", "warning", "info" or "debug"; RL_LOG_INFO for every other text. */
rl_log_level rl_log_level_by_name(const char *name);
/* Sets the program's name in log lines, and the least important level that is written. Must be called before threads start. */
void rl_log_open(const char *program, rl_log_level max_level); /* without a call: "rooflined" and RL_LOG_INFO */
/* Writes a line, unless its level is less important than max_level. */
void rl_log(rl_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
