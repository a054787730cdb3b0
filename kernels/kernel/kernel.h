/* Single kernels as workloads of kind "kernel". An operator defines what a kernel computes, independently of any device: its
 * shape, inputs, variants, reference in double precision and cost. cpu.c runs every operator on CPUs. On GPUs, each operator has
 * a launcher, from which cuda.h makes an engine. CONTRIBUTING.md says how to add an operator.
 *
 * The output is divided into equal contiguous output segments, each of which can be computed alone: an element, a row, an image.
 * The input window of a range of segments is the range of an input's elements that these segments depend on. References, the CPU
 * engine and the check process a few segments and their windows at a time, so that none of them needs converted copies of the
 * whole inputs and output in memory. docs/measurements/h200-kernels.md has measurements of the variants. */
#ifndef RL_KERNELS_KERNEL_H
#define RL_KERNELS_KERNEL_H

#include <stdint.h>

#include "base/fields.h"
#include "kernel/dtype.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The API lists the operators in this order. */
/* clang-format off */
#define RL_KERNEL_OPERATORS(X)                                                                                                   \
  X(copy) X(relu) X(residual_add) X(bias_gelu) X(silu_mul) X(rope) X(softmax) X(rmsnorm) X(layernorm) X(transpose) X(reduction) \
  X(gemm) X(attention) X(conv) X(conv_dgrad) X(conv_wgrad) X(lombscargle)
/* clang-format on */

enum {
  RL_KERNEL_SIZES_MAX = 8,         /* maximum number of sizes of a shape */
  RL_KERNEL_INPUTS_MAX = 4,        /* maximum number of inputs of a kernel */
  RL_KERNEL_SHAPE_TEXT_SIZE = 256, /* bytes of a shape as JSON */
  RL_KERNEL_ELEMENTS_MAX = 1 << 28 /* maximum number of elements of an input or of the output */
};

typedef struct rl_kernel_shape {
  int64_t size[RL_KERNEL_SIZES_MAX]; /* the operator defines meaning and order; sizes that it does not use are 1 */
} rl_kernel_shape;

/* Each of these macros is an entry of rl_kernel_operator.shape_fields for size[INDEX]: RL_KERNEL_SIZE for an integer of at least
 * 1, RL_KERNEL_COUNT for an integer of at least 0, RL_KERNEL_FLAG for true or false. */
#define RL_KERNEL_SHAPE_FIELD(INDEX, NAME, TYPE, MINIMUM, MAXIMUM, SUMMARY)                                                     \
  {                                                                                                                             \
    .name = NAME, .type = TYPE, .offset = offsetof(rl_kernel_shape, size) + (INDEX) * sizeof(int64_t), .size = sizeof(int64_t), \
    .required = true, .minimum = (MINIMUM), .maximum = (MAXIMUM), .summary = SUMMARY                                            \
  }
#define RL_KERNEL_SIZE(INDEX, NAME, MAXIMUM, SUMMARY) RL_KERNEL_SHAPE_FIELD(INDEX, NAME, RL_FIELD_INT, 1, MAXIMUM, SUMMARY)
#define RL_KERNEL_COUNT(INDEX, NAME, MAXIMUM, SUMMARY) RL_KERNEL_SHAPE_FIELD(INDEX, NAME, RL_FIELD_INT, 0, MAXIMUM, SUMMARY)
#define RL_KERNEL_FLAG(INDEX, NAME, SUMMARY) RL_KERNEL_SHAPE_FIELD(INDEX, NAME, RL_FIELD_BOOL, 0, 0, SUMMARY)

/* Bits of rl_kernel_operator.dtypes: the types that most operators support. */
#define RL_KERNEL_COMMON_DTYPES (1u << RL_DTYPE_FP64 | 1u << RL_DTYPE_FP32 | 1u << RL_DTYPE_FP16 | 1u << RL_DTYPE_BF16)

/* Computes output segments [first, first + count). in[i]: their window of input i. */
typedef void rl_kernel_compute_double(const rl_kernel_shape *shape, const double *const *in, int64_t first, int64_t count,
                                      double *out);
typedef void rl_kernel_compute_float(const rl_kernel_shape *shape, const float *const *in, int64_t first, int64_t count,
                                     float *out);

typedef struct rl_kernel_params rl_kernel_params;

typedef struct rl_kernel_operator {
  rl_workload workload;
  const rl_field *shape_fields; /* fields of rl_kernel_shape, with the names of the sizes in the API */
  /* Checks relations between sizes. Returns -1 with RL_INPUT at /shape/SIZE. NULL: every combination is valid. */
  int (*shape_check)(const rl_kernel_shape *shape, rl_error *err);
  uint32_t dtypes;             /* bit i: rl_dtype i is supported */
  const char *const *variants; /* names, NULL-terminated, at most RL_RUNS_MAX; engines receive the index of a name */
  /* Bit i: the CPU does not have variant i, because its CPU code would equal the code of another variant. Bit 0 is 0. */
  uint32_t gpu_only_variants;
  /* Returns -1 with RL_INPUT for parameters that the operator supports but its GPU engine does not. NULL: the GPU engine supports
   * all of them. */
  int (*gpu_check)(const rl_kernel_params *params, rl_error *err);
  const char *const *builds; /* ways to compile the kernel, the default first, NULL-terminated; NULL: only one way */
  uint32_t input_count;
  /* Return the number of elements of an input and of the output. The sizes of the shape are within their bounds, but their
   * product may overflow, so implementations multiply with rl_kernel_saturating_mul. */
  int64_t (*input_elements)(const rl_kernel_shape *shape, uint32_t input);
  int64_t (*output_elements)(const rl_kernel_shape *shape);
  /* Returns the number of elements of an input on which the output depends. NULL: all of them. */
  int64_t (*compulsory_elements)(const rl_kernel_shape *shape, uint32_t input);
  /* Replaces `values`, random numbers uniform in [-2, 2), by elements [start, start + count) of the input. NULL: the random
   * numbers are the elements. */
  void (*transform_input)(const rl_kernel_shape *shape, uint32_t input, int64_t start, int64_t count, double *values);
  int64_t (*output_segment_count)(const rl_kernel_shape *shape);
  /* Writes the first element and the number of elements of the input window of segments [first, first + count). */
  void (*input_window)(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start,
                       int64_t *elements);
  rl_kernel_compute_double *reference;                /* accurate; the check compares the output with its result */
  rl_kernel_compute_double *compute_double;           /* fast; the CPU engine runs it for fp64 */
  rl_kernel_compute_float *compute_float;             /* fast; the CPU engine runs it for the other types */
  double (*operations)(const rl_kernel_shape *shape); /* as rl_cost.operations */
  double (*reference_operations)(
      const rl_kernel_shape *shape); /* operations that `reference` executes; NULL: as many as `operations` */
  /* Largest relative error of a correct result, in units in the last place of the type in which the kernel computes. 0: the
   * result must be exact. */
  double (*tolerance_ulps)(const rl_kernel_shape *shape);
  /* Error that truncation by tensor cores may add to tolerance_ulps for tf32, fp16 and bf16. NULL: none. */
  double (*truncation_ulps)(const rl_kernel_shape *shape);
  int intermediate_roundings; /* how often intermediate values are rounded to the kernel's type */
  /* Typical magnitude of an output element, for operators in which cancellation can make elements much smaller: the error is then
   * relative to this magnitude. NULL: the error is relative to the reference. */
  double (*output_scale)(const rl_kernel_shape *shape);
} rl_kernel_operator;

#define RL_KERNEL_DECLARE(NAME) extern const rl_kernel_operator rl_kernel_##NAME;
RL_KERNEL_OPERATORS(RL_KERNEL_DECLARE)
#undef RL_KERNEL_DECLARE
extern const rl_kernel_operator *const rl_kernel_operators[]; /* NULL-terminated, in the order of RL_KERNEL_OPERATORS */
extern const char *const rl_kernel_names[];                   /* names of the operators, in the same order */

struct rl_kernel_params {
  const rl_kernel_operator *op; /* set by the operator's defaults; not a field of a request */
  int dtype;                    /* rl_dtype */
  char variant[32];
  char build[16];                        /* "": the default */
  char shape[RL_KERNEL_SHAPE_TEXT_SIZE]; /* JSON object of the operator's shape */
  int64_t samples, pause_ms, seed;
};
extern const rl_field rl_kernel_params_fields[];

/* Sets all parameters except the shape to their defaults. Each operator's rl_workload.defaults calls it. */
void rl_kernel_defaults(rl_kernel_params *params, const rl_kernel_operator *op);
/* Members of rl_workload that all operators share. */
rl_cost rl_kernel_cost(const void *params, uint64_t images);
void rl_kernel_iteration_counts(const void *params, uint32_t *warmup, uint32_t *measured);
/* Initialises the workload of an operator whose definition has a function NAME_defaults. */
#define RL_KERNEL_WORKLOAD(NAME, SUMMARY)                                                         \
  {                                                                                               \
    .name = #NAME, .job_kind = "kernel", .summary = SUMMARY, .fields = rl_kernel_params_fields,   \
    .params_size = sizeof(rl_kernel_params), .defaults = NAME##_defaults, .cost = rl_kernel_cost, \
    .iteration_counts = rl_kernel_iteration_counts, .timing_mode = RL_TIMING_LAUNCHES             \
  }
/* Returns a · b, or RL_KERNEL_ELEMENTS_MAX + 1 where the product is larger than RL_KERNEL_ELEMENTS_MAX. a ≥ 0, b > 0. */
static inline int64_t rl_kernel_saturating_mul(int64_t a, int64_t b) {
  return a > RL_KERNEL_ELEMENTS_MAX / b ? (int64_t)RL_KERNEL_ELEMENTS_MAX + 1 : a * b;
}

/* Decodes a shape and checks its bounds. Returns -1 with RL_INPUT and a pointer at or below /shape. */
int rl_kernel_shape_decode(const rl_kernel_operator *op, const cJSON *object, rl_kernel_shape *shape, rl_error *err);
/* Decodes and checks params->shape in the same way. */
int rl_kernel_params_shape(const rl_kernel_params *params, rl_kernel_shape *shape, rl_error *err);
/* Returns -1 with RL_INPUT at /dtype when the operator does not support the type. */
int rl_kernel_dtype_check(const rl_kernel_operator *op, int dtype, rl_error *err);
/* Returns the index of the variant; -1 with RL_INPUT at /variant. */
int rl_kernel_variant_find(const rl_kernel_operator *op, const char *name, rl_error *err);
/* Returns -1 with RL_INPUT at /variant when the CPU does not have the variant. */
int rl_kernel_cpu_variant_check(const rl_kernel_operator *op, const char *name, rl_error *err);
/* Returns -1 with RL_INPUT when devices of this kind do not support the parameters. */
int rl_kernel_device_check(const rl_kernel_params *params, rl_device_kind kind, rl_error *err);
/* Returns the index of the build, 0 for ""; -1 with RL_INPUT at /build. */
int rl_kernel_build_find(const rl_kernel_operator *op, const char *name, rl_error *err);
/* Implement rl_field.describe: each function writes one property of every operator: what it computes, its sizes, its types, its
 * variants or its builds. */
void rl_kernel_describe_operators(char *text, size_t size);
void rl_kernel_describe_shapes(char *text, size_t size);
void rl_kernel_describe_dtypes(char *text, size_t size);
void rl_kernel_describe_variants(char *text, size_t size);
void rl_kernel_describe_builds(char *text, size_t size);
/* Returns the largest relative error ‖result − reference‖ / ‖reference‖ of a correct result. It is the sum of the operator's
 * tolerance, in units in the last place of double (fp64) or of float (all other types), and of half a unit in the last place of
 * the kernel's type for each rounding to that type. */
double rl_kernel_tolerance(const rl_kernel_params *params, const rl_kernel_shape *shape);
/* Generates elements [start, start + count) of an input in the kernel's type, from the seed. Any range can be generated at any
 * time, on any thread. */
void rl_kernel_fill_input(const rl_kernel_params *params, const rl_kernel_shape *shape, uint32_t input, int64_t start,
                          int64_t count, void *memory);

#ifdef __cplusplus
}
#endif
#endif
