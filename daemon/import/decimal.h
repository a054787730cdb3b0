/* Converts the decimal numbers of a trace file to integers exactly, without a double in between. Stateless. */
#ifndef RL_IMPORT_DECIMAL_H
#define RL_IMPORT_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets *value to the number in text (JSON's grammar, such as -1.5e3) times 10^scale, rounded to the nearest integer. Returns
 * false if the text is not such a number, or if int64_t can't hold the result. */
bool rl_decimal_parse_scaled(const char *text, size_t length, int scale, int64_t *value);

#endif
