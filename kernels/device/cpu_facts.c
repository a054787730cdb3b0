/* Properties of the CPU, as Linux and OpenBLAS report them. */
#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/commit.h"
#include "base/fields.h"
#include "device/cpu.h"
#include "device/device.h"

enum { THREADS_MAX = 1024 };

RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

size_t rl_cpu_memory_bytes(void) { return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE); }

int rl_cpu_cores(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

int rl_cpu_threads(rl_error *err) {
  const char *text = getenv("ROOFLINED_THREADS");
  if (!text || !*text) return rl_cpu_cores();
  char *end;
  long threads = strtol(text, &end, 10);
  if (*end || threads < 0 || threads > THREADS_MAX)
    return rl_fail(err, RL_INPUT, 0, "ROOFLINED_THREADS must be a whole number from 0 to %d", THREADS_MAX);
  return threads == 0 ? rl_cpu_cores() : (int)threads;
}

typedef struct cpu_facts {
  char name[128], isa[256], kernel[128], openblas[160], compiler[64], commit[48];
  char governor[32];    /* cpufreq governor; "": not known */
  double clock_max_khz; /* NAN: not known */
  int64_t cores, threads, memory_bytes;
  double cache_bytes;         /* all levels of all cores; NAN: not known */
  double private_cache_bytes; /* L1 and L2 data caches of all threads in use; NAN: not known */
} cpu_facts;

static const rl_field cpu_facts_fields[] = {
    RL_FIELD(cpu_facts, name, RL_FIELD_TEXT),           RL_FIELD(cpu_facts, isa, RL_FIELD_TEXT),
    RL_FIELD(cpu_facts, cores, RL_FIELD_INT),           RL_FIELD(cpu_facts, threads, RL_FIELD_INT),
    RL_FIELD(cpu_facts, governor, RL_FIELD_TEXT),       RL_FIELD(cpu_facts, clock_max_khz, RL_FIELD_MEASURE),
    RL_FIELD(cpu_facts, memory_bytes, RL_FIELD_INT),    RL_FIELD(cpu_facts, kernel, RL_FIELD_TEXT),
    RL_FIELD(cpu_facts, cache_bytes, RL_FIELD_MEASURE), RL_FIELD(cpu_facts, private_cache_bytes, RL_FIELD_MEASURE),
    RL_FIELD(cpu_facts, openblas, RL_FIELD_TEXT),       RL_FIELD(cpu_facts, compiler, RL_FIELD_TEXT),
    RL_FIELD(cpu_facts, commit, RL_FIELD_TEXT),         {0}};

/* Copies the value of the first line of /proc/cpuinfo that starts with key; "" when there is none. */
static void cpuinfo_value(const char *key, char *value, size_t size) {
  value[0] = '\0';
  rl_auto(close_file) FILE *file = fopen("/proc/cpuinfo", "re");
  if (!file) return;
  rl_auto(rl_free_text) char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, file) > 0) {
    char *colon = strchr(line, ':');
    if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
    colon += strspn(colon, ": \t");
    colon[strcspn(colon, "\n")] = '\0';
    snprintf(value, size, "%s", colon);
    return;
  }
}

/* Lists the instruction set extensions of this CPU that matter for speed. */
static void list_isa(char *isa, size_t size) {
  static const char *const wanted[] = {"avx2",     "fma",      "f16c",  "avx512f", "avx512_bf16", "avx512_fp16",
                                       "amx_tile", "amx_bf16", "asimd", "asimdhp", "sve"};
  char flags[8192], padded[8200], word[24];
  cpuinfo_value("flags", flags, sizeof flags);
  if (!flags[0]) cpuinfo_value("Features", flags, sizeof flags);
  snprintf(padded, sizeof padded, " %s ", flags);
  size_t used = 0;
  isa[0] = '\0';
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    snprintf(word, sizeof word, " %s ", wanted[i]);
    if (strstr(padded, word) && used < size)
      used += (size_t)snprintf(isa + used, size - used, "%s%s", used ? " " : "", wanted[i]);
  }
}

/* Reads a file of core 0's cpufreq folder; "" where there is none, as in virtual machines. */
static void scaling_value(const char *name, char *value, size_t size) {
  char path[96];
  value[0] = '\0';
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cpufreq/%s", name);
  rl_auto(close_file) FILE *file = fopen(path, "re");
  if (file && fgets(value, (int)size, file)) value[strcspn(value, "\n")] = '\0';
}

static void fill_clocks(cpu_facts *facts) {
  char maximum[32];
  scaling_value("scaling_governor", facts->governor, sizeof facts->governor);
  scaling_value("scaling_max_freq", maximum, sizeof maximum);
  facts->clock_max_khz = maximum[0] != '\0' ? strtod(maximum, NULL) : NAN;
}

static void fill_caches(cpu_facts *facts) {
  const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  bool known = l1 > 0 && l2 > 0 && l3 > 0;
  facts->private_cache_bytes = known ? (double)facts->threads * (double)(l1 + l2) : NAN;
  facts->cache_bytes = facts->private_cache_bytes + (double)l3;
}

char *rl_device_facts(int index, rl_error *err) {
  rl_error ignored;
  cpu_facts facts = {.cores = rl_cpu_cores(), .commit = RL_COMMIT, .compiler = __VERSION__};
  if (index != 0) {
    rl_fail(err, RL_INPUT, 0, "there is one CPU device, \"cpu\"");
    return NULL;
  }
  int threads = rl_cpu_threads(&ignored);
  facts.threads = threads > 0 ? threads : facts.cores;
  facts.memory_bytes = (int64_t)rl_cpu_memory_bytes();
  fill_caches(&facts);
  fill_clocks(&facts);
  cpuinfo_value("model name", facts.name, sizeof facts.name);
  list_isa(facts.isa, sizeof facts.isa);
  struct utsname name;
  if (uname(&name) == 0) snprintf(facts.kernel, sizeof facts.kernel, "%s %s", name.sysname, name.release);
  snprintf(facts.openblas, sizeof facts.openblas, "%s", openblas_get_config());
  char *text = rl_fields_print(cpu_facts_fields, &facts);
  if (!text) rl_fail(err, RL_SYS, ENOMEM, "out of memory for the facts of the CPU");
  return text;
}
