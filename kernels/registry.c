/* Every workload there is. */
#include "ceilings/ceilings.h"
#include "kernel/kernel.h"
#include "train/model.h"

#define KERNEL(NAME) &rl_kernel_##NAME.workload,
const rl_workload *const rl_workloads[] = {&rl_mnist_cnn, &rl_ceilings, RL_KERNEL_FAMILIES(KERNEL) NULL};
