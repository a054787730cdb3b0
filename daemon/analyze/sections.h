/* Pure functions that compute the rows of a report's sections from a kernel's metrics. */
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
  char reason[RL_ROW_REASON_SIZE]; /* NAN: reason of the first missing input; else why an input was not counted; "": none */
} rl_row_value;

rl_row_value rl_row_evaluate(const rl_section_row *row, const rl_metric_values *values);
/* Returns the text that a row with choices shows for a value; NULL: the number itself. */
const char *rl_row_text(const rl_section_row *row, double value);
/* Fills the parts of a row, largest first, at most RL_PARTS_MAX. Returns their number. */
enum { RL_PARTS_MAX = 256 };
typedef struct rl_part {
  const char *name; /* the text behind the colon */
  double value;     /* NAN: not known */
} rl_part;
size_t rl_row_parts(const rl_section_row *row, const rl_metric_values *values, rl_part parts[RL_PARTS_MAX]);
/* Whether a device has the row. capability: "9.0"; NULL or a capability that the catalogue does not know has every row. */
bool rl_row_is_available(const rl_section_row *row, const char *capability);

#ifdef __cplusplus
}
#endif

#endif
