/* Formats numbers as Nsight Compute does: with thousands separators, and with two decimals unless the number is whole.
 * rl_ncu_format_scaled also scales the unit, so that the number has few digits. */
#ifndef RL_API_NCU_TEXT_H
#define RL_API_NCU_TEXT_H

typedef struct rl_ncu_text {
  char value[48], unit[24];
} rl_ncu_text;

/* Formats 21824.5 "ns" as "21.82" "us". Units of bytes, hertz, times and rates are scaled; other units stay. NAN becomes "n/a".
 * */
rl_ncu_text rl_ncu_format_scaled(double value, const char *unit);
/* Formats the value without scaling its unit. */
rl_ncu_text rl_ncu_format(double value, const char *unit);

#endif
