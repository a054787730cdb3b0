/* The table of all workloads. */
#include "ceilings/ceilings.h"
#include "kernel/sequence.h"
#include "layer/layer.h"
#include "source/source.h"
#include "train/model.h"

#define KERNEL(NAME) &rl_kernel_##NAME.workload,
const rl_workload *const rl_workloads[] = {
    &rl_mnist_cnn, &rl_ceilings, &rl_kernel_sequence, &rl_transformer_layer, RL_KERNEL_OPERATORS(KERNEL) & rl_source_workload,
    NULL};
