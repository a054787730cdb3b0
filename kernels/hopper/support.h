/* Which devices run the kernels for Hopper. */
#ifndef RL_HOPPER_SUPPORT_H
#define RL_HOPPER_SUPPORT_H

#include "device/device.h"

/* Returns whether the device runs machine code for sm_90a, the only target with wgmma, and this build has it. */
bool rl_hopper_has_wgmma(const rl_device *device);

#endif
