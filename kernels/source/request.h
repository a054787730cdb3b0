/* The data of a posted kernel: rl_source_request is the request as decoded from JSON; rl_source has its checked contents. */
#ifndef RL_KERNELS_SOURCE_REQUEST_H
#define RL_KERNELS_SOURCE_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fields.h"
#include "source/elements.h"

enum {
  RL_SOURCE_CODE_MAX = 256 << 10, /* maximum bytes of CUDA C++ */
  RL_SOURCE_BINARY_MAX = 2 << 20, /* maximum bytes of a cubin, fatbin or PTX */
  RL_SOURCE_TEXT_MAX = 4 << 20,   /* maximum bytes of the whole request */
  RL_SOURCE_ENTRY_SIZE = 256,     /* bytes of a buffer for the kernel's name */
  RL_SOURCE_ARGUMENTS_MAX = 32,   /* maximum number of arguments of the kernel */
  RL_SOURCE_VARIANTS_MAX = 8,
  RL_SOURCE_POINTER_SIZE = 96 /* bytes of a buffer for a JSON pointer */
};

/* The pointers point into the JSON document from which the request was decoded. */
typedef struct rl_source_request {
  const char *code, *binary; /* exactly one is not NULL; binary is base64 */
  char entry[RL_SOURCE_ENTRY_SIZE];
  int64_t grid[3], block[3], cluster[3], dynamic_shared_bytes; /* cluster: 1, 1, 1 if the launch has no cluster attribute */
  bool cooperative;
  const cJSON *arguments, *options, *variants, *model, *expected;
} rl_source_request;

/* Initial contents of a buffer for which the client posted no bytes. */
typedef enum rl_source_init {
  RL_SOURCE_ZEROS,
  RL_SOURCE_ONES,
  RL_SOURCE_RANGE,
  RL_SOURCE_UNIFORM,
  RL_SOURCE_NORMAL
} rl_source_init;

/* Whether a kernel reads a buffer, writes it, or both. */
typedef enum rl_source_access {
  RL_SOURCE_INOUT, /* restored before every launch */
  RL_SOURCE_IN,    /* restored before every launch; a launch that changes it is wrong */
  RL_SOURCE_OUT    /* filled before every launch with 0xFF bytes, which are NaN in every floating-point type */
} rl_source_access;

typedef enum rl_source_argument_kind {
  RL_SOURCE_BUFFER,    /* device memory; the kernel gets its address */
  RL_SOURCE_SCALAR,    /* a number, by value */
  RL_SOURCE_TENSOR_MAP /* a CUtensorMap of a buffer, by value */
} rl_source_argument_kind;

enum { RL_SOURCE_TENSOR_RANK_MAX = 5, RL_SOURCE_TENSOR_MAP_BYTES = 128 };

/* The arguments of cuTensorMapEncodeTiled for a CUtensorMap of tiles. Dimension 0 is contiguous. */
typedef struct rl_source_tensor_map {
  int64_t argument;                                 /* index of the buffer; the elements have its type */
  int64_t shape[RL_SOURCE_TENSOR_RANK_MAX];         /* elements of each dimension; 0 after the last one */
  int64_t box[RL_SOURCE_TENSOR_RANK_MAX];           /* elements of a tile; as many as shape has */
  int64_t strides_bytes[RL_SOURCE_TENSOR_RANK_MAX]; /* [i]: stride of dimension i + 1; all 0: packed */
  int swizzle;                                      /* index into rl_source_swizzle_bytes */
  int l2_promotion;                                 /* index into rl_source_promotion_bytes */
  bool fills_nan;                                   /* elements outside of the tensor are NaN; false: 0 */
  int rank;
} rl_source_tensor_map;
extern const int rl_source_swizzle_bytes[], rl_source_promotion_bytes[]; /* element 0 is 0: no swizzle, no promotion */

typedef struct rl_source_argument {
  int kind;      /* rl_source_argument_kind */
  int access;    /* rl_source_access of a buffer */
  int type;      /* rl_source_type */
  int64_t count; /* elements of the buffer */
  int init;      /* rl_source_init, used when initial_contents is NULL */
  int64_t seed;
  unsigned char *initial_contents; /* of a buffer; owned; NULL: they are generated from init and seed */
  double value;                    /* of a scalar */
  rl_source_tensor_map tensor_map;
} rl_source_argument;

typedef struct rl_source_variant {
  char name[32];
  bool fast_math;
  int64_t max_registers;    /* per thread; 0: no limit */
  int64_t launch_bounds[2]; /* maximum threads per block, minimum blocks per SM; 0: not set */
  const cJSON *defines;
} rl_source_variant;

typedef struct rl_source_model { /* the request's `model`: the compulsory cost of one launch */
  double bytes, operations;      /* bytes moved and operations executed; NAN: not given */
} rl_source_model;

typedef struct rl_source {
  rl_source_request request;
  cJSON *document;       /* owned; NULL: the caller of rl_source_check owns the document */
  unsigned char *binary; /* owned; NULL: the request has code. A NUL follows it. */
  size_t binary_size;
  rl_source_argument arguments[RL_SOURCE_ARGUMENTS_MAX];
  int argument_count;
  int64_t buffer_bytes; /* sum over all buffers */
  rl_source_variant variants[RL_SOURCE_VARIANTS_MAX];
  int variant_count; /* at least 1 */
  rl_source_model model;
  int64_t expected_argument; /* index of the buffer to compare; -1: none */
  unsigned char *expected;   /* expected contents of that buffer; owned; NULL: none, or those that the reference computes */
  bool has_reference;
  rl_source_request reference; /* the kernel that computes the expected contents; only code, entry and launch configuration */
  double tolerance;            /* largest ‖result − expected‖ / ‖expected‖ of a correct result */
} rl_source;

#endif
