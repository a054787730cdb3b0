/* Computes the rows of a report's sections from a kernel's metrics. All functions are pure. */
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
  /* If value is NAN, why its first missing input is missing; otherwise how the value of an uncounted input was obtained. "": no
   * reason. */
  char reason[RL_ROW_REASON_SIZE];
} rl_row_value;

rl_row_value rl_row_evaluate(const rl_section_row *row, const rl_metric_values *values);
/* Returns the text that a row with choices shows for a value; NULL: the row shows the number. */
const char *rl_row_text(const rl_section_row *row, double value);
enum { RL_MAX_ROW_PARTS = 256 };
typedef struct rl_row_part {
  const char *name; /* text after the colon in the name of the part's metric */
  double value;     /* NAN: unknown */
} rl_row_part;
/* Fills the parts of a row, largest first, at most RL_MAX_ROW_PARTS. Returns their number. */
size_t rl_row_parts(const rl_section_row *row, const rl_metric_values *values, rl_row_part parts[RL_MAX_ROW_PARTS]);
/* Returns true if devices of the compute capability ("9.0") have the row, or if the capability is NULL or unknown to the
 * catalogue. */
bool rl_row_is_available(const rl_section_row *row, const char *capability);

#ifdef __cplusplus
}
#endif

#endif
