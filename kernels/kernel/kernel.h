/* Single kernels as workloads of the kind "kernel". A family is what a kernel computes: its shape, inputs, variants, reference in
 * double precision and cost; it knows no device. The engines (cpu.c; cuda.cu with a launcher for each family) run every family
 * there is. To add one: a definition like those in elementwise.c, a launcher in a .cu file, a word in RL_KERNEL_FAMILIES.
 *
 * The output is so many equal contiguous pieces, each computable alone: an element of it, a row, an image. What of the inputs
 * some pieces need is the window of those pieces. References, the CPU engine and the check all work on a few pieces and their
 * windows at a time, so none of them ever holds a whole problem. What each variant measured is in
 * docs/measurements/h200-kernels.md. */
#ifndef RL_KERNELS_KERNEL_H
#define RL_KERNELS_KERNEL_H

#include <stdint.h>

#include "base/fields.h"
#include "kernel/dtype.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of the API's choices. */
/* clang-format off */
#define RL_KERNEL_FAMILIES(X)                                                                                                   \
  X(copy) X(relu) X(residual_add) X(bias_gelu) X(silu_mul) X(rope) X(softmax) X(rmsnorm) X(layernorm) X(transpose) X(reduction) \
  X(gemm) X(attention) X(conv) X(conv_dgrad) X(conv_wgrad) X(lombscargle)
/* clang-format on */

enum {
  RL_KERNEL_SIZES = 8,             /* named sizes of a shape */
  RL_KERNEL_INPUTS = 4,            /* of a kernel */
  RL_KERNEL_SHAPE_TEXT = 256,      /* a shape as JSON */
  RL_KERNEL_ELEMENTS_MAX = 1 << 28 /* of an input or of the output */
};

typedef struct rl_kernel_shape {
  int64_t size[RL_KERNEL_SIZES]; /* each family names its own, in order; those that a request leaves out are 1 */
} rl_kernel_shape;

/* A row of rl_kernel_family.shape: size[INDEX], from 1 on; a count that may be 0; something that is so or not. */
#define RL_KERNEL_SHAPE_FIELD(INDEX, NAME, TYPE, MINIMUM, MAXIMUM, SUMMARY)                                                     \
  {                                                                                                                             \
    .name = NAME, .type = TYPE, .offset = offsetof(rl_kernel_shape, size) + (INDEX) * sizeof(int64_t), .size = sizeof(int64_t), \
    .required = true, .minimum = (MINIMUM), .maximum = (MAXIMUM), .summary = SUMMARY                                            \
  }
#define RL_KERNEL_SIZE(INDEX, NAME, MAXIMUM, SUMMARY) RL_KERNEL_SHAPE_FIELD(INDEX, NAME, RL_FIELD_INT, 1, MAXIMUM, SUMMARY)
#define RL_KERNEL_COUNT(INDEX, NAME, MAXIMUM, SUMMARY) RL_KERNEL_SHAPE_FIELD(INDEX, NAME, RL_FIELD_INT, 0, MAXIMUM, SUMMARY)
#define RL_KERNEL_FLAG(INDEX, NAME, SUMMARY) RL_KERNEL_SHAPE_FIELD(INDEX, NAME, RL_FIELD_BOOL, 0, 0, SUMMARY)

/* The usual types of a family. */
#define RL_KERNEL_FLOATS (1u << RL_DTYPE_FP64 | 1u << RL_DTYPE_FP32 | 1u << RL_DTYPE_FP16 | 1u << RL_DTYPE_BF16)

/* Pieces [first, first + count) of the output from their windows of the inputs. */
typedef void rl_kernel_in_double(const rl_kernel_shape *shape, const double *const *in, int64_t first, int64_t count,
                                 double *out);
typedef void rl_kernel_in_float(const rl_kernel_shape *shape, const float *const *in, int64_t first, int64_t count, float *out);

typedef struct rl_kernel_family {
  rl_workload workload;
  const rl_field *shape;                                           /* of rl_kernel_shape, under the names of the API */
  int (*shape_check)(const rl_kernel_shape *shape, rl_error *err); /* what no bound of one size says; NULL: nothing */
  uint32_t dtypes;                                                 /* bit i: rl_dtype i */
  const char *const *variants; /* NULL-terminated, at most RL_RUNS_MAX; the engines know them by their index */
  uint32_t gpu_only; /* bit i: variant i would be another one's code on the CPU, which does not have it; never the first */
  const char *const *builds; /* how its code can come about, the usual way first; NULL: there is but one way */
  uint32_t input_count;
  /* In elements. All of these hold for shapes whose sizes lie within their bounds; rl_kernel_times keeps products from
   * overflowing. */
  int64_t (*input_elements)(const rl_kernel_shape *shape, uint32_t input);
  /* Turns numbers uniform in [-2, 2) into what the input holds there; NULL: they are it. */
  void (*inputs)(const rl_kernel_shape *shape, uint32_t input, int64_t start, int64_t count, double *values);
  int64_t (*output_elements)(const rl_kernel_shape *shape);
  int64_t (*pieces)(const rl_kernel_shape *shape);
  void (*window)(const rl_kernel_shape *shape, uint32_t input, int64_t first, int64_t count, int64_t *start, int64_t *elements);
  /* reference is written for exactness, the others for speed: the CPU engine's. */
  rl_kernel_in_double *reference, *compute_double;
  rl_kernel_in_float *compute_float;
  double (*bytes)(const rl_kernel_shape *shape, size_t element_size); /* NULL: each input read once and the output written once */
  double (*operations)(const rl_kernel_shape *shape);
  double (*reference_operations)(const rl_kernel_shape *shape); /* NULL: as many */
  /* Relative error that the arithmetic may make, in units in the last place of its type; 0: none at all. */
  double (*tolerance)(const rl_kernel_shape *shape);
  /* What tensor cores may add to it, in the same units: of tf32, fp16 and bf16. NULL: nothing. */
  double (*truncation)(const rl_kernel_shape *shape);
  int roundings; /* of intermediate values to the family's type, beside that of the result */
  /* How large an element of the output typically is, where cancellation can make it much smaller: errors are then relative to
   * this. NULL: errors are relative to what comes out. */
  double (*scale)(const rl_kernel_shape *shape);
} rl_kernel_family;

#define RL_KERNEL_DECLARE(NAME) extern const rl_kernel_family rl_kernel_##NAME;
RL_KERNEL_FAMILIES(RL_KERNEL_DECLARE)
#undef RL_KERNEL_DECLARE
extern const rl_kernel_family *const rl_kernel_families[]; /* NULL-terminated, in the order of the list */
extern const char *const rl_kernel_names[];                /* the same */

typedef struct rl_kernel_params {
  const rl_kernel_family *family; /* set by its defaults, no field */
  int dtype;                      /* rl_dtype */
  char variant[32];
  char build[16];                   /* "": the usual one */
  char shape[RL_KERNEL_SHAPE_TEXT]; /* JSON object of the family's shape */
  int64_t samples, seed;
} rl_kernel_params;
extern const rl_field rl_kernel_params_fields[];

/* For a family's definition: parameters with everything but the shape, and the hooks that all families share. */
void rl_kernel_defaults(rl_kernel_params *params, const rl_kernel_family *family);
rl_cost rl_kernel_cost(const void *params);
void rl_kernel_iteration_counts(const void *params, uint32_t *warmup, uint32_t *iterations);
/* The workload of a family whose definition has a function NAME_defaults. */
#define RL_KERNEL_WORKLOAD(NAME, SUMMARY)                                                         \
  {                                                                                               \
    .name = #NAME, .kind = "kernel", .summary = SUMMARY, .fields = rl_kernel_params_fields,       \
    .params_size = sizeof(rl_kernel_params), .defaults = NAME##_defaults, .cost = rl_kernel_cost, \
    .iteration_counts = rl_kernel_iteration_counts, .timing_mode = RL_TIMING_LAUNCHES             \
  }
/* a · b, or a number above RL_KERNEL_ELEMENTS_MAX where the product is; a ≥ 0, b > 0. */
static inline int64_t rl_kernel_times(int64_t a, int64_t b) {
  return a > RL_KERNEL_ELEMENTS_MAX / b ? (int64_t)RL_KERNEL_ELEMENTS_MAX + 1 : a * b;
}

/* The shape of the request's object; RL_INPUT with a pointer below /shape. */
int rl_kernel_shape_decode(const rl_kernel_family *family, const cJSON *object, rl_kernel_shape *shape, rl_error *err);
int rl_kernel_shape_of(const rl_kernel_params *params, rl_kernel_shape *shape, rl_error *err);
/* -1 with RL_INPUT at /dtype where the family has no such type. */
int rl_kernel_dtype_check(const rl_kernel_family *family, int dtype, rl_error *err);
/* Index of the variant; -1 with RL_INPUT at /variant. */
int rl_kernel_variant_find(const rl_kernel_family *family, const char *name, rl_error *err);
/* -1 with RL_INPUT at /variant where the CPU has no such variant of its own. */
int rl_kernel_cpu_variant_check(const rl_kernel_family *family, const char *name, rl_error *err);
/* Index of the build, 0 for "" and where there is but one; -1 with RL_INPUT at /build. */
int rl_kernel_build_find(const rl_kernel_family *family, const char *name, rl_error *err);
/* For rl_field.describe: what each kernel computes, and which sizes, types and variants each has. */
void rl_kernel_describe_families(char *text, size_t size);
void rl_kernel_describe_shapes(char *text, size_t size);
void rl_kernel_describe_dtypes(char *text, size_t size);
void rl_kernel_describe_variants(char *text, size_t size);
void rl_kernel_describe_builds(char *text, size_t size);
/* ‖result − reference‖ / ‖reference‖ up to which a result counts as right: the tolerance of the family's arithmetic, which is
 * in double for fp64 and in float for all others, and half a unit for each rounding to the type. */
double rl_kernel_tolerance(const rl_kernel_params *params, const rl_kernel_shape *shape);
/* What an input holds from element `start` on, as it lies in memory: uniform in [-2, 2) from the seed or what the family makes of
 * that, then rounded to the type. Anyone can tell any element at any time. */
void rl_kernel_input_fill(const rl_kernel_params *params, const rl_kernel_shape *shape, uint32_t input, int64_t start,
                          int64_t count, void *memory);

#ifdef __cplusplus
}
#endif
#endif
