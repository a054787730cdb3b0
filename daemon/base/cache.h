/* Limits the size of the folder in which workers cache compiled code and counter plans. The daemon passes its path to them as
 * $ROOFLINED_CACHE_DIR. Thread-safe. */
#ifndef RL_BASE_CACHE_H
#define RL_BASE_CACHE_H

#include <stdint.h>

#define RL_CACHE_FOLDER "cache" /* name of the folder inside the state folder */

/* Deletes the least recently modified files of each kind until the kind is within its limits, and deletes incomplete files that
 * killed processes left. Ignores files of other kinds and a missing folder. now_ns: rl_realtime_ns(). */
void rl_cache_prune(const char *path, int64_t now_ns);

#endif
