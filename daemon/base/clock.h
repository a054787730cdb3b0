/* Reads the wall clock and the monotonic clock, and converts instants to and from text. An instant is an int64_t: ns since
 * 1970-01-01T00:00:00Z; in JSON it is RFC 3339 text with nanoseconds. Durations are differences of monotonic times, because the
 * wall clock can be set. */
#ifndef RL_BASE_CLOCK_H
#define RL_BASE_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t rl_realtime_ns(void);  /* CLOCK_REALTIME */
int64_t rl_monotonic_ns(void); /* CLOCK_MONOTONIC */

enum { RL_INSTANT_SIZE = 40 };
/* Writes "2026-11-20T21:53:00.123456789Z" to text[RL_INSTANT_SIZE] and returns text. */
char *rl_instant_format(int64_t ns, char *text);
/* Parses RFC 3339 text. The fraction of a second may be absent or have any length. *ns can represent the years 1677 to 2262; for
 * other years, sets *ns to the nearest value that it can represent. Returns -1 if text is not an RFC 3339 instant. */
int rl_instant_parse(const char *text, int64_t *ns);

#ifdef __cplusplus
}
#endif
#endif
