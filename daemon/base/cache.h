/* Limits the size of the folder in which workers cache compiled code and counter plans (which counters each replay of a kernel
 * collects). The daemon passes the folder's path to the workers as $ROOFLINED_CACHE_DIR. The daemon's housekeeping thread and
 * workers that have added a counter plan call this module. Thread-safe. */
#ifndef RL_BASE_CACHE_H
#define RL_BASE_CACHE_H

#include <stdint.h>

#define RL_CACHE_FOLDER "cache" /* name of the folder inside the state folder */

/* Deletes the least recently modified files of each kind until the kind is within its limits, and deletes incomplete files of
 * processes that were killed. Ignores all other files. Does nothing if the folder does not exist. now_ns: rl_realtime_ns(). */
void rl_cache_prune(const char *path, int64_t now_ns);

#endif
