/* Numbers in ncu's format: in a unit that leaves few digits, with thousands separators, with two decimals unless whole. */
#ifndef RL_API_NCU_TEXT_H
#define RL_API_NCU_TEXT_H

typedef struct rl_ncu_text {
  char value[48], unit[24];
} rl_ncu_text;

/* 21824.5 "ns" becomes "21.82" "us". Bytes, hertz, times and rates change their units; other units stay. NAN becomes "n/a". */
rl_ncu_text rl_ncu_format_scaled(double value, const char *unit);
/* The same without a change of the unit. */
rl_ncu_text rl_ncu_format(double value, const char *unit);

#endif
