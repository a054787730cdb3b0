/* The unit of a metric, which the metric's name contains as a word: epoch_us_median is in µs. The functions take a metric of a
 * suite, such as train/fp16/epoch_ms_median, or only its last part, the name. */
#ifndef RL_BASE_METRIC_UNIT_H
#define RL_BASE_METRIC_UNIT_H

enum { RL_METRIC_UNIT_SIZE = 48, RL_METRIC_TEXT_SIZE = 96 };

/* Returns the word of the name that stands for a unit ("ms"); NULL: the name has no unit, or the metric is a rate. The first word
 * of a name stands for no unit. */
const char *rl_metric_unit_word(const char *key);
/* Writes the unit into unit[RL_METRIC_UNIT_SIZE] and returns it: "µs" for epoch_us_median, "images/s" for images_per_s, "1" for a
 * ratio and for a name without a unit. */
char *rl_metric_unit(char *unit, const char *key);
/* Writes a value with `digits` significant digits, and with all digits before the decimal point, into text[RL_METRIC_TEXT_SIZE];
 * returns it. Durations and sizes have the unit that suits their size, and ratios are percentages: with 4 digits "330.6 µs",
 * "61.10 MiB", "98.90 %", "4625 images/s". */
char *rl_metric_text(char *text, const char *key, double value, int digits);

#endif
