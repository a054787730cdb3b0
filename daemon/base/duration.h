/* Formats durations in the unit that suits their size, with at least three significant digits, as web/lib/format.js does. */
#ifndef RL_BASE_DURATION_H
#define RL_BASE_DURATION_H

typedef struct rl_duration_text {
  char text[32]; /* "640.0 ns", "12.50 µs", "263.9 ms", "18.40 s" */
} rl_duration_text;

/* The number must not be NAN. A time below 1 ms has the unit ms only from rl_duration_from_ms. */
rl_duration_text rl_duration_from_us(double us);
rl_duration_text rl_duration_from_ms(double ms);

#endif
