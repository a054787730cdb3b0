/* A workload is something to measure. Its definition (name, parameters, cost model) is plain data, which the daemon links without
 * any engine. An engine is one implementation of a workload on one kind of device. An instance is an engine opened on a device
 * with one set of parameters. CONTRIBUTING.md says how to add a workload. */
#ifndef RL_KERNELS_WORKLOAD_H
#define RL_KERNELS_WORKLOAD_H

#include "base/error.h"
#include "device/device.h"
#include "phase_timestamps.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rl_field; /* base/fields.h */

/* The least work of one iteration. NAN: not known. */
typedef struct rl_cost {
  double bytes;          /* compulsory: each input read once, each output written once */
  double operations;     /* arithmetic; a multiply-add counts as 2 */
  double written_bytes;  /* the outputs' share of bytes; may still lie in a write-back cache when the iteration ends */
  const char *precision; /* of the operations: "fp64" "fp32" "tf32" "fp16" "bf16"; NULL: no peak rate applies to them */
} rl_cost;

/* What the timing pass measures of a workload. */
typedef enum rl_timing_mode {
  RL_TIMING_EPOCHS,   /* each iteration, with its evaluation and report */
  RL_TIMING_LAUNCHES, /* samples of one step, with a cold and with a warm cache */
  RL_TIMING_RATES     /* each launch of the step alone, to derive the instance's rates (rl_rate) */
} rl_timing_mode;

/* What a client and the daemon may know of an engine without linking its code. */
typedef struct rl_engine_description {
  const char *name;     /* "reference" "blas" "cudnn" "fused" */
  const char *workload; /* rl_workload.name */
  rl_device_kind device;
  const char *summary;
  /* 0, or -1 with RL_INPUT at the parameter that the engine supports on no device of its kind; NULL: it supports all. */
  int (*supports)(const void *params, rl_error *err);
  bool (*auto_skips)(const void *params); /* "auto" passes over the engine, as a later one is faster; NULL: never */
} rl_engine_description;

/* A choice among the parameters of which a request may list several values: one run for each. */
typedef struct rl_run_choice {
  const char *field;       /* name of the parameter, RL_FIELD_CHOICE: "precision" */
  const char *request_key; /* name of the list in the request: "precisions" */
  const char *summary;     /* of the list */
  uint32_t default_values; /* bit i: value i */
} rl_run_choice;

typedef struct rl_workload {
  const char *name; /* "mnist_cnn" */
  const char *kind; /* kind of job that asks for it: "train" "kernel" "ceilings" "source" */
  const char *summary;
  const struct rl_field *fields; /* of its parameter struct */
  size_t params_size;
  void (*defaults)(void *params);
  rl_cost (*cost)(const void *params);
  /* Returns the number of warmup iterations (not measured) and of measured ones. NULL: 1 and 1. */
  void (*iteration_counts)(const void *params, uint32_t *warmup, uint32_t *measured);
  rl_timing_mode timing_mode;
  /* What the parameter "engine" may name besides "auto", NULL-terminated; NULL: there is no such parameter. */
  const rl_engine_description *const *engines;
  const rl_run_choice *run_choice; /* NULL: a request is one set of parameters */
} rl_workload;

extern const rl_workload *const rl_workloads[]; /* NULL-terminated; registry.c */
/* Returns the workload of this name; NULL when there is none. */
const rl_workload *rl_workload_find(const char *name);
/* The parameter "engine" of params; "auto" where the workload has none. */
const char *rl_workload_engine_name(const rl_workload *workload, const void *params);
/* 0 when an engine for this kind of device supports params, else -1 with RL_INPUT at /engine or at the parameter that rules out
 * the last engine tried. Any params are supported where workload->engines is NULL. */
int rl_workload_supports(const rl_workload *workload, rl_device_kind device, const void *params, rl_error *err);

/* Results of an iteration. NAN where they do not apply to the workload. */
typedef struct rl_report {
  double samples;                        /* images trained in the iteration */
  double train_loss;                     /* mean over the iteration's steps */
  double test_loss, test_accuracy_ratio; /* from the last evaluation */
  double loss_scale, skipped_steps;      /* fp16: current loss scale, steps skipped since reset */
} rl_report;

/* Comparison of a result with a reference. */
typedef struct rl_check {
  double relative_error; /* NAN: there is no reference */
  double tolerance;      /* largest relative_error of a correct result */
  double checked_ratio;  /* share of the result's elements that were compared */
} rl_check;

/* A value that the engine measured while it opened the instance. The timing pass records it. */
typedef struct rl_open_measurement {
  const char *name; /* ends with its unit */
  double value;
  const char *reason; /* why value is NAN */
} rl_open_measurement;

typedef struct rl_instance rl_instance;

/* All return 0, or -1 with err. */
typedef struct rl_instance_ops {
  /* Restores the state after opening: weights from the seed, moments, counters, loss scale. */
  int (*reset)(rl_instance *instance, rl_error *err);
  /* Waits for the device and reads the results of the last iteration and evaluation. */
  int (*report)(rl_instance *instance, rl_report *report, rl_error *err);
  /* save copies the state that a step changes; restore copies it back, so that a launch can be replayed on the same inputs. */
  int (*save)(rl_instance *instance, rl_error *err);
  int (*restore)(rl_instance *instance, rl_error *err);
  void (*close)(rl_instance *instance);
  /* Runs the step once and compares its output with a reference. NULL: there is no reference. */
  int (*check)(rl_instance *instance, rl_check *check, rl_error *err);
  /* NULL where no launch can record timestamps of its phases. Plans made after set_phase_timestamps(on) record them, which costs
   * some time; plans made after set_phase_timestamps(off) do not. */
  int (*set_phase_timestamps)(rl_instance *instance, bool on, rl_error *err);
  /* The timestamps of the last run of such a plan. The arrays belong to the instance and stay valid until the next call or until
   * recording is turned off. -1 while recording is off. */
  int (*read_phase_timestamps)(rl_instance *instance, rl_phase_timestamps *timestamps, rl_error *err);
} rl_instance_ops;

/* A rate of the device: amount / the shortest measured time of one launch of the step. */
typedef struct rl_rate {
  const char *name;        /* of the measurement: "dram_read_bytes_per_s" */
  const rl_launch *launch; /* NULL: this device can't measure the rate */
  double amount;           /* bytes or operations of one launch */
  const char *reason;      /* why launch is NULL */
} rl_rate;

/* The first member of every engine's own instance struct. open fills it. */
struct rl_instance {
  const rl_instance_ops *ops;
  rl_device *device;
  rl_program iteration;           /* training: one epoch */
  rl_program evaluation;          /* sequence_count 0: the workload has none */
  size_t step_sequence;           /* index in `iteration` of the sequence whose launches are one representative step */
  bool deterministic;             /* same seed, device and engine give bit-identical results */
  const char *deterministic_note; /* why deterministic is false; else NULL */
  char dataset[16];               /* "mnist" "custom" "synthetic"; "": the workload has none */
  char dataset_sha256[65];
  uint64_t samples;          /* images in one iteration; 0: does not apply */
  uint64_t steps;            /* optimizer steps in one iteration, the short last batch included; 0: does not apply */
  uint64_t steps_per_repeat; /* optimizer steps in one repeat of the step's sequence; 0 means 1 */
  uint64_t parameters;       /* trained numbers; 0: does not apply */
  bool partial_dataset;      /* an iteration uses fewer images than the data set has */
  const rl_open_measurement *open_measurements; /* owned by the instance; NULL: none */
  size_t open_measurement_count;
  const rl_rate *rates; /* owned by the instance; for RL_TIMING_RATES */
  size_t rate_count;
};

/* An engine's code: one workload on one kind of device. Workers link it, the daemon does not. */
typedef struct rl_engine {
  const rl_engine_description *description;
  int (*open)(rl_device *device, const void *params, rl_instance **instance, rl_error *err);
  /* As description->supports, for what only the current device can tell; NULL: every device of the kind runs the engine. */
  int (*device_supports)(const void *params, rl_error *err);
} rl_engine;

extern const rl_engine *const rl_engines[]; /* NULL-terminated, best first; engines_cpu.c or engines_cuda.cu */
/* engine.c, linked by the workers alone: the named engine, or for "auto" the first that supports params and is not skipped. NULL
 * with RL_INPUT at the parameter that no engine supports, or at /engine when this device has no engine of that name. */
const rl_engine *rl_engine_find(const char *workload, const char *name, const void *params, rl_error *err);
/* Writes the names, one a line, of engines that a request may name and whose device_supports rejects every default. */
void rl_engines_list_unsupported(char *names, size_t size);
/* 0 when the engine supports params on the current device, else -1 with RL_INPUT at the parameter. */
int rl_engine_supports(const rl_engine *engine, const void *params, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
