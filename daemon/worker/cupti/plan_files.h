/* Loads counter plans from files, because making a plan takes up to seconds. Plans of the shipped metric sets come with the
 * build (share/rooflined/counter-plans, made by make_counter_plans); others are saved in $ROOFLINED_CACHE_DIR. A file's name is
 * a hash of the chip, the version of CUPTI and the names of the counters. The hash does not include the driver's version,
 * because CUPTI makes the same plan with any driver and without one. */
#ifndef RL_CUPTI_PLAN_FILES_H
#define RL_CUPTI_PLAN_FILES_H

#include "worker/cupti/counter_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RL_SHIPPED_PLANS_FOLDER "share/rooflined/counter-plans" /* beside the programs' folder; has a folder for each chip */

/* Loads the plan from the shipped plans or from the cache; if neither has it, makes the plan and saves it in the cache. The
 * strings of names must outlive the plan. */
int rl_plan_files_open(const char *chip, const char *const *names, size_t count, rl_counter_plan **plan, rl_error *err);
/* Saves a plan in an existing folder. */
int rl_plan_files_save(const char *folder, const char *chip, const char *const *names, const rl_counter_plan *plan,
                       rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
