/* Implements record_tables.h. */
#include "store/record_tables.h"

#define TABLE(NAME, OWNER) .table = NAME, .statement = "insert_" NAME, .owner_column = OWNER
const rl_record_table rl_record_tables[RL_RECORD_KIND_COUNT] = {
    [RL_RECORD_EPOCH] = {TABLE("epochs", "pass_id")},
    [RL_RECORD_SAMPLE] = {TABLE("samples", "pass_id")},
    [RL_RECORD_MEASUREMENT] = {TABLE("measurements", "pass_id")},
    [RL_RECORD_KERNEL] = {TABLE("kernels", "stored_for")},
    [RL_RECORD_PHASE] = {TABLE("phases", "kernel_id")},
    [RL_RECORD_INSTRUCTION] = {TABLE("instructions", "kernel_id")},
    [RL_RECORD_POINT] = {TABLE("series", "kernel_id")},
    [RL_RECORD_METRIC] = {TABLE("kernel_metrics", "kernel_id")},
    /* activity.c stores RL_RECORD_NAME and RL_RECORD_ROW */
};
