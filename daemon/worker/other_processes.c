/* Implements other_processes.h: merges the readings before and after the pass by process. */
#include "worker/other_processes.h"

#include <math.h>
#include <stdio.h>

static double number_of(const rl_other_processes *processes) { return processes->reason[0] ? NAN : (double)processes->count; }

static const rl_other_process *find_process(const rl_other_processes *processes, unsigned pid) {
  for (size_t i = 0; i < processes->count; i++)
    if (processes->items[i].pid == pid) return &processes->items[i];
  return NULL;
}

static int add_process(rl_pass_context *pass, unsigned pid, double memory_bytes, rl_error *err) {
  char name[RL_NAME_SIZE];
  snprintf(name, sizeof name, "other_process_%u_memory_bytes", pid);
  return rl_pass_add_measurement(pass, name, memory_bytes, "NVML does not know the process's memory", err);
}

static int add_cpu_time(rl_pass_context *pass, const rl_other_processes *before, const rl_other_processes *after, rl_error *err) {
  const char *reason = before->processor_times_reason[0] ? before->processor_times_reason : after->processor_times_reason;
  double ratio = reason[0] ? NAN : rl_processor_times_other_ratio(&before->processor_times, &after->processor_times);
  if (!reason[0]) reason = "the times of the processors in /proc/stat have not advanced";
  const rl_named_value times[] = {{"other_processes_cpu_time_ratio", ratio, reason},
                                  {"other_processes_busy_processors", ratio * after->processor_times.processors, reason}};
  return rl_pass_add_measurements(pass, times, sizeof times / sizeof *times, err);
}

int rl_other_processes_add_measurements(rl_pass_context *pass, const rl_other_processes *before, const rl_other_processes *after,
                                        rl_error *err) {
  const rl_named_value counts[] = {{"other_processes_before", number_of(before), before->reason},
                                   {"other_processes_after", number_of(after), after->reason}};
  if (rl_pass_add_measurements(pass, counts, sizeof counts / sizeof *counts, err) < 0 ||
      add_cpu_time(pass, before, after, err) < 0)
    return -1;
  for (size_t i = 0; i < before->count; i++) {
    const rl_other_process *later = find_process(after, before->items[i].pid);
    double memory_bytes = later ? fmax(before->items[i].memory_bytes, later->memory_bytes) : before->items[i].memory_bytes;
    if (add_process(pass, before->items[i].pid, memory_bytes, err) < 0) return -1;
  }
  for (size_t i = 0; i < after->count; i++)
    if (!find_process(before, after->items[i].pid) &&
        add_process(pass, after->items[i].pid, after->items[i].memory_bytes, err) < 0)
      return -1;
  return 0;
}
