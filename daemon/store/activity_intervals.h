/* Sums of activity rows by intervals of time (the table activity_intervals). */
#ifndef RL_STORE_ACTIVITY_INTERVALS_H
#define RL_STORE_ACTIVITY_INTERVALS_H

#include "base/error.h"
#include "model/activity_levels.h"
#include "model/records.h"
#include "store/db.h"

/* Adds the rows, at most RL_SLICE_ROWS, to the intervals of a pass. Called inside a transaction. *first_level: the lowest level
 * that contains the rows; RL_NO_LEVEL: no level does, because the rows are few or sparse. */
int rl_activity_intervals_add(rl_db *db, int64_t pass, const rl_activity_row *rows, size_t count, int *first_level,
                              rl_error *err);

#endif
