/* Numbers as ncu prints them: scaled to a readable unit, thousands apart, two decimals unless whole. */
#ifndef RL_API_NCU_TEXT_H
#define RL_API_NCU_TEXT_H

typedef struct rl_ncu_text {
  char value[48], unit[24];
} rl_ncu_text;

/* "21824.5" of "ns": "21.82" "us". Bytes, hertz, times and rates are scaled; every other unit is left. NAN is "n/a". */
rl_ncu_text rl_ncu_scaled(double value, const char *unit);
/* The same in its own unit. */
rl_ncu_text rl_ncu_plain(double value, const char *unit);

#endif
