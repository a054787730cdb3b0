/* A kernel that a client posted, as CUDA C++ or as a binary: what may be said about it, checked. The daemon checks with it
 * what it accepts, keeps the accepted text under its hash, and a worker reads it back. Plain C; the engine is source.cu with
 * fill.cu, for a GPU alone. */
#ifndef RL_KERNELS_SOURCE_SOURCE_H
#define RL_KERNELS_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/fields.h"
#include "base/sha256.h"
#include "source/options.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RL_SOURCE_CODE_MAX = 256 << 10, /* bytes of text */
  RL_SOURCE_BINARY_MAX = 2 << 20, /* bytes of a cubin, fatbin or PTX */
  RL_SOURCE_TEXT_MAX = 4 << 20,   /* bytes of all that is said */
  RL_SOURCE_ENTRY_SIZE = 256,
  RL_SOURCE_ARGUMENTS = 32,
  RL_SOURCE_VARIANTS = 8
};

/* --- as it is said ----------------------------------------------------------------------------------------------------- */

typedef struct rl_source_request { /* pointers are into the document that it was decoded from */
  const char *code, *binary;       /* one of them; binary in base64 */
  char entry[RL_SOURCE_ENTRY_SIZE];
  int64_t grid[3], block[3], dynamic_shared_bytes;
  const cJSON *arguments, *options, *variants, *model, *expected;
} rl_source_request;

extern const rl_field rl_source_argument_fields[], rl_source_variant_fields[], rl_source_model_fields[],
    rl_source_expected_fields[];
extern const rl_source_request rl_source_request_defaults;

/* Rows of the table of a struct that begins with an rl_source_request. */
#define RL_SOURCE_FIELDS                                                                                                       \
  RL_FIELD(rl_source_request, code, RL_FIELD_STRING, .maximum = RL_SOURCE_CODE_MAX,                                            \
           .summary = "CUDA C++; may include the CUDA headers and no other files"),                                            \
      RL_FIELD(rl_source_request, binary, RL_FIELD_STRING, .maximum = (RL_SOURCE_BINARY_MAX + 2) / 3 * 4,                      \
               .summary = "instead of code: a cubin, a fatbin or PTX, in base64"),                                             \
      RL_FIELD(rl_source_request, entry, RL_FIELD_TEXT, .required = true,                                                      \
               .summary = "the kernel: a name, or in code an expression such as scale<float, 4>; in a binary its symbol"),     \
      RL_FIELD(rl_source_request, grid, RL_FIELD_INTS, .required = true, .minimum = 1, .maximum = 2147483647,                  \
               .summary = "blocks along x, y, z; what is left out is 1"),                                                      \
      RL_FIELD(rl_source_request, block, RL_FIELD_INTS, .required = true, .minimum = 1, .maximum = 1024,                       \
               .summary = "threads of a block along x, y, z; at most 1024 together"),                                          \
      RL_FIELD(rl_source_request, dynamic_shared_bytes, RL_FIELD_INT, .minimum = 0, .maximum = 1 << 20,                        \
               .summary = "shared memory of a block beside what the code declares; default 0"),                                \
      RL_FIELD(rl_source_request, arguments, RL_FIELD_ARRAY, .maximum = RL_SOURCE_ARGUMENTS,                                   \
               .fields = rl_source_argument_fields, .summary = "of the kernel, in order"),                                     \
      RL_FIELD(rl_source_request, options, RL_FIELD_ARRAY, .maximum = RL_SOURCE_OPTIONS_MAX,                                   \
               .summary = RL_SOURCE_OPTIONS_SUMMARY),                                                                          \
      RL_FIELD(rl_source_request, variants, RL_FIELD_ARRAY, .maximum = RL_SOURCE_VARIANTS, .fields = rl_source_variant_fields, \
               .summary = "ways of compiling the code, a run for each; default: one, as it was posted"),                       \
      RL_FIELD(rl_source_request, model, RL_FIELD_OBJECT, .fields = rl_source_model_fields,                                    \
               .summary = "the least that one launch must do, for rates and floors"),                                          \
      RL_FIELD(rl_source_request, expected, RL_FIELD_OBJECT, .fields = rl_source_expected_fields,                              \
               .summary = "what an argument must hold after one launch; a result that is further off fails the job")
extern const rl_field rl_source_fields[]; /* those rows alone: what is kept under a hash */

/* --- as it is meant ---------------------------------------------------------------------------------------------------- */

typedef enum rl_source_type { /* of the elements of buffers, and of scalars */
                              RL_SOURCE_FP64,
                              RL_SOURCE_FP32,
                              RL_SOURCE_FP16,
                              RL_SOURCE_BF16,
                              RL_SOURCE_INT8,
                              RL_SOURCE_UINT8,
                              RL_SOURCE_INT16,
                              RL_SOURCE_UINT16,
                              RL_SOURCE_INT32,
                              RL_SOURCE_UINT32,
                              RL_SOURCE_INT64,
                              RL_SOURCE_UINT64,
                              RL_SOURCE_TYPES
} rl_source_type;
extern const char *const rl_source_type_names[];
size_t rl_source_type_size(int type);
double rl_source_load(int type, const void *memory, size_t index);
void rl_source_store(int type, void *memory, size_t index, double value); /* value lies within the type */

typedef enum rl_source_init {
  RL_SOURCE_ZEROS,
  RL_SOURCE_ONES,
  RL_SOURCE_RANGE,
  RL_SOURCE_UNIFORM,
  RL_SOURCE_NORMAL
} rl_source_init;

typedef struct rl_source_argument {
  bool buffer;   /* else a scalar */
  int type;      /* rl_source_type */
  int64_t count; /* elements of the buffer */
  int init;      /* rl_source_init, where there are no bytes */
  int64_t seed;
  unsigned char *bytes; /* what the buffer holds; owned; NULL: as init says */
  double value;         /* of the scalar */
} rl_source_argument;

typedef struct rl_source_variant {
  char name[32];
  bool fast_math;
  int64_t max_registers;    /* 0: as many as the compiler likes */
  int64_t launch_bounds[2]; /* threads, and blocks on a multiprocessor; 0: not said */
  const cJSON *defines;
} rl_source_variant;

typedef struct rl_source_model {
  double bytes, operations; /* NAN: not said */
} rl_source_model;

typedef struct rl_source {
  rl_source_request request;
  cJSON *document;       /* owned where the source was read from text */
  unsigned char *binary; /* owned; NULL: code. A NUL follows. */
  size_t binary_size;
  rl_source_argument arguments[RL_SOURCE_ARGUMENTS];
  int argument_count;
  int64_t buffer_bytes; /* of all buffers together */
  rl_source_variant variants[RL_SOURCE_VARIANTS];
  int variant_count; /* at least one */
  rl_source_model model;
  int64_t expected_argument; /* -1: nothing is expected */
  unsigned char *expected;   /* as many bytes as the argument has; owned */
  double tolerance;          /* ‖result − expected‖ / ‖expected‖ */
} rl_source;

/* Check a request, whose document must outlive the source. RL_INPUT with a pointer; nothing is to be cleared then. */
int rl_source_check(const rl_source_request *request, rl_source *source, rl_error *err);
/* The same from text of rl_source_fields. */
int rl_source_read(const char *text, size_t length, rl_source *source, rl_error *err);
void rl_source_clear(rl_source *source);
/* What the compiler is told for a variant. */
int rl_source_compile_options(const rl_source *source, int variant, rl_source_options *options, rl_error *err);

/* --- as a workload ----------------------------------------------------------------------------------------------------- */

typedef struct rl_source_params {
  char source[RL_SHA256_SIZE];      /* of the text of rl_source_fields, which goes to the worker ahead of the request */
  char code_sha256[RL_SHA256_SIZE]; /* of the code or binary alone */
  char variant[32];
  int64_t index; /* of the variant */
  int64_t samples;
  rl_source_model model;
} rl_source_params;

extern const rl_workload rl_source_workload;

#ifdef __cplusplus
}
#endif
#endif
