/* Every workload there is. */
#include "train/model.h"

const rl_workload *const rl_workloads[] = {&rl_mnist_cnn, NULL};
