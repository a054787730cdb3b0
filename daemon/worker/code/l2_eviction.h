/* Finds out from the SASS of GH100 whether a kernel's requests to L2 may have an eviction policy other than evict_normal. */
#ifndef RL_CODE_L2_EVICTION_H
#define RL_CODE_L2_EVICTION_H

#include "worker/code/disassembly.h"

/* Returns whether an instruction of the function may access L2 with another eviction policy than evict_normal. Returns false only
 * if each access is known to have this policy, unless the stream or the launch has an access policy window. The function must
 * not call or jump to other code. */
bool rl_may_change_l2_eviction(const rl_disassembly *function);

#endif
