/* Implements processor_times.h. */
#include "worker/processor_times.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

enum { MAX_LINE_BYTES = 512 };

/* Parses the line of a processor: "cpu3 user nice system idle iowait irq softirq steal ...", in ticks. Guests' time is part of
 * user and nice. Returns false for the line of all processors, and for other lines. */
static bool parse_processor(const char *line, int *processor, double *busy_ticks, double *idle_ticks) {
  double user, nice, system, idle, iowait, irq, softirq, steal;
  if (sscanf(line, "cpu%d %lf %lf %lf %lf %lf %lf %lf %lf", processor, &user, &nice, &system, &idle, &iowait, &irq, &softirq,
             &steal) != 9)
    return false;
  *busy_ticks = user + nice + system + irq + softirq + steal;
  *idle_ticks = idle + iowait;
  return true;
}

static double own_cpu_s(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int rl_processor_times_read(const char *path, rl_processor_times *times, rl_error *err) {
  cpu_set_t usable;
  char line[MAX_LINE_BYTES];
  const double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
  double busy_ticks = 0, idle_ticks = 0;
  int found = 0;
  if (sched_getaffinity(0, sizeof usable, &usable) < 0) return rl_fail(err, RL_ERRNO, errno, "can't read the usable processors");
  RL_CLEANUP(close_file) FILE *file = fopen(path, "re");
  if (!file) return rl_fail(err, RL_ERRNO, errno, "can't read %s", path);
  while (fgets(line, sizeof line, file)) {
    int processor;
    double busy, idle;
    if (!parse_processor(line, &processor, &busy, &idle) || processor >= CPU_SETSIZE || !CPU_ISSET(processor, &usable)) continue;
    busy_ticks += busy, idle_ticks += idle, found++;
  }
  if (found < CPU_COUNT(&usable))
    return rl_fail(err, RL_ERRNO, ENODATA, "%s lists %d of the %d processors that the worker may use", path, found,
                   CPU_COUNT(&usable));
  times->processors = found;
  times->elapsed_s = (busy_ticks + idle_ticks) * tick_s;
  times->other_processes_s = busy_ticks * tick_s - own_cpu_s();
  return 0;
}

double rl_processor_times_other_ratio(const rl_processor_times *before, const rl_processor_times *after) {
  const double elapsed_s = after->elapsed_s - before->elapsed_s;
  if (!(elapsed_s > 0)) return NAN;
  /* The kernel may round the busy time to ticks, so the difference from our precise CPU time can be slightly below 0. */
  return fmin(1, fmax(0, (after->other_processes_s - before->other_processes_s) / elapsed_s));
}
