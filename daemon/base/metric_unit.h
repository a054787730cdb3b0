/* The unit of a metric, which the metric's name contains as a word: epoch_us_median is in µs. The functions take a metric of a
 * suite, such as train/fp16/epoch_ms_median, or only its last part, the name. */
#ifndef RL_BASE_METRIC_UNIT_H
#define RL_BASE_METRIC_UNIT_H

#include <stdbool.h>

#include "base/quantity.h"

enum { RL_METRIC_UNIT_SIZE = 48 };

/* Returns the word of the name that stands for a unit ("ms"); NULL: the name has no unit, or the metric is a rate. The first word
 * of a name stands for no unit. */
const char *rl_metric_unit_word(const char *key);
/* Writes the unit into unit[RL_METRIC_UNIT_SIZE] and returns it: "µs" for epoch_us_median, "images/s" for images_per_s, "1" for a
 * ratio and for a name without a unit. */
char *rl_metric_unit(char *unit, const char *key);
/* Formats a value with the unit that suits its size. Returns false if its unit is neither a time nor a size nor a ratio. */
bool rl_metric_text(const char *key, double value, rl_quantity_text *text);

#endif
