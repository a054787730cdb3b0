/* Stores the results that the last daemon has left in spill files because it could not write the database. */
#ifndef RL_RECOVERY_H
#define RL_RECOVERY_H

#include "store/store.h"

/* Commits the passes of the folder's spill files, then empties the files. Must be called before rl_queue_open, which would queue
 * these passes again. Also empties a damaged file, whose pass then runs again. Fails with RL_STORAGE if the database still does
 * not accept the results. */
int rl_recover_spilled_passes(const char *folder, rl_store *store, rl_error *err);

#endif
