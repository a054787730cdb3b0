/* Finds operations whose API call is ambiguous. Correlation ids are unique only within a process, and operations in Kineto's
 * files name no process, so that a file merged from several processes can contain several calls with one id. */
#ifndef RL_IMPORT_AMBIGUOUS_CALLS_H
#define RL_IMPORT_AMBIGUOUS_CALLS_H

#include "model/records.h"

/* Clears the correlation id of each operation whose id calls of more than one process have, so that the operation has no launch
 * call. Sets *operation_count to the number of these operations. Fails with RL_ERRNO if memory is exhausted. */
int rl_ambiguous_calls_unlink(rl_records *records, int64_t *operation_count, rl_error *err);

#endif
