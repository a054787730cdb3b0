/* What workers keep in files because it takes long to make ($ROOFLINED_CACHE_DIR, which the daemon sets): compiled code and
 * counter plans. Here are its bounds; what was used longest ago, by the time of its last change, goes first. Thread-safe. */
#ifndef RL_BASE_CACHE_H
#define RL_BASE_CACHE_H

#include <stdint.h>

#define RL_CACHE_FOLDER "cache" /* of the state folder */

/* Remove what exceeds the bounds, and what killed processes left half written; files of other names stay. A folder that is not
 * there is empty. now_ns: rl_now_ns. */
void rl_cache_prune(const char *path, int64_t now_ns);

#endif
