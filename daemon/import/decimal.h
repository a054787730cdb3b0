/* Converts the decimal numbers of a trace file to integers exactly, without rounding to a double. Stateless. */
#ifndef RL_IMPORT_DECIMAL_H
#define RL_IMPORT_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets *value to the number in the text (a JSON number such as -1.5e3) times 10^scale, rounded to the nearest integer. Returns
 * false if the text is not such a number, or if the result does not fit into int64_t. */
bool rl_decimal_parse_scaled(const char *text, size_t length, int scale, int64_t *value);

#endif
