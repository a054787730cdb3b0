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
#include "base/text.h"
#include "device/cpu.h"
#include "device/device.h"

enum { MAX_THREADS = 1024 };

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
  if (*end || threads < 0 || threads > MAX_THREADS)
    return rl_fail(err, RL_INPUT, 0, "ROOFLINED_THREADS must be a whole number from 0 to %d", MAX_THREADS);
  return threads == 0 ? rl_cpu_cores() : (int)threads;
}

typedef struct cpu_properties {
  char name[128], isa[256], kernel[128], openblas[160], compiler[64], commit[48];
  char governor[32];    /* cpufreq governor; "": not known */
  double clock_max_khz; /* NAN: not known */
  int64_t cores, threads, memory_bytes;
  double cache_bytes;         /* private_cache_bytes and the L3 caches; NAN: not known */
  double private_cache_bytes; /* L1 and L2 data caches, one of each for every thread of `threads`; NAN: not known */
} cpu_properties;

static const rl_field cpu_properties_fields[] = {RL_FIELD(cpu_properties, name, RL_FIELD_TEXT),
                                                 RL_FIELD(cpu_properties, isa, RL_FIELD_TEXT),
                                                 RL_FIELD(cpu_properties, cores, RL_FIELD_INT),
                                                 RL_FIELD(cpu_properties, threads, RL_FIELD_INT),
                                                 RL_FIELD(cpu_properties, governor, RL_FIELD_TEXT),
                                                 RL_FIELD(cpu_properties, clock_max_khz, RL_FIELD_NULLABLE_REAL),
                                                 RL_FIELD(cpu_properties, memory_bytes, RL_FIELD_INT),
                                                 RL_FIELD(cpu_properties, kernel, RL_FIELD_TEXT),
                                                 RL_FIELD(cpu_properties, cache_bytes, RL_FIELD_NULLABLE_REAL),
                                                 RL_FIELD(cpu_properties, private_cache_bytes, RL_FIELD_NULLABLE_REAL),
                                                 RL_FIELD(cpu_properties, openblas, RL_FIELD_TEXT),
                                                 RL_FIELD(cpu_properties, compiler, RL_FIELD_TEXT),
                                                 RL_FIELD(cpu_properties, commit, RL_FIELD_TEXT),
                                                 {0}};

/* Copies the value of the first line of /proc/cpuinfo that starts with key; "" when no line does. */
static void cpuinfo_value(const char *key, char *value, size_t size) {
  value[0] = '\0';
  RL_CLEANUP(close_file) FILE *file = fopen("/proc/cpuinfo", "re");
  if (!file) return;
  RL_CLEANUP(rl_free_text) char *line = NULL;
  size_t capacity = 0;
  while (getline(&line, &capacity, file) > 0) {
    char *colon = strchr(line, ':');
    if (!colon || !rl_begins_with(line, key)) continue;
    colon += strspn(colon, ": \t");
    colon[strcspn(colon, "\n")] = '\0';
    snprintf(value, size, "%s", colon);
    return;
  }
}

/* Lists those of listed_extensions that this CPU has: extensions of the instruction set that matter for speed. */
static void list_isa(char *isa, size_t size) {
  static const char *const listed_extensions[] = {"avx2",     "fma",      "f16c",  "avx512f", "avx512_bf16", "avx512_fp16",
                                                  "amx_tile", "amx_bf16", "asimd", "asimdhp", "sve"};
  char flags[8192], padded[8200], word[24];
  cpuinfo_value("flags", flags, sizeof flags);
  if (!flags[0]) cpuinfo_value("Features", flags, sizeof flags);
  snprintf(padded, sizeof padded, " %s ", flags);
  size_t used = 0;
  isa[0] = '\0';
  for (size_t i = 0; i < sizeof listed_extensions / sizeof *listed_extensions; i++) {
    snprintf(word, sizeof word, " %s ", listed_extensions[i]);
    if (strstr(padded, word) && used < size)
      used += (size_t)snprintf(isa + used, size - used, "%s%s", used ? " " : "", listed_extensions[i]);
  }
}

/* Copies the first line of a file in core 0's cpufreq folder; "" when the file does not exist, as in virtual machines. */
static void cpufreq_value(const char *name, char *value, size_t size) {
  char path[96];
  value[0] = '\0';
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cpufreq/%s", name);
  RL_CLEANUP(close_file) FILE *file = fopen(path, "re");
  if (file && fgets(value, (int)size, file)) value[strcspn(value, "\n")] = '\0';
}

static void fill_clocks(cpu_properties *properties) {
  char maximum[32];
  cpufreq_value("scaling_governor", properties->governor, sizeof properties->governor);
  cpufreq_value("scaling_max_freq", maximum, sizeof maximum);
  properties->clock_max_khz = maximum[0] != '\0' ? strtod(maximum, NULL) : NAN;
}

static void fill_caches(cpu_properties *properties) {
  const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  bool known = l1 > 0 && l2 > 0 && l3 > 0;
  properties->private_cache_bytes = known ? (double)properties->threads * (double)(l1 + l2) : NAN;
  properties->cache_bytes = properties->private_cache_bytes + (double)l3;
}

char *rl_device_properties(int index, rl_error *err) {
  rl_error ignored;
  cpu_properties properties = {.cores = rl_cpu_cores(), .commit = RL_COMMIT, .compiler = __VERSION__};
  if (index != 0) {
    rl_fail(err, RL_INPUT, 0, "there is only one CPU device, \"cpu\"");
    return NULL;
  }
  int threads = rl_cpu_threads(&ignored);
  properties.threads = threads > 0 ? threads : properties.cores;
  properties.memory_bytes = (int64_t)rl_cpu_memory_bytes();
  fill_caches(&properties);
  fill_clocks(&properties);
  cpuinfo_value("model name", properties.name, sizeof properties.name);
  list_isa(properties.isa, sizeof properties.isa);
  struct utsname name;
  if (uname(&name) == 0) snprintf(properties.kernel, sizeof properties.kernel, "%s %s", name.sysname, name.release);
  snprintf(properties.openblas, sizeof properties.openblas, "%s", openblas_get_config());
  char *text = rl_fields_print(cpu_properties_fields, &properties);
  if (!text) rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the properties of the CPU");
  return text;
}
