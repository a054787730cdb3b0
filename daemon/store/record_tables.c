#include "store/record_tables.h"

#define TABLE(NAME) .table = NAME, .statement = "insert_" NAME
const rl_record_table rl_record_tables[RL_RECORD_KINDS] = {
    [RL_RECORD_EPOCH] = {TABLE("epochs")},
    [RL_RECORD_SAMPLE] = {TABLE("samples")},
    [RL_RECORD_MEASUREMENT] = {TABLE("measurements")},
    [RL_RECORD_KERNEL] = {TABLE("kernels")},
    [RL_RECORD_PHASE] = {TABLE("phases"), .has_kernel_id = true},
    [RL_RECORD_INSTRUCTION] = {TABLE("instructions"), .has_kernel_id = true},
    [RL_RECORD_POINT] = {TABLE("series"), .has_kernel_id = true},
    [RL_RECORD_NAME] = {TABLE("names"), .numbered = true},
    [RL_RECORD_METRIC] = {TABLE("kernel_metrics"), .has_kernel_id = true},
    [RL_RECORD_ROW] = {TABLE("activity"), .numbered = true},
};
