/* Stores sums of activity rows over intervals of time (the table activity_intervals) at several levels of detail
 * (model/activity_levels.h), so that a timeline of a long window can be drawn without reading every row. activity.c calls this
 * module. */
#ifndef RL_STORE_ACTIVITY_INTERVALS_H
#define RL_STORE_ACTIVITY_INTERVALS_H

#include "base/error.h"
#include "model/activity_levels.h"
#include "model/records.h"
#include "store/db.h"

/* Adds the rows, at most RL_SLICE_ROWS, to the intervals of a pass. Called inside a transaction. Sets *first_level to the lowest
 * level whose intervals contain the rows; to RL_NO_LEVEL if no level contains them, because the rows are few or sparse. */
int rl_activity_intervals_add(rl_db *db, int64_t pass, const rl_activity_row *rows, size_t count, int *first_level,
                              rl_error *err);

#endif
