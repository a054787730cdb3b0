/* Log lines on standard error, one write(2) a line. A line starts with its <level> under systemd (JOURNAL_STREAM is set), else
 * with the time. Called at the job, request and main boundaries only. Thread-safe. */
#ifndef RL_BASE_LOG_H
#define RL_BASE_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_level { RL_LOG_ERROR = 3, RL_LOG_WARNING = 4, RL_LOG_INFO = 6, RL_LOG_DEBUG = 7 } rl_level;

void rl_log_open(const char *program, rl_level max_level); /* default: "rooflined", RL_LOG_INFO */
void rl_log(rl_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
