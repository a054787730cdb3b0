/* SQL functions that every connection of the store has; the views do not use them, so that the sqlite3 shell can read the views.
 *
 *   stored_json(text)       the text as a JSON value, like json(), but without parsing: a CHECK constraint or a JSON function
 *                           must have ensured that the text is valid JSON. SQL NULL becomes the JSON value null.
 *   kernel_base_name(text)  the name of a function without its return type, namespaces, template arguments and parameters:
 *                           "relu" for "void our::relu<float>(float *)"
 *   duration_text(us, other_us)  a duration with its unit, with so many digits that it differs from that of other_us: "12.50 µs"
 *   work_text(amount, work, per_s)  the computation of a floor: "4.52e11 operations in fp32 at 58.0 GFLOP/s"
 *   utc_text(ns)            an instant as RFC 3339 text, in the format of the generated columns *_at. NULL stays NULL.
 *
 * Private to the store. */
#ifndef RL_STORE_FUNCTIONS_H
#define RL_STORE_FUNCTIONS_H

#include <sqlite3.h>

/* Returns SQLITE_OK, or the code of an error. */
int rl_sql_add_functions(sqlite3 *connection);

#endif
