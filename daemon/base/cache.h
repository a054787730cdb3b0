/* Bounds of the workers' cache of compiled code and counter plans in files ($ROOFLINED_CACHE_DIR, set by the daemon). Least
 * recently used first, by modification time. Thread-safe. */
#ifndef RL_BASE_CACHE_H
#define RL_BASE_CACHE_H

#include <stdint.h>

#define RL_CACHE_FOLDER "cache" /* in the state folder */

/* Removes files beyond the bounds and incomplete files of killed processes; other files stay. A missing folder is empty. now_ns:
 * rl_now_ns. */
void rl_cache_prune(const char *path, int64_t now_ns);

#endif
