/* Rows of a report's sections, computed from a kernel's numbers. Pure. */
#ifndef RL_ANALYZE_SECTIONS_H
#define RL_ANALYZE_SECTIONS_H

#include "model/catalogue.h"
#include "model/metrics.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RL_ROW_REASON_SIZE = 256 };

typedef struct rl_row_value {
  double value;
  char reason[RL_ROW_REASON_SIZE]; /* why value is NAN: of the first input that is missing; of a number, why an input was not
                                      counted; "" */
} rl_row_value;

rl_row_value rl_row_evaluate(const rl_section_row *row, const rl_metric_values *values);
/* What a number of a row with choices stands for; NULL: for itself. */
const char *rl_row_text(const rl_section_row *row, double value);
/* The parts of a row that has some, at most RL_PARTS_MOST, the largest first; returns how many. */
enum { RL_PARTS_MOST = 256 };
typedef struct rl_part {
  const char *name; /* what follows the colon */
  double value;     /* NAN: not known */
} rl_part;
size_t rl_row_parts(const rl_section_row *row, const rl_metric_values *values, rl_part parts[RL_PARTS_MOST]);
/* Is the row one of this device's? capability: "9.0"; NULL or one that the catalogue does not know has every row. */
bool rl_row_is_on(const rl_section_row *row, const char *capability);

#ifdef __cplusplus
}
#endif

#endif
