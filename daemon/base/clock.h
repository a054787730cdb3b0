/* The two clocks. Instants are UTC nanoseconds since 1970 as signed 64-bit integers, and RFC 3339 text with
 * nanoseconds in JSON; durations come from the monotonic clock, which a clock set back does not touch. */
#ifndef RL_BASE_CLOCK_H
#define RL_BASE_CLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int64_t rl_now_ns(void);       /* UTC */
int64_t rl_monotonic_ns(void); /* since an arbitrary start */

enum { RL_INSTANT_SIZE = 40 };
/* "2026-11-20T21:53:00.123456789Z" into text[RL_INSTANT_SIZE]; returns text. */
char *rl_instant_format(int64_t ns, char *text);
/* The reverse (the fraction may be absent or shorter); -1 when text is not such an instant. */
int rl_instant_parse(const char *text, int64_t *ns);

#ifdef __cplusplus
}
#endif
#endif
