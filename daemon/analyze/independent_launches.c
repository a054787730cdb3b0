/* Adds up the kernels of each launch, then collects successive launches that are independent and do not fill the device. */
#include "analyze/independent_launches.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WARP_THREADS = 32 };

double rl_multiprocessor_threads(const char *compute_capability) {
  static const struct {
    const char *capability;
    double threads;
  } known[] = {{"7.5", 1024}, {"8.0", 2048}, {"8.6", 1536},  {"8.7", 1536},
               {"8.9", 1536}, {"9.0", 2048}, {"10.0", 2048}, {"12.0", 1536}};
  for (size_t i = 0; compute_capability != NULL && i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].capability, compute_capability) == 0) return known[i].threads;
  return NAN;
}

/* Returns how many blocks of the kernel the device holds at once; NAN: unknown. */
static double resident_blocks(const rl_traced_kernel *kernel, const rl_device_capacity *capacity) {
  const double block_warps = ceil(kernel->block_threads / WARP_THREADS);
  const double resident_warps = kernel->occupancy_ratio * capacity->multiprocessor_threads / WARP_THREADS;
  return round(resident_warps / block_warps) * capacity->multiprocessors;
}

/* Returns the launch of this name, which is added if the step does not have it yet; NULL: there are too many. */
static rl_step_launch *launch_named(rl_independent_launches *found, const char *name) {
  for (size_t i = 0; i < found->launch_count; i++)
    if (strcmp(found->launches[i].name, name) == 0) return &found->launches[i];
  if (found->launch_count == RL_MAX_STEP_LAUNCHES) return NULL;
  rl_step_launch *launch = &found->launches[found->launch_count++];
  *launch = (rl_step_launch){.name = name};
  return launch;
}

#define FAIL(...) (snprintf(found->reason, sizeof found->reason, __VA_ARGS__), false)

/* Adds a kernel to its launch. Until all are added, longest_us[i] is the longest time of a kernel of launch i, and device_ratio
 * is the sum of the kernels' times multiplied by their shares of the device. Returns false with a reason if that is impossible.
 */
static bool add_kernel(rl_independent_launches *found, const rl_traced_kernel *kernel, const rl_device_capacity *capacity,
                       double longest_us[RL_MAX_STEP_LAUNCHES]) {
  if (kernel->launch[0] == '\0') return FAIL("it is unknown which launch executes the kernel %.64s", kernel->name);
  rl_step_launch *launch = launch_named(found, kernel->launch);
  if (launch == NULL) return FAIL("the step has more than %d launches", RL_MAX_STEP_LAUNCHES);
  const double resident = resident_blocks(kernel, capacity);
  if (!(resident > 0)) return FAIL("the occupancy of the kernel %.64s is unknown", kernel->name);
  found->steps = fmin(found->steps, kernel->executions);
  launch->total_us += kernel->total_us;
  launch->device_ratio += kernel->total_us * fmin(1, kernel->blocks / resident);
  double *longest = &longest_us[launch - found->launches];
  if (kernel->total_us < *longest) return true;
  *longest = kernel->total_us;
  launch->kernel = kernel->name;
  launch->blocks = kernel->blocks;
  launch->resident_blocks = resident;
  return true;
}

static bool depends(const rl_launch_data *earlier, const rl_launch_data *later) {
  return (earlier->writes & (later->reads | later->writes)) != 0 || (earlier->reads & later->writes) != 0;
}

/* Returns the end of the group that begins with launch `first`: the first launch after it that fills the device or depends on one
 * of the group. */
static size_t end_of_group(const rl_independent_launches *found, size_t first) {
  size_t end = first;
  for (; end < found->launch_count && !found->launches[end].fills_device; end++)
    for (size_t i = first; i < end; i++)
      if (depends(&found->launches[i].data, &found->launches[end].data)) return end;
  return end;
}

static rl_launch_group group_of(const rl_independent_launches *found, size_t first, size_t count) {
  rl_launch_group group = {.first = first, .count = count};
  for (size_t i = first; i < first + count; i++) {
    const rl_step_launch *launch = &found->launches[i];
    group.total_us += launch->total_us;
    group.concurrent_us = fmax(group.concurrent_us, launch->total_us);
    group.device_us += launch->total_us * launch->device_ratio;
    group.memory_us += launch->total_us * launch->memory_ratio;
  }
  group.concurrent_us = fmax(group.concurrent_us, fmax(group.device_us, group.memory_us));
  return group;
}

static void find_groups(rl_independent_launches *found) {
  for (size_t first = 0, end; first < found->launch_count; first = end) {
    end = end_of_group(found, first);
    if (end - first >= 2) {
      const rl_launch_group group = group_of(found, first, end - first);
      if (group.concurrent_us <= (1 - RL_MIN_GROUP_SAVING_RATIO) * group.total_us) found->groups[found->group_count++] = group;
    }
    if (end == first) end++;
  }
}

/* Adds the declared data to each launch. Returns false with a reason if a launch declares none. */
static bool add_data(rl_independent_launches *found, const rl_workload *workload, const void *params, double read_bytes_per_s) {
  for (size_t i = 0; i < found->launch_count; i++) {
    rl_step_launch *launch = &found->launches[i];
    if (!workload->launch_data(params, launch->name, &launch->data))
      return FAIL("the launch %s does not declare which data it reads and writes", launch->name);
    launch->device_ratio /= launch->total_us;
    launch->memory_ratio = launch->data.bytes * found->steps / (launch->total_us * 1e-6) / read_bytes_per_s;
    launch->fills_device = !(launch->device_ratio < RL_FILLED_DEVICE_RATIO) || !(launch->memory_ratio < RL_FILLED_MEMORY_RATIO);
  }
  return true;
}

/* Adds each kernel to its launch. Returns false with a reason if the workload declares no data, or if a property of the device or
 * of a kernel is unknown. */
static bool add_launches(rl_independent_launches *found, const rl_traced_kernel *kernels, size_t count,
                         const rl_workload *workload, const rl_device_capacity *capacity) {
  double longest_us[RL_MAX_STEP_LAUNCHES] = {0};
  if (workload->launch_data == NULL)
    return FAIL("launches of the workload %s do not declare which data they read and write", workload->name);
  if (!(capacity->read_bytes_per_s > 0))
    return FAIL("the rate of this device's memory was not measured before the run; run a job of the kind ceilings");
  if (!(capacity->multiprocessors > 0) || !(capacity->multiprocessor_threads > 0))
    return FAIL("the number of threads on a multiprocessor of this device is unknown");
  for (size_t i = 0; i < count; i++)
    if (!add_kernel(found, &kernels[i], capacity, longest_us)) return false;
  return true;
}

void rl_independent_launches_find(const rl_traced_kernel *kernels, size_t count, const rl_workload *workload, const void *params,
                                  const rl_device_capacity *capacity, rl_independent_launches *found) {
  *found = (rl_independent_launches){.steps = INFINITY};
  if (add_launches(found, kernels, count, workload, capacity) && add_data(found, workload, params, capacity->read_bytes_per_s))
    find_groups(found);
  if (found->reason[0] != '\0') found->launch_count = 0;
}

static double saving_us(const rl_launch_group *group) { return group->total_us - group->concurrent_us; }

const rl_launch_group *rl_independent_launches_largest(const rl_independent_launches *found) {
  const rl_launch_group *largest = NULL;
  for (const rl_launch_group *group = found->groups; group < found->groups + found->group_count; group++)
    if (largest == NULL || saving_us(group) > saving_us(largest)) largest = group;
  return largest;
}

size_t rl_independent_metrics(const rl_independent_launches *found, int64_t window_ns,
                              rl_metric_value metrics[RL_INDEPENDENT_METRIC_COUNT]) {
  static const char none[] = "no successive launches are independent and leave the device unfilled",
                    empty[] = "the window is empty";
  const rl_launch_group *group = rl_independent_launches_largest(found);
  const bool is_unknown = found->reason[0] != '\0';
  const char *reason = is_unknown ? found->reason : group == NULL ? none : NULL;
  const double total_us = group != NULL ? group->total_us : 0;
  const double window_pct = window_ns > 0 ? 1e5 * total_us / (double)window_ns : NAN;
  const rl_metric_value values[RL_INDEPENDENT_METRIC_COUNT] = {
      {"timeline__independent_blocks_pct", group != NULL ? 100 * group->device_us / total_us : NAN, reason},
      {"timeline__independent_launches", group != NULL ? (double)group->count : NAN, reason},
      {"timeline__independent_memory_pct", group != NULL ? 100 * group->memory_us / total_us : NAN, reason},
      {"timeline__independent_pct", group != NULL ? window_pct : NAN, group != NULL && window_ns <= 0 ? empty : reason},
      {"timeline__independent_saving_pct", group != NULL ? 100 * saving_us(group) / total_us : NAN, reason}};
  memcpy(metrics, values, sizeof values);
  return RL_INDEPENDENT_METRIC_COUNT;
}
