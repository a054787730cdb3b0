/* The CPU as a device: launches are plain calls on the caller's thread, which share their work out themselves. */
#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/commit.h"
#include "base/fields.h"
#include "device.h"
#include "ranges.h"

RL_DEFINE_CLEANUP(free_bytes, unsigned char *, free, NULL)
RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

enum { ALIGNMENT = 256, THREADS_MAX = 1024 };

typedef struct block { /* in the ALIGNMENT bytes below what allocate hands out */
  size_t bytes;
  rl_purpose purpose;
} block;

struct rl_plan {
  const rl_program *program;
};

/* ---- memory ---------------------------------------------------------------------------------------------------------- */

static size_t machine_bytes(void) { return (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE); }

/* More than the machine has is refused here: the system would grant it, and kill someone once it is touched. */
static int cpu_allocate(rl_device *device, rl_purpose purpose, size_t bytes, void **memory, rl_error *err) {
  unsigned char *base = NULL;
  if (bytes <= machine_bytes()) base = aligned_alloc(ALIGNMENT, (bytes + 2 * ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  if (!base)
    return rl_fail(err, RL_SYS, ENOMEM, "out of memory: %zu bytes for %s", bytes, rl_purpose_names[purpose]);
  *(block *)base = (block){.bytes = bytes, .purpose = purpose};
  rl_memory_add(&device->memory, purpose, bytes);
  *memory = base + ALIGNMENT;
  return 0;
}

static void cpu_release(rl_device *device, void *memory) {
  if (!memory) return;
  block *base = (block *)((unsigned char *)memory - ALIGNMENT);
  rl_memory_remove(&device->memory, base->purpose, base->bytes);
  free(base);
}

static int cpu_upload(rl_device *device, void *to, const void *from_host, size_t bytes, rl_error *err) {
  (void)device, (void)err;
  memcpy(to, from_host, bytes);
  return 0;
}

static int cpu_download(rl_device *device, void *to_host, const void *from, size_t bytes, rl_error *err) {
  (void)device, (void)err;
  memcpy(to_host, from, bytes);
  return 0;
}

static int cpu_clear(rl_device *device, void *memory, size_t bytes, rl_error *err) {
  (void)device, (void)err;
  memset(memory, 0, bytes);
  return 0;
}

/* ---- running --------------------------------------------------------------------------------------------------------- */

static int cpu_plan(rl_device *device, const rl_program *program, rl_plan **plan, rl_error *err) {
  (void)device;
  rl_plan *made = malloc(sizeof *made);
  if (!made) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for a plan");
  made->program = program;
  *plan = made;
  return 0;
}

static void cpu_plan_free(rl_device *device, rl_plan *plan) {
  (void)device;
  free(plan);
}

static int check_cancelled(const rl_observer *observer, rl_error *err) {
  if (observer && observer->cancelled && observer->cancelled(observer->context))
    return rl_fail(err, RL_SYS, ECANCELED, "cancelled");
  return 0;
}

static int launch_one(const rl_launch *launch, const rl_observer *observer, rl_error *err) {
  if (check_cancelled(observer, err)) return -1;
  rl_span span = {.launch = launch, .start_ns = rl_monotonic_ns()};
  rl_range_push(launch->name);
  int rc = launch->enqueue(launch->arg, NULL, err);
  rl_range_pop();
  if (rc) return rl_wrap(err, "%s", launch->name);
  span.end_ns = rl_monotonic_ns();
  if (observer && observer->span) observer->span(observer->context, &span);
  return 0;
}

static int put_back(const rl_sequence *sequence, rl_error *err) {
  const rl_launch *restore = sequence->restore;
  return restore && restore->enqueue(restore->arg, NULL, err) ? rl_wrap(err, "%s", restore->name) : 0;
}

static int run_sequences(const rl_program *program, const rl_observer *observer, uint64_t *launches, rl_error *err) {
  uint64_t done = 0, of = 0;
  for (size_t s = 0; s < program->sequence_count; s++) of += program->sequences[s].repeat;
  for (size_t s = 0; s < program->sequence_count; s++) {
    const rl_sequence *sequence = &program->sequences[s];
    for (uint64_t r = 0; r < sequence->repeat; r++) {
      const char *phase = NULL;
      int rc = put_back(sequence, err);
      for (size_t l = 0; l < sequence->launch_count && !rc; l++) {
        const rl_launch *launch = &sequence->launches[l];
        if (!phase || strcmp(phase, launch->range) != 0) {
          if (phase) rl_range_pop();
          rl_range_push(phase = launch->range);
        }
        rc = launch_one(launch, observer, err);
        if (!rc) ++*launches;
      }
      if (phase) rl_range_pop();
      if (rc) return -1;
      done++;
      if (observer && observer->advanced) observer->advanced(observer->context, done, of);
    }
  }
  return 0;
}

static int cpu_run_eager(rl_device *device, const rl_program *program, const rl_observer *observer, rl_elapsed *elapsed,
                         rl_error *err) {
  (void)device;
  uint64_t launches = 0;
  int64_t start = rl_monotonic_ns();
  rl_range_push(program->name);
  int rc = run_sequences(program, observer, &launches, err);
  rl_range_pop();
  if (rc) return -1;
  double host_ms = (double)(rl_monotonic_ns() - start) * 1e-6;
  *elapsed = (rl_elapsed){.device_ms = host_ms, .host_ms = host_ms, .launches = launches};
  return 0;
}

static int cpu_run(rl_device *device, rl_plan *plan, const rl_observer *observer, rl_elapsed *elapsed, rl_error *err) {
  return cpu_run_eager(device, plan->program, observer, elapsed, err);
}

/* ---- samples --------------------------------------------------------------------------------------------------------- */

/* Twice the last cache, where the system says how large that is. */
static size_t flush_bytes(void) {
  const size_t least = (size_t)64 << 20, most = (size_t)512 << 20;
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  size_t bytes = cache > 0 ? 2 * (size_t)cache : least;
  return bytes < least ? least : bytes > most ? most : bytes;
}

static void flush(const volatile unsigned char *memory, size_t bytes) {
  enum { LINE = 64 };
  for (size_t at = 0; at < bytes; at += LINE) (void)memory[at];
}

/* ns for `times` repeats, of which none but the first may need what has to be restored, or -1. */
static int64_t time_repeats(const rl_sequence *sequence, int64_t times, rl_error *err) {
  int64_t start = rl_monotonic_ns();
  for (int64_t time = 0; time < times; time++)
    for (size_t l = 0; l < sequence->launch_count; l++)
      if (sequence->launches[l].enqueue(sequence->launches[l].arg, NULL, err))
        return rl_wrap(err, "%s", sequence->launches[l].name);
  return rl_monotonic_ns() - start;
}

static int cpu_sample(rl_device *device, const rl_sequence *sequence, rl_cache cache, uint32_t count, const rl_observer *observer,
                      double *device_us, rl_error *err) {
  enum { WARM_NS = 200000, REPEATS_MOST = 1000 };
  (void)device;
  rl_auto(free_bytes) unsigned char *other = NULL;
  const size_t bytes = flush_bytes();
  int64_t once = put_back(sequence, err) ? -1 : time_repeats(sequence, 1, err), times = 1;
  if (once < 0) return -1;
  if (cache == RL_CACHE_WARM && !sequence->restore && once < WARM_NS)
    times = once > WARM_NS / REPEATS_MOST ? WARM_NS / once + 1 : REPEATS_MOST;
  if (cache == RL_CACHE_COLD) {
    other = malloc(bytes);
    if (!other) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for emptying the caches");
    memset(other, 1, bytes); /* or all pages were one page of zeros */
  }
  for (uint32_t i = 0; i < count; i++) {
    if (check_cancelled(observer, err) || put_back(sequence, err)) return -1;
    if (other) flush(other, bytes);
    int64_t took = time_repeats(sequence, times, err);
    if (took < 0) return -1;
    device_us[i] = (double)took * 1e-3 / (double)times;
  }
  return 0;
}

static void cpu_close(rl_device *device) { free(device); }

static const rl_device_ops cpu_ops = {
    .allocate = cpu_allocate, .release = cpu_release, .upload = cpu_upload, .download = cpu_download, .clear = cpu_clear,
    .plan = cpu_plan, .plan_free = cpu_plan_free, .run = cpu_run, .run_eager = cpu_run_eager, .close = cpu_close,
    .sample = cpu_sample};

/* ---- the machine ----------------------------------------------------------------------------------------------------- */

static int cores_usable(void) {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* ROOFLINED_THREADS; 0 or unset: every core that this process may use; -1 when the variable is no such number. */
static int threads_wanted(rl_error *err) {
  const char *text = getenv("ROOFLINED_THREADS");
  if (!text || !*text) return cores_usable();
  char *end;
  long threads = strtol(text, &end, 10);
  if (*end || threads < 0 || threads > THREADS_MAX)
    return rl_fail(err, RL_INPUT, 0, "ROOFLINED_THREADS must be a whole number from 0 to %d", THREADS_MAX);
  return threads == 0 ? cores_usable() : (int)threads;
}

rl_device *rl_device_open(int index, rl_error *err) {
  if (index != 0) {
    rl_fail(err, RL_INPUT, 0, "there is one CPU device, \"cpu\"");
    return NULL;
  }
  int threads = threads_wanted(err);
  if (threads < 0) return NULL;
  rl_device *device = calloc(1, sizeof *device);
  if (!device) {
    rl_fail(err, RL_SYS, ENOMEM, "out of memory for the device");
    return NULL;
  }
  *device = (rl_device){.ops = &cpu_ops, .kind = RL_DEVICE_CPU, .id = "cpu", .threads = threads};
  openblas_set_num_threads(threads);
  return device;
}

int rl_device_count(rl_error *err) {
  (void)err;
  return 1;
}

typedef struct cpu_facts {
  char name[128], isa[256], kernel[128], openblas[160], compiler[64], commit[48];
  char governor[32];     /* what its clocks follow; "": the system does not say */
  double clock_max_khz;  /* NAN: the same */
  int64_t cores, threads, memory_bytes;
  double cache_bytes, private_cache_bytes; /* of all levels together, and of those that a core has for itself; NAN: not known */
} cpu_facts;

static const rl_field cpu_facts_fields[] = {
    RL_FIELD(cpu_facts, name, RL_FIELD_TEXT),           RL_FIELD(cpu_facts, isa, RL_FIELD_TEXT),
    RL_FIELD(cpu_facts, cores, RL_FIELD_INT),           RL_FIELD(cpu_facts, threads, RL_FIELD_INT),
    RL_FIELD(cpu_facts, governor, RL_FIELD_TEXT),       RL_FIELD(cpu_facts, clock_max_khz, RL_FIELD_MEASURE),
    RL_FIELD(cpu_facts, memory_bytes, RL_FIELD_INT),    RL_FIELD(cpu_facts, kernel, RL_FIELD_TEXT),
    RL_FIELD(cpu_facts, cache_bytes, RL_FIELD_MEASURE), RL_FIELD(cpu_facts, private_cache_bytes, RL_FIELD_MEASURE),
    RL_FIELD(cpu_facts, openblas, RL_FIELD_TEXT),       RL_FIELD(cpu_facts, compiler, RL_FIELD_TEXT),
    RL_FIELD(cpu_facts, commit, RL_FIELD_TEXT),         {0}};

/* The first line of /proc/cpuinfo that starts with key, from its value on; "" when there is none. */
static void cpuinfo_value(const char *key, char *value, size_t size) {
  value[0] = '\0';
  rl_auto(close_file) FILE *file = fopen("/proc/cpuinfo", "re");
  if (!file) return;
  rl_auto(rl_free_text) char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, file) > 0) {
    char *colon = strchr(line, ':');
    if (!colon || strncmp(line, key, strlen(key)) != 0) continue;
    colon += strspn(colon, ": \t");
    colon[strcspn(colon, "\n")] = '\0';
    snprintf(value, size, "%s", colon);
    return;
  }
}

/* The instruction sets that decide how fast an engine can be, of those that this machine has. */
static void list_isa(char *isa, size_t size) {
  static const char *const wanted[] = {"avx2", "fma", "f16c", "avx512f", "avx512_bf16", "avx512_fp16", "amx_tile",
                                       "amx_bf16", "asimd", "asimdhp", "sve"};
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

/* A file of the first core's frequency scaling, which virtual machines do not have. */
static void scaling_value(const char *name, char *value, size_t size) {
  char path[96];
  value[0] = '\0';
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cpufreq/%s", name);
  rl_auto(close_file) FILE *file = fopen(path, "re");
  if (file && fgets(value, (int)size, file)) value[strcspn(value, "\n")] = '\0';
}

static void fill_clocks(cpu_facts *facts) {
  char most[32];
  scaling_value("scaling_governor", facts->governor, sizeof facts->governor);
  scaling_value("scaling_max_freq", most, sizeof most);
  facts->clock_max_khz = most[0] != '\0' ? strtod(most, NULL) : NAN;
}

static void fill_caches(cpu_facts *facts) {
  const long first = sysconf(_SC_LEVEL1_DCACHE_SIZE), second = sysconf(_SC_LEVEL2_CACHE_SIZE),
             third = sysconf(_SC_LEVEL3_CACHE_SIZE);
  bool known = first > 0 && second > 0 && third > 0;
  facts->private_cache_bytes = known ? (double)facts->threads * (double)(first + second) : NAN;
  facts->cache_bytes = facts->private_cache_bytes + (double)third;
}

char *rl_device_facts(int index, rl_error *err) {
  rl_error ignored;
  cpu_facts facts = {.cores = cores_usable(), .commit = RL_COMMIT, .compiler = __VERSION__};
  if (index != 0) {
    rl_fail(err, RL_INPUT, 0, "there is one CPU device, \"cpu\"");
    return NULL;
  }
  int threads = threads_wanted(&ignored);
  facts.threads = threads > 0 ? threads : facts.cores;
  facts.memory_bytes = (int64_t)machine_bytes();
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
