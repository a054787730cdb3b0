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

/* Lower bounds of the work of one iteration, whichever engine runs it. NAN: the bound is not known. */
typedef struct rl_cost {
  double bytes;          /* compulsory: each input read once, each output written once */
  double operations;     /* arithmetic; a multiply-add counts as 2 */
  double written_bytes;  /* bytes of the outputs; they may still be in a write-back cache when the iteration ends */
  const char *precision; /* precision of the operations: "fp64" "fp32" "tf32" "fp16" "bf16"; NULL: no peak rate applies to them */
} rl_cost;

/* The unit of work that the timing pass measures. */
typedef enum rl_timing_mode {
  RL_TIMING_EPOCHS,   /* times each iteration and its evaluation separately, then reads the results */
  RL_TIMING_LAUNCHES, /* times samples of one step, with a cold and with a warm cache */
  RL_TIMING_RATES     /* times each launch of the step separately, to derive the instance's rates (rl_rate) */
} rl_timing_mode;

/* The properties of an engine that the daemon knows without linking the engine's code. */
typedef struct rl_engine_description {
  const char *name;     /* "reference" "blas" "cudnn" "fused" */
  const char *workload; /* rl_workload.name */
  rl_device_kind device;
  const char *summary;
  /* Returns 0 when some device of the engine's kind can run params, else -1 with RL_INPUT and err->json_pointer at the
   * unsupported parameter, such as "/precision". NULL: all values of all parameters are supported. */
  int (*supports)(const void *params, rl_error *err);
  /* True when the choice "auto" must skip this engine for params, because an engine further down in rl_engines is faster for
   * them. NULL: it is never skipped. */
  bool (*skipped_by_auto)(const void *params);
} rl_engine_description;

/* The field pause_ms of a workload's parameters, which its instance copies to the step's rl_sequence. */
#define RL_PAUSE_FIELD(type)                                                                      \
  RL_FIELD(type, pause_ms, RL_FIELD_INT, .minimum = 0, .maximum = RL_PAUSE_MS_MAX,                \
           .summary =                                                                             \
               "ms in which the device is idle before each sample; a long pause keeps the power " \
               "limit from lowering the clocks; default 0")

/* A parameter for which a request may list several values. Each value becomes one run. */
typedef struct rl_multi_value_parameter {
  const char *field;           /* name of the parameter, which has the type RL_FIELD_CHOICE: "precision" */
  const char *request_key;     /* name of the list in the request: "precisions" */
  const char *summary;         /* summary of the list */
  uint32_t default_value_mask; /* bit i: value i is used when the request has no list */
  /* True: a request for exactly the default values runs only those that the device supports. Every other request fails when the
   * device does not support one of its values. */
  bool default_skips_unsupported_values;
} rl_multi_value_parameter;

/* The data that a launch reads and writes, as sets. Each bit is a buffer, or a part of one, that no other bit shares; its meaning
 * is the workload's. */
typedef struct rl_launch_data {
  uint32_t reads, writes;
  double bytes; /* size of all data in the sets; data that is read and written counts twice */
} rl_launch_data;

typedef struct rl_workload {
  const char *name;     /* "mnist_cnn" */
  const char *job_kind; /* kind of job that runs it: "train" "kernel" "layer" "ceilings" "source" */
  const char *summary;
  const struct rl_field *fields; /* fields of its parameter struct */
  size_t params_size;
  void (*defaults)(void *params);
  rl_cost (*cost)(const void *params, uint64_t images); /* images: rl_instance.images */
  /* Returns the number of warmup iterations (not measured) and of measured ones. NULL: 1 and 1. */
  void (*iteration_counts)(const void *params, uint32_t *warmup, uint32_t *measured);
  rl_timing_mode timing_mode;
  bool restores_buffers; /* before each launch, its buffers are copied back; these copies are not part of the step */
  /* The engines that the parameter "engine" may name besides "auto", NULL-terminated; NULL: the workload has no such
   * parameter. */
  const rl_engine_description *const *engines;
  const rl_multi_value_parameter *multi_value_parameter; /* NULL: a request is one set of parameters */
  /* Sets *data to the data of the launch with this name, in a step with these parameters. Returns false if no launch has the
   * name. NULL: the workload's launches do not declare their data. */
  bool (*launch_data)(const void *params, const char *launch, rl_launch_data *data);
} rl_workload;

extern const rl_workload *const rl_workloads[]; /* NULL-terminated; registry.c */
/* Returns the workload of this name; NULL when there is none. */
const rl_workload *rl_workload_find(const char *name);
/* Returns the parameter "engine" of params; "auto" when the workload has no such parameter. */
const char *rl_workload_engine_name(const rl_workload *workload, const void *params);
/* Returns 0 when the engine that params name ("auto": any engine) runs on this kind of device and supports params; else -1 with
 * RL_INPUT at /engine, or at the parameter that the last engine tried does not support. A workload whose `engines` is NULL
 * supports all params. */
int rl_workload_supports(const rl_workload *workload, rl_device_kind device, const void *params, rl_error *err);

/* Results of an iteration. NAN: the workload has no such result. */
typedef struct rl_iteration_results {
  double images;                         /* number of images on which the iteration trained */
  double train_loss;                     /* mean over the iteration's steps */
  double test_loss, test_accuracy_ratio; /* results of the last evaluation */
  double loss_scale;                     /* current loss scale; NAN: none */
  double skipped_steps;                  /* steps skipped since the reset, because a gradient was not finite or too large */
} rl_iteration_results;

/* The comparison of a result with a reference. */
typedef struct rl_check {
  double relative_error; /* NAN: there is no reference */
  double tolerance;      /* largest relative_error of a correct result */
  double checked_ratio;  /* share of the result's elements that were compared */
} rl_check;

/* A value that the engine measured while it opened the instance. The timing pass records it. */
typedef struct rl_open_measurement {
  const char *name; /* ends with its unit */
  double value;
  const char *reason; /* reason why value is NAN */
} rl_open_measurement;

typedef struct rl_instance rl_instance;

/* All members that return int return 0, or -1 with err. */
typedef struct rl_instance_ops {
  /* Puts the instance back into the state right after it was opened: weights from the seed, moments, counters, loss scale. */
  int (*reset)(rl_instance *instance, rl_error *err);
  /* Waits for the device and reads the results of the last iteration and evaluation. */
  int (*read_results)(rl_instance *instance, rl_iteration_results *results, rl_error *err);
  /* save copies the state that a step changes; restore copies it back, so that a launch can be replayed on the same inputs. */
  int (*save)(rl_instance *instance, rl_error *err);
  int (*restore)(rl_instance *instance, rl_error *err);
  void (*close)(rl_instance *instance);
  /* Runs the step once and compares its output with a reference. NULL: there is no reference. */
  int (*check)(rl_instance *instance, rl_check *check, rl_error *err);
  /* Reads what the sequence's check_launch found, and returns in *count how many launches it has checked since the last call.
   * Returns -1 with RL_ERRNO, EDOM when one of them was wrong. NULL: timed launches are not checked. */
  int (*read_launch_checks)(rl_instance *instance, uint64_t *count, rl_error *err);
  /* Turns the recording of timestamps inside launches (phase_timestamps.h) on or off. It applies to executables that are
   * instantiated from now on, which may launch other versions of the kernels. Recording costs some time. NULL: no launch of the
   * instance can record timestamps. */
  int (*set_phase_timestamps)(rl_instance *instance, bool on, rl_error *err);
  /* Reads the timestamps that the last run of a recording executable wrote. The arrays of *timestamps belong to the instance and
   * stay valid until the next call or until recording is turned off. Returns -1 while recording is off. */
  int (*read_phase_timestamps)(rl_instance *instance, rl_phase_timestamps *timestamps, rl_error *err);
} rl_instance_ops;

/* A rate of the device: amount divided by the shortest measured time of one launch. */
typedef struct rl_rate {
  const char *name;        /* name of the measurement: "dram_read_bytes_per_s" */
  const rl_launch *launch; /* launch that is timed; NULL: this device can't measure the rate */
  double amount;           /* bytes or operations of one launch */
  const char *reason;      /* reason why launch is NULL */
} rl_rate;

/* An engine's instance struct begins with this struct; rl_engine.open fills it. */
struct rl_instance {
  const rl_instance_ops *ops;
  rl_device *device;
  rl_sequence_list iteration;     /* training: one epoch */
  rl_sequence_list evaluation;    /* sequence_count 0: the workload has none */
  size_t step_sequence;           /* index in `iteration` of the sequence whose launches are one representative step */
  bool deterministic;             /* same seed, device and engine give bit-identical results */
  const char *deterministic_note; /* reason why deterministic is false; else NULL */
  char dataset[16];               /* "mnist" "custom" "synthetic"; "": the workload has none */
  char dataset_sha256[65];
  uint64_t images; /* number of images in one iteration; 0: does not apply */
  uint64_t steps;  /* optimizer steps in one iteration, the short last batch included; 0: does not apply */
  /* Optimizer steps that one repeat of iteration.sequences[step_sequence] performs; 0 means 1. */
  uint64_t optimizer_steps_per_repeat;
  uint64_t trained_parameters;                  /* number of trained values of the model; 0: does not apply */
  bool partial_dataset;                         /* an iteration uses fewer images than the data set has */
  const rl_open_measurement *open_measurements; /* owned by the instance; NULL: none */
  size_t open_measurement_count;
  const rl_rate *rates; /* owned by the instance; for RL_TIMING_RATES */
  size_t rate_count;
};

/* An engine's code: one workload on one kind of device. Workers link it, the daemon does not. */
typedef struct rl_engine {
  const rl_engine_description *description;
  int (*open)(rl_device *device, const void *params, rl_instance **instance, rl_error *err);
  /* Like description->supports, but returns 0 only when the current device can run params. NULL: every device of the kind can run
   * all params that description->supports accepts. */
  int (*device_supports)(const void *params, rl_error *err);
} rl_engine;

extern const rl_engine *const rl_engines[]; /* NULL-terminated, the best first; defined in engines_cpu.c or engines_cuda.cu */
/* The next three functions are in engine.c, which only workers link. */

/* Returns the named engine; for "auto" the first that supports params and is not skipped. NULL with RL_INPUT at the parameter
 * that no engine supports, or at /engine when this device has no engine of that name. */
const rl_engine *rl_engine_find(const char *workload, const char *name, const void *params, rl_error *err);
/* Writes the names of the engines that a request may name but that this device can't run, one per line. To decide whether it can
 * run an engine, sets all parameters to their defaults and tries every value of multi_value_parameter. */
void rl_engines_list_unsupported(char *names, size_t size);
/* Returns 0 when the engine supports params on the current device; else -1 with RL_INPUT at the unsupported parameter. */
int rl_engine_supports(const rl_engine *engine, const void *params, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
