/* Records are the results of a pass: plain structs of several kinds. A worker sends them, the supervisor collects them, and the
 * store inserts them. The field table of a kind determines its JSON in frames and its INSERT statement; a test compares the table
 * with the API's schema. A value that is NAN was not measured; the record or its pass contains the reason. Texts are UTF-8. */
#ifndef RL_MODEL_RECORDS_H
#define RL_MODEL_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/fields.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_pass { RL_PASS_TIMING, RL_PASS_ACTIVITY, RL_PASS_COUNTERS, RL_PASS_COUNT } rl_pass;
extern const char *const rl_pass_names[]; /* "timing" "activity" "counters", NULL-terminated */

enum { RL_NAME_SIZE = 64, RL_REASON_SIZE = 192, RL_METRIC_NAME_SIZE = 128, RL_KERNEL_NAME_SIZE = 512 };

typedef struct rl_run_metadata { /* describes the run; the first record of each pass */
  char engine[16];
  char dataset[16], dataset_sha256[65];
  bool deterministic;
  char deterministic_note[RL_REASON_SIZE];
  bool partial; /* the run trains on fewer images than the data set has */
  int64_t images_per_epoch, steps_per_epoch, parameters;
  /* The compulsory work of one iteration, from which its floors are computed: arithmetic operations, bytes of memory traffic, and
   * the part of these bytes that is written */
  double floor_operations, floor_bytes, floor_written_bytes;
  char floor_precision[8]; /* precision of floor_operations; "": no ceiling applies to these operations */
  /* JSON object: rl_device_properties, and attributes that are known only when the device is open */
  char device_properties[4096];
  char commit[48]; /* git commit of the worker; ends with "-dirty" if it had uncommitted changes */
} rl_run_metadata;

typedef struct rl_epoch { /* recorded by the timing pass: an epoch of training */
  int64_t epoch;          /* number of the epoch, counted from 0 over warm-up and measured epochs */
  bool warmup;
  double device_ms, host_ms, evaluation_ms, images;
  double train_loss, test_loss, test_accuracy_ratio, loss_scale;
  double skipped_steps; /* steps of this epoch that were skipped, because a gradient was not finite or too large */
  double sm_clock_before_mhz, sm_clock_after_mhz, memory_clock_mhz, temperature_c, power_w;
  char throttle_reasons[128]; /* NVML's names, comma-separated; "": none, or unknown */
  char unavailable[768];      /* JSON object with the reason for each member that is NAN: {"power_w": "..."} */
} rl_epoch;

typedef enum rl_sample_mode { RL_SAMPLE_COLD, RL_SAMPLE_WARM, RL_SAMPLE_MODE_COUNT } rl_sample_mode;
extern const char *const rl_sample_mode_names[]; /* "cold" "warm", NULL-terminated */

typedef struct rl_sample { /* recorded by the timing pass: one measured time of a kernel job */
  int mode;                /* rl_sample_mode; cold: other data fills the caches when the launch begins */
  int64_t ordinal;         /* number of the sample within its mode, counted from 0 in time order */
  double device_us;        /* device time of one iteration; in warm samples the mean over back-to-back iterations */
} rl_sample;

typedef struct rl_measurement { /* one number that a pass measured; its name ends with its unit */
  char name[RL_NAME_SIZE];
  double value;
  char reason[RL_REASON_SIZE]; /* reason why value is NAN */
} rl_measurement;

typedef struct rl_kernel { /* activity pass: a kernel and the statistics of all its executions in an epoch; counters pass: one
                              execution of a kernel in one step */
  int64_t ordinal; /* number of the kernel, from 0: in the activity pass in the order of first appearance, in the counters pass in
                      the order of the step */
  char launch[RL_NAME_SIZE], phase[RL_NAME_SIZE]; /* rl_launch.name and .nvtx_range; "": unknown */
  char name[RL_KERNEL_NAME_SIZE];                 /* demangled function name; CPU: the launch's name */
  int64_t launches;
  double total_us, min_us, median_us, max_us, share_ratio; /* share_ratio: share of total_us in the epoch's time */
  double registers_per_thread, static_shared_bytes, dynamic_shared_bytes;
  int64_t grid_x, grid_y, grid_z, block_x, block_y, block_z; /* 0 on the CPU */
  double theoretical_occupancy_ratio;
  char code_sha256[65];        /* SHA-256 of the kernel's machine code; "": unknown */
  char reason[RL_REASON_SIZE]; /* reason why members are NAN */
} rl_kernel;

/* Recorded by the activity pass: one phase inside a kernel that executes whole steps and records the times of its phases itself.
 * The times are durations of the phase in one step of one block. */
typedef struct rl_phase {
  int64_t ordinal;          /* rl_kernel.ordinal in the same pass */
  int64_t position;         /* index of the phase in the step */
  char name[RL_NAME_SIZE];  /* "conv1_forward": in an engine with one launch per phase, the launch has this name */
  char phase[RL_NAME_SIZE]; /* "forward": NVTX range of that launch */
  int64_t steps, blocks;    /* numbers of steps and of blocks whose phases were timed */
  /* A block that skips the phase counts as 0, so that the means of all phases add up to the time of a step. */
  double mean_us, min_us, max_us;
  double share_ratio; /* share of the step's time */
} rl_phase;

typedef struct rl_kernel_metric {   /* recorded by the counters pass: one metric of a kernel */
  int64_t ordinal;                  /* rl_kernel.ordinal in the same pass */
  char metric[RL_METRIC_NAME_SIZE]; /* CUPTI's name: "sm__throughput.avg.pct_of_peak_sustained_elapsed" */
  double value;
  char reason[RL_REASON_SIZE]; /* if value is NAN: why; if it was not counted: how it is known; else "" */
} rl_kernel_metric;

typedef struct rl_instruction { /* recorded by the counters pass: one machine instruction of a kernel */
  int64_t ordinal;              /* rl_kernel.ordinal in the same pass */
  int64_t offset;               /* offset of the instruction from the start of the function, in bytes */
  char opcode[32];              /* opcode with modifiers, such as "LDG.E.U16"; "": not disassembled */
  char sass[224];               /* text of the whole instruction; "": not disassembled */
  char file[256];               /* path of the source file; "": unknown */
  int64_t line;                 /* 0: unknown */
  char counts[3072];            /* JSON object {metric: number}; {}: the instruction was neither executed nor sampled */
  char reason[RL_REASON_SIZE];  /* reason why opcode, sass or counts are unknown */
} rl_instruction;

typedef struct rl_series_point { /* recorded by the counters pass: one point of a curve of a kernel */
  int64_t ordinal;               /* rl_kernel.ordinal in the same pass */
  char name[RL_NAME_SIZE];       /* name of the curve: "sm_active_pct", "occupancy_by_registers" */
  double x;                      /* ascending within a curve; in timelines: ns since the kernel began */
  double value;                  /* NAN: not measured */
} rl_series_point;

typedef struct rl_progress {          /* progress of a pass, which is sent to clients as an event and is not a result */
  char pass[16], phase[16];           /* phase: "prepare" "warmup" "epoch" "samples" "trace" "counters" "evaluate" */
  int64_t epoch, epochs, step, steps; /* epoch, step: current number; epochs, steps: total number; -1: not applicable */
  double train_loss, images_per_s, eta_s, test_accuracy_ratio;
} rl_progress;

extern const rl_field rl_run_metadata_fields[], rl_epoch_fields[], rl_sample_fields[], rl_measurement_fields[],
    rl_kernel_fields[], rl_phase_fields[], rl_instruction_fields[], rl_series_point_fields[], rl_kernel_metric_fields[],
    rl_progress_fields[];

/* The kind of an activity row. */
typedef enum rl_activity_kind {
  RL_ACTIVITY_KERNEL,
  RL_ACTIVITY_MEMCPY,
  RL_ACTIVITY_MEMSET,
  RL_ACTIVITY_MEMORY,
  RL_ACTIVITY_RUNTIME,
  RL_ACTIVITY_DRIVER,
  RL_ACTIVITY_NVTX_RANGE,
  RL_ACTIVITY_OVERHEAD,
  RL_ACTIVITY_CPU_SPAN, /* a launch on the CPU */
  RL_ACTIVITY_PHASE,    /* a phase inside a launch, in one block (rl_phase) */
  RL_ACTIVITY_KIND_COUNT
} rl_activity_kind;
extern const char *const rl_activity_kind_names[];

/* The memory that a copy reads or writes, with CUPTI's values (CUpti_ActivityMemoryKind). */
typedef enum rl_memory_kind {
  RL_MEMORY_UNKNOWN, /* the kind is unknown, or the activity has no source or destination memory */
  RL_MEMORY_PAGEABLE,
  RL_MEMORY_PINNED,
  RL_MEMORY_DEVICE,
  RL_MEMORY_ARRAY,
  RL_MEMORY_MANAGED,
  RL_MEMORY_DEVICE_STATIC, /* a __device__ variable */
  RL_MEMORY_MANAGED_STATIC /* a __managed__ variable */,
  RL_MEMORY_KIND_COUNT
} rl_memory_kind;
extern const char *const rl_memory_kind_names[RL_MEMORY_KIND_COUNT]; /* names by rl_memory_kind; NULL: the kind has no name */

/* The members of an activity row that a trace of another profiler can lack (rl_activity_row.unknown). RL_UNKNOWN_SHARED_PARTS:
 * the trace has only the sum of a kernel's static and dynamic shared memory. Then dynamic_shared_bytes is the sum, and
 * RL_UNKNOWN_STATIC_SHARED is set too. */
typedef enum rl_unknown_value {
  RL_UNKNOWN_REGISTERS = 1,
  RL_UNKNOWN_STATIC_SHARED = 2,
  RL_UNKNOWN_DYNAMIC_SHARED = 4,
  RL_UNKNOWN_BYTES = 8,
  RL_UNKNOWN_SHARED_PARTS = 16,
  RL_UNKNOWN_ALL = 31
} rl_unknown_value;

/* An activity row: one record of the trace that the activity pass makes, such as a kernel, a copy or an API call. A ROWS frame
 * between worker and daemon contains these structs as they are in memory: packed, little-endian. Times are in ns since the trace
 * began. */
typedef struct __attribute__((packed)) rl_activity_row {
  int64_t start_ns, end_ns;
  uint32_t kind, name;                            /* name: index into rl_records.names */
  uint32_t stream, correlation, graph_node, step; /* 0: not applicable. The row of a phase has the stream, correlation id and
                                                     graph node of its launch; step counts from 1 */
  uint32_t grid[3], block[3];
  uint32_t registers, static_shared_bytes, dynamic_shared_bytes;
  uint64_t bytes; /* size of MEMCPY, MEMSET and MEMORY rows */
  /* Rows that were recorded on the host (RUNTIME, DRIVER, NVTX_RANGE, OVERHEAD, CPU_SPAN) have a process and a thread; a MEMORY
   * row has only a process. 0: unknown */
  uint32_t process, thread;                  /* ids of the process and the thread, as getpid() and gettid() return them */
  uint32_t context;                          /* CUDA context of device work; 0: none */
  uint16_t device;                           /* 1 + the device's CUDA ordinal; 0: none */
  uint8_t source_memory, destination_memory; /* rl_memory_kind of the source and the destination of a MEMCPY row; MEMSET and
                                                MEMORY rows have only a destination */
  /* In RUNTIME and DRIVER rows of calls about events or synchronisation: the stream in the call's arguments, and the id of the
   * event record that the call makes or waits for. 0: none, or unknown */
  uint32_t call_stream, event;
  uint8_t unknown; /* RL_UNKNOWN_REGISTERS | …: the members whose values are unknown, and 0 in the row */
} rl_activity_row;
#ifndef __cplusplus
_Static_assert(sizeof(rl_activity_row) == 109, "ROWS frames hold rows as in memory");
_Static_assert(sizeof(rl_kernel_metric) == 16 + RL_METRIC_NAME_SIZE + RL_REASON_SIZE,
               "METRIC frames hold metrics as in memory, without padding");
#endif

/* The records of a pass, which are collected and then committed together. Activity rows may be stored, and removed from this
 * struct, earlier. */
typedef struct rl_records {
  bool has_metadata;
  rl_run_metadata metadata;
  rl_epoch *epochs;
  size_t epoch_count;
  rl_sample *samples;
  size_t sample_count;
  rl_measurement *measurements;
  size_t measurement_count;
  rl_kernel *kernels;
  size_t kernel_count;
  rl_phase *phases;
  size_t phase_count;
  rl_kernel_metric *metrics;
  size_t metric_count;
  rl_instruction *instructions;
  size_t instruction_count;
  rl_series_point *points;
  size_t point_count;
  char **names;
  size_t name_count;
  rl_activity_row *rows;
  size_t row_count;
  size_t bytes, limit_bytes; /* size of all records that were added so far, and the limit of this size (0: 1 GiB) */
} rl_records;

/* The kinds of records, in the order in which they are sent and stored. */
typedef enum rl_record_kind {
  RL_RECORD_EPOCH,
  RL_RECORD_SAMPLE,
  RL_RECORD_MEASUREMENT,
  RL_RECORD_KERNEL,
  RL_RECORD_PHASE,
  RL_RECORD_INSTRUCTION,
  RL_RECORD_POINT,
  RL_RECORD_NAME,
  RL_RECORD_METRIC,
  RL_RECORD_ROW,
  RL_RECORD_KIND_COUNT
} rl_record_kind;

typedef enum rl_record_encoding {
  RL_ENCODE_JSON,   /* a frame contains one record as a JSON object */
  RL_ENCODE_TEXT,   /* a frame contains one name */
  RL_ENCODE_STRUCTS /* a frame contains an array of structs as in memory */
} rl_record_encoding;

typedef struct rl_record_layout {
  rl_record_encoding encoding;
  const rl_field *fields; /* fields of the record's struct: columns in the database. NULL for names and activity rows */
  size_t item_size;       /* size of a record, in bytes */
  size_t items_offset, count_offset; /* offsets of the pointer to the items and of their number in rl_records */
} rl_record_layout;
extern const rl_record_layout rl_record_layouts[RL_RECORD_KIND_COUNT];

size_t rl_records_count(const rl_records *records, rl_record_kind kind);
const void *rl_records_items(const rl_records *records, rl_record_kind kind); /* NULL when there are none */

/* Appends copies of `count` records of the kind; `items` need not be aligned. Fails with RL_WIRE_MEMORY_LIMIT if limit_bytes
 * would be exceeded or memory is exhausted. */
int rl_records_add(rl_records *records, rl_record_kind kind, const void *items, size_t count, rl_error *err);
/* Appends a copy of the metric. Replaces control characters and invalid UTF-8 in its texts, which come from libraries. */
int rl_records_add_metric(rl_records *records, const rl_kernel_metric *metric, rl_error *err);
/* Appends a copy of the name. rl_activity_row.name is the index of a name. */
int rl_records_add_name(rl_records *records, const char *name, size_t length, rl_error *err);
/* Appends a measurement. Fails with RL_INPUT if value is not finite and reason is NULL or empty. */
int rl_records_add_measurement(rl_records *records, const char *name, double value, const char *reason, rl_error *err);
/* Removes the first `count` activity rows, which still count towards limit_bytes. */
void rl_records_drop_rows(rl_records *records, size_t count);
/* Returns the size of the records that are in memory now, in bytes. */
size_t rl_records_held_bytes(const rl_records *records);
void rl_records_clear(rl_records *records); /* frees all records; limit_bytes stays */

#ifdef __cplusplus
}
#endif

#endif
