/* Single kernels as workloads of the kind "kernel". A family is what a kernel computes: its shape, inputs, variants, reference
 * in double precision and cost; it knows no device. The engines (cpu.c; cuda.cu with a .cu file of kernels for each file of
 * families) run every family there is. To add one: a definition like those in elementwise.c, a launcher in a .cu file, a word
 * in RL_KERNEL_FAMILIES.
 *
 * Every buffer is rows × columns, row after row; an input that is `shared` is one row that all rows read. A family whose shape is a
 * count n has n rows of one column. */
#ifndef RL_KERNELS_KERNEL_H
#define RL_KERNELS_KERNEL_H

#include <stdint.h>

#include "base/fields.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the order of the API's choices. */
#define RL_KERNEL_FAMILIES(X) X(copy) X(relu) X(residual_add) X(bias_gelu) X(silu_mul)

typedef enum rl_dtype { RL_DTYPE_FP64, RL_DTYPE_FP32, RL_DTYPE_FP16, RL_DTYPE_BF16, RL_DTYPES } rl_dtype;
extern const char *const rl_dtype_names[]; /* "fp64" "fp32" "fp16" "bf16", NULL */
size_t rl_dtype_size(int dtype);
/* The number with all bits set (a NaN in every type) is what outputs are poisoned with. */
double rl_dtype_load(int dtype, const void *memory, size_t index);
void rl_dtype_store(int dtype, void *memory, size_t index, double value); /* rounds to nearest even */

typedef struct rl_kernel_shape {
  int64_t rows, columns;
} rl_kernel_shape;

enum { RL_KERNEL_INPUTS = 2, RL_KERNEL_ELEMENTS_MAX = 1 << 28 };

typedef struct rl_kernel_family {
  rl_workload workload;
  const rl_field *shape;       /* of rl_kernel_shape, under the names of the API */
  const char *const *variants; /* NULL-terminated, at most RL_RUNS_MAX; the engines know them by their index */
  uint32_t input_count;
  bool shared[RL_KERNEL_INPUTS];
  double operations; /* of one element of the output */
  double tolerance;  /* relative error that the arithmetic may make, in units in the last place of its type; 0: none at all */
  /* Some rows of the output from the same rows of the inputs. reference is written for exactness, the others for speed. */
  void (*reference)(const rl_kernel_shape *shape, const double *const *in, double *out);
  void (*compute_float)(const rl_kernel_shape *shape, const float *const *in, float *out);
  void (*compute_double)(const rl_kernel_shape *shape, const double *const *in, double *out);
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
  char shape[128]; /* JSON object of the family's shape */
  int64_t samples, seed;
} rl_kernel_params;
extern const rl_field rl_kernel_params_fields[];

/* For a family's definition: parameters with everything but the shape, and the hooks that all families share. */
void rl_kernel_defaults(rl_kernel_params *params, const rl_kernel_family *family);
rl_cost rl_kernel_cost(const void *params);
void rl_kernel_schedule(const void *params, uint32_t *warmup, uint32_t *iterations);

/* The shape of the request's object; RL_INPUT with a pointer below /shape. */
int rl_kernel_shape_decode(const rl_kernel_family *family, const cJSON *object, rl_kernel_shape *shape, rl_error *err);
int rl_kernel_shape_of(const rl_kernel_params *params, rl_kernel_shape *shape, rl_error *err);
/* Index of the variant; -1 with RL_INPUT at /variant. */
int rl_kernel_variant_find(const rl_kernel_family *family, const char *name, rl_error *err);
/* ‖result − reference‖ / ‖reference‖ up to which a result counts as right: the tolerance of the family's arithmetic, which is
 * in double for fp64 and in float for all others, and half a unit for rounding the result. */
double rl_kernel_tolerance(const rl_kernel_params *params);
/* Elements of an input. */
int64_t rl_kernel_input_elements(const rl_kernel_family *family, const rl_kernel_shape *shape, uint32_t input);
/* What an input holds: uniform in [-2, 2) from the seed, then rounded to the type. Anyone can tell any element at any time. */
double rl_kernel_input_value(const rl_kernel_params *params, uint32_t input, int64_t index);

#ifdef __cplusplus
}
#endif
#endif
