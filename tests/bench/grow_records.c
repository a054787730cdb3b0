#include "grow_records.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/catalogue.h"

enum { EPOCHS = 3, SAMPLES = 16, KERNELS = 4, INSTRUCTIONS = 96, POINTS = 64, ROWS_IN_STEP = 24, ROW_NS = 900 };

/* --- numbers ----------------------------------------------------------------------------------------------------------- */

/* The generator is SplitMix64. */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/* Returns a number from `value` to 1.05 `value`. */
static double jitter(uint64_t *state, double value) { return value * (1 + 0.05 * (double)(next_random(state) >> 11) * 0x1p-53); }

static double speed_of(const char *variant) {
  if (strcmp(variant, "fp16") == 0) return 2.5;
  return strcmp(variant, "tf32") == 0 ? 1.6 : 1;
}

/* --- timing ------------------------------------------------------------------------------------------------------------ */

static void fill_metadata(const record_plan *plan, rl_run_metadata *metadata) {
  bool on_cpu = strcmp(plan->device, "cpu") == 0, trains = strcmp(plan->claim->run.workload, "mnist_cnn") == 0;
  *metadata = (rl_run_metadata){.deterministic = true,
                                .images_per_epoch = trains ? 60000 : 0,
                                .steps_per_epoch = trains ? 938 : 0,
                                .parameters = trains ? 315146 : 0,
                                .floor_operations = 1e9,
                                .floor_bytes = 1e7,
                                .floor_written_bytes = 1e6};
  strcpy(metadata->engine, on_cpu ? "blas" : "persistent");
  strcpy(metadata->dataset, trains ? "mnist" : "");
  strcpy(metadata->floor_precision, "fp32");
  strcpy(metadata->commit, "0123456789ab");
  if (on_cpu)
    strcpy(metadata->device_properties,
           "{\"name\":\"Bench CPU\",\"threads\":2,\"cache_bytes\":40000000,\"private_cache_bytes\":1000000}");
  else
    snprintf(metadata->device_properties, sizeof metadata->device_properties,
             "{\"name\":\"Bench GPU\",\"uuid\":\"GPU-%s\",\"driver\":\"570.86\",\"compute_capability\":\"9.0\","
             "\"sm_clock_max_khz\":1980000,\"memory_clock_max_khz\":3201000,\"l2_bytes\":62914560}",
             plan->device);
}

static int add_epochs(const record_plan *plan, uint64_t *state, rl_records *records, rl_error *err) {
  double epoch_ms = 180 / speed_of(plan->claim->run.variant);
  bool on_cpu = strcmp(plan->device, "cpu") == 0;
  for (int i = 0; i < EPOCHS; i++) {
    rl_epoch epoch = {.epoch = i,
                      .warmup = i == 0,
                      .device_ms = jitter(state, epoch_ms),
                      .evaluation_ms = jitter(state, 9),
                      .images = 60000,
                      .train_loss = jitter(state, 0.12),
                      .test_loss = jitter(state, 0.05),
                      .test_accuracy_ratio = 0.985 + 0.001 * i,
                      .loss_scale = NAN,
                      .skipped_steps = 0,
                      .sm_clock_before_mhz = on_cpu ? NAN : 1980,
                      .sm_clock_after_mhz = on_cpu ? NAN : 1965,
                      .memory_clock_mhz = on_cpu ? NAN : 2619,
                      .temperature_c = on_cpu ? NAN : 41,
                      .power_w = on_cpu ? NAN : jitter(state, 300)};
    epoch.host_ms = epoch.device_ms + 0.4;
    strcpy(epoch.unavailable, "{\"loss_scale\":\"fp32 does not scale the loss\"}");
    if (rl_records_add(records, RL_RECORD_EPOCH, &epoch, 1, err) < 0) return -1;
  }
  return 0;
}

static int add_samples(uint64_t *state, rl_records *records, rl_error *err) {
  for (int i = 0; i < 2 * SAMPLES; i++) {
    rl_sample sample = {.mode = i / SAMPLES, .ordinal = i % SAMPLES, .device_us = jitter(state, i < SAMPLES ? 40 : 25)};
    if (rl_records_add(records, RL_RECORD_SAMPLE, &sample, 1, err) < 0) return -1;
  }
  return 0;
}

typedef struct named_value {
  const char *name; /* NULL after the last value of an array */
  double value;
} named_value;

static int add_measurements(const named_value *measurements, uint64_t *state, rl_records *records, rl_error *err) {
  for (; measurements->name != NULL; measurements++)
    if (rl_records_add_measurement(records, measurements->name, jitter(state, measurements->value), NULL, err) < 0) return -1;
  return 0;
}

static const named_value train_measurements[] = {
    {"peak_memory_bytes", 4e8},         {"memory_dataset_bytes", 5e7},   {"memory_weights_bytes", 4e6},
    {"memory_activations_bytes", 3e8},  {"memory_workspace_bytes", 4e7}, {"device_memory_before_bytes", 5e8},
    {"device_memory_after_bytes", 9e8}, {"launches_per_step", 1},        {NULL, 0}};
static const named_value kernel_measurements[] = {{"time_cold_us_median", 41},  {"time_cold_us_min", 40},
                                                  {"time_warm_us_median", 26},  {"time_warm_us_min", 25},
                                                  {"sm_clock_least_mhz", 1900}, {"achieved_bytes_per_s", 2e12},
                                                  {"relative_error", 1e-4},     {"relative_error_limit", 1e-2},
                                                  {"peak_memory_bytes", 6.4e7}, {NULL, 0}};
static const named_value ceilings_measurements[] = {{"fp32_operations_per_s", 5e13},
                                                    {"fp16_operations_per_s", 1e14},
                                                    {"tensor_tf32_operations_per_s", 4e14},
                                                    {"tensor_fp16_operations_per_s", 7e14},
                                                    {"dram_read_bytes_per_s", 4e12},
                                                    {"dram_write_bytes_per_s", 4e12},
                                                    {"l2_read_bytes_per_s", 9e12},
                                                    {"sm_clock_least_mhz", 1900},
                                                    {"temperature_c_most", 45},
                                                    {"throttled_ratio", 0},
                                                    {NULL, 0}};
static const named_value activity_measurements[] = {
    {"epoch_traced_ms", 190},   {"perturbation_ratio", 0.02}, {"launches_issued", 938},        {"completeness_ratio", 1},
    {"device_busy_ratio", 0.9}, {"launch_gap_ratio", 0.05},   {"activity_dropped_records", 0}, {NULL, 0}};

static int add_timing(const record_plan *plan, uint64_t *state, rl_records *records, rl_error *err) {
  const char *workload = plan->claim->run.workload;
  if (strcmp(workload, "ceilings") == 0) return add_measurements(ceilings_measurements, state, records, err);
  if (strcmp(workload, "mnist_cnn") == 0) {
    if (add_epochs(plan, state, records, err) < 0) return -1;
    return add_measurements(train_measurements, state, records, err);
  }
  if (add_samples(state, records, err) < 0) return -1;
  return add_measurements(kernel_measurements, state, records, err);
}

/* --- activity ---------------------------------------------------------------------------------------------------------- */

static const char *const kernel_names[] = {"void persistent_epoch<half_tile_format>(rl_persistent_args)",
                                           "void conv1_forward<float>(rl_conv_args)", "void conv2_forward<float>(rl_conv_args)",
                                           "void adam(rl_adam_args)"};
static const char *const launch_names[] = {"persistent_epoch", "conv1_forward", "conv2_forward", "adam"};
static const char *const other_names[] = {"cudaLaunchKernel", "cudaMemcpyAsync", "memcpy HtoD", "memset", "epoch", "step"};
enum { PROCESS = 4000, THREAD = 4001 };
enum { NAME_CALL = KERNELS, NAME_COPY_CALL, NAME_COPY, NAME_MEMSET, NAME_EPOCH, NAME_STEP };

int grow_names(rl_records *records, rl_error *err) {
  for (int i = 0; i < KERNELS; i++)
    if (rl_records_add_name(records, kernel_names[i], strlen(kernel_names[i]), err) < 0) return -1;
  for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
    if (rl_records_add_name(records, other_names[i], strlen(other_names[i]), err) < 0) return -1;
  return 0;
}

/* Returns an activity of a step. Position 0 is the step's range, 1 a memset, 2 and 3 a copy with its call; then kernels with
 * their calls follow. */
static rl_activity_row row_in_step(int64_t step, int64_t position) {
  int64_t start_ns = (step * ROWS_IN_STEP + position) * ROW_NS + (position * 37 + step * 11) % 400;
  rl_activity_row row = {.start_ns = start_ns, .end_ns = start_ns + 500 + position * 13, .step = (uint32_t)step + 1};
  uint32_t kernel = (uint32_t)(position / 2) % KERNELS;
  switch (position) {
    case 0:
      row.process = PROCESS, row.thread = THREAD;
      row.kind = RL_ACTIVITY_NVTX_RANGE, row.name = NAME_STEP, row.end_ns = start_ns + (ROWS_IN_STEP - 1) * ROW_NS;
      return row;
    case 1:
      row.kind = RL_ACTIVITY_MEMSET, row.name = NAME_MEMSET, row.stream = 7, row.bytes = 4096;
      row.device = 1, row.context = 1, row.destination_memory = RL_MEMORY_DEVICE;
      return row;
    case 2: row.kind = RL_ACTIVITY_RUNTIME, row.name = NAME_COPY_CALL; break;
    case 3:
      row.kind = RL_ACTIVITY_MEMCPY, row.name = NAME_COPY, row.stream = 7, row.bytes = 50176;
      row.source_memory = RL_MEMORY_PINNED, row.destination_memory = RL_MEMORY_DEVICE;
      break;
    default: row.kind = position % 2 == 0 ? RL_ACTIVITY_RUNTIME : RL_ACTIVITY_KERNEL;
  }
  if (row.kind == RL_ACTIVITY_RUNTIME) row.process = PROCESS, row.thread = THREAD;
  else row.device = 1, row.context = 1;
  row.correlation = (uint32_t)(step * ROWS_IN_STEP + position) / 2 + 1;
  if (position < 4) return row;
  row.name = row.kind == RL_ACTIVITY_KERNEL ? kernel : NAME_CALL;
  if (row.kind != RL_ACTIVITY_KERNEL) return row;
  row.stream = 7;
  row.grid[0] = 128 << kernel, row.grid[1] = row.grid[2] = 1;
  row.block[0] = 256, row.block[1] = row.block[2] = 1;
  row.registers = 40 + 8 * kernel, row.dynamic_shared_bytes = 1024 * kernel;
  return row;
}

int64_t grow_rows(int64_t first, int64_t total, rl_activity_row *rows, int64_t count) {
  const int64_t trace_ns = (total + 1) * ROW_NS;
  for (int64_t i = 0; i < count; i++) {
    int64_t index = first + i;
    rows[i] =
        index > 0
            ? row_in_step((index - 1) / ROWS_IN_STEP, (index - 1) % ROWS_IN_STEP)
            : (rl_activity_row){
                  .kind = RL_ACTIVITY_NVTX_RANGE, .name = NAME_EPOCH, .end_ns = trace_ns, .process = PROCESS, .thread = THREAD};
  }
  return trace_ns;
}

static int add_rows(int64_t total, rl_records *records, rl_error *err) {
  enum { CHUNK = 4096 };
  rl_activity_row rows[CHUNK];
  if (grow_names(records, err) < 0) return -1;
  for (int64_t first = 0; first < total; first += CHUNK) {
    int64_t count = total - first < CHUNK ? total - first : CHUNK;
    grow_rows(first, total, rows, count);
    if (rl_records_add(records, RL_RECORD_ROW, rows, (size_t)count, err) < 0) return -1;
  }
  return 0;
}

/* --- kernels ----------------------------------------------------------------------------------------------------------- */

static int add_kernels(const record_plan *plan, uint64_t *state, rl_records *records, rl_error *err) {
  bool trains = strcmp(plan->claim->run.workload, "mnist_cnn") == 0, counts = plan->claim->pass == RL_PASS_COUNTERS;
  int kernels = trains && !counts ? KERNELS : 1;
  for (int i = 0; i < kernels; i++) {
    rl_kernel kernel = {.ordinal = i,
                        .launches = counts ? 1 : 938,
                        .total_us = jitter(state, 9000),
                        .min_us = 9,
                        .median_us = jitter(state, 9.5),
                        .max_us = jitter(state, 14),
                        .share_ratio = 1.0 / kernels,
                        .registers_per_thread = 40 + 8 * i,
                        .static_shared_bytes = 0,
                        .dynamic_shared_bytes = 1024 * i,
                        .grid_x = 128 << i,
                        .grid_y = 1,
                        .grid_z = 1,
                        .block_x = 256,
                        .block_y = 1,
                        .block_z = 1,
                        .theoretical_occupancy_ratio = 0.75};
    snprintf(kernel.launch, sizeof kernel.launch, "%s", trains ? launch_names[i] : plan->claim->run.workload);
    snprintf(kernel.name, sizeof kernel.name, "%s", kernel_names[i]);
    snprintf(kernel.code_sha256, sizeof kernel.code_sha256, "%064d", i + 1);
    if (trains) strcpy(kernel.phase, i < KERNELS - 1 ? "forward" : "optimizer");
    if (rl_records_add(records, RL_RECORD_KERNEL, &kernel, 1, err) < 0) return -1;
  }
  return 0;
}

static int add_phases(uint64_t *state, rl_records *records, rl_error *err) {
  for (int i = 1; i < KERNELS; i++) {
    rl_phase phase = {
        .position = i - 1, .steps = 32, .blocks = 128, .min_us = 1, .max_us = 9, .share_ratio = 1.0 / (KERNELS - 1)};
    phase.mean_us = jitter(state, 3);
    strcpy(phase.name, launch_names[i]);
    strcpy(phase.phase, i < KERNELS - 1 ? "forward" : "optimizer");
    if (rl_records_add(records, RL_RECORD_PHASE, &phase, 1, err) < 0) return -1;
  }
  return 0;
}

/* Returns the bits of the sections of the set "full", or else of SpeedOfLight. */
static uint32_t section_bits(bool is_full) {
  uint32_t speed_of_light = 1;
  for (size_t i = 0; i < rl_section_set_count; i++)
    if (is_full && strcmp(rl_section_sets[i].name, "full") == 0) return rl_section_sets[i].sections;
  for (size_t i = 0; i < rl_section_count; i++)
    if (strcmp(rl_sections[i].id, "SpeedOfLight") == 0) speed_of_light = 1u << i;
  return speed_of_light;
}

static int add_metrics(const record_plan *plan, uint64_t *state, rl_records *records, rl_error *err) {
  const uint32_t sections = section_bits(plan->is_full);
  const bool trains = strcmp(plan->claim->run.workload, "mnist_cnn") == 0;
  const size_t max_metrics = plan->is_full ? rl_raw_metric_count : trains ? 16 : 32;
  for (size_t i = 0; i < rl_raw_metric_count && records->metric_count < max_metrics; i++) {
    if ((rl_raw_metrics[i].sections & sections) == 0 || rl_raw_metrics[i].origin == RL_ORIGIN_NONE) continue;
    rl_kernel_metric metric = {.value = jitter(state, 50)};
    snprintf(metric.metric, sizeof metric.metric, "%s", rl_raw_metrics[i].name);
    if (rl_records_add_metric(records, &metric, err) < 0) return -1;
  }
  return 0;
}

static int add_instructions(uint64_t *state, rl_records *records, rl_error *err) {
  for (int i = 0; i < INSTRUCTIONS; i++) {
    rl_instruction instruction = {.offset = 16 * i, .line = 10 + i / 4};
    strcpy(instruction.opcode, i % 8 == 0 ? "LDG.E" : "FFMA");
    strcpy(instruction.sass, i % 8 == 0 ? "LDG.E R2, desc[UR4][R2.64] ;" : "FFMA R7, R4, R5, R7 ;");
    strcpy(instruction.file, "kernels/kernel/softmax.cu");
    snprintf(instruction.counts, sizeof instruction.counts,
             "{\"inst_executed\":%d,\"thread_inst_executed\":%d,\"smsp__pcsamp_sample_count\":%d}", 65536, 2097152,
             (int)(next_random(state) % 100));
    if (rl_records_add(records, RL_RECORD_INSTRUCTION, &instruction, 1, err) < 0) return -1;
  }
  return 0;
}

static int add_points(uint64_t *state, rl_records *records, rl_error *err) {
  static const char *const curves[] = {"sm_active_pct", "dram_read_pct"};
  for (int i = 0; i < 2 * POINTS; i++) {
    rl_series_point point = {.x = 1000 * (i % POINTS), .value = jitter(state, 70)};
    strcpy(point.name, curves[i / POINTS]);
    if (rl_records_add(records, RL_RECORD_POINT, &point, 1, err) < 0) return -1;
  }
  return 0;
}

static int add_activity(const record_plan *plan, uint64_t *state, rl_records *records, rl_error *err) {
  if (add_measurements(activity_measurements, state, records, err) < 0 || add_kernels(plan, state, records, err) < 0) return -1;
  if (strcmp(plan->claim->run.workload, "mnist_cnn") == 0 && add_phases(state, records, err) < 0) return -1;
  return add_rows(plan->activity_rows, records, err);
}

static int add_counters(const record_plan *plan, uint64_t *state, rl_records *records, rl_error *err) {
  if (add_kernels(plan, state, records, err) < 0 || add_metrics(plan, state, records, err) < 0) return -1;
  if (!plan->is_full) return 0;
  return add_instructions(state, records, err) < 0 ? -1 : add_points(state, records, err);
}

int grow_records(const record_plan *plan, rl_records *records, rl_error *err) {
  uint64_t state = plan->seed;
  records->has_metadata = true;
  fill_metadata(plan, &records->metadata);
  switch (plan->claim->pass) {
    case RL_PASS_TIMING: return add_timing(plan, &state, records, err);
    case RL_PASS_ACTIVITY: return add_activity(plan, &state, records, err);
    default: return add_counters(plan, &state, records, err);
  }
}
