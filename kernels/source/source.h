/* A kernel that a client posts as CUDA C++ or as a binary. The daemon checks requests with these functions, stores the text of an
 * accepted request under its hash, and sends it to a worker, which parses it again. These functions are C and need no CUDA; the
 * engine, which needs a GPU, is engine.cu. */
#ifndef RL_KERNELS_SOURCE_SOURCE_H
#define RL_KERNELS_SOURCE_SOURCE_H

#include "base/sha256.h"
#include "source/arguments.h"
#include "source/options.h"
#include "source/request.h"
#include "source/variants.h"
#include "workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- requests ---------------------------------------------------------------------------------------------------------- */

extern const rl_field rl_source_model_fields[];
extern const rl_source_request rl_source_request_defaults;

/* Rows of a field table (fields.h), for a struct that begins with an rl_source_request. */
#define RL_SOURCE_FIELDS                                                                                                       \
  RL_FIELD(rl_source_request, code, RL_FIELD_STRING, .maximum = RL_SOURCE_CODE_MAX,                                            \
           .summary = "CUDA C++; may include the CUDA headers and no other files"),                                            \
      RL_FIELD(rl_source_request, binary, RL_FIELD_STRING, .maximum = (RL_SOURCE_BINARY_MAX + 2) / 3 * 4,                      \
               .summary = "a cubin, a fatbin or PTX, in base64; given instead of code"),                                       \
      RL_FIELD(rl_source_request, entry, RL_FIELD_TEXT, .required = true,                                                      \
               .summary = "name of the kernel; for code also an expression such as scale<float, 4>; for a binary its symbol"), \
      RL_FIELD(rl_source_request, grid, RL_FIELD_INTS, .required = true, .minimum = 1, .maximum = 2147483647,                  \
               .summary = "blocks along x, y, z; missing ones are 1"),                                                         \
      RL_FIELD(rl_source_request, block, RL_FIELD_INTS, .required = true, .minimum = 1, .maximum = 1024,                       \
               .summary = "threads of a block along x, y, z; their product is at most 1024"),                                  \
      RL_FIELD(rl_source_request, cluster, RL_FIELD_INTS, .minimum = 1, .maximum = 16,                                         \
               .summary =                                                                                                      \
                   "blocks of a thread block cluster along x, y, z, of which grid is a multiple; default: no cluster, "        \
                   "or the kernel's __cluster_dims__"),                                                                        \
      RL_FIELD(rl_source_request, cooperative, RL_FIELD_BOOL,                                                                  \
               .summary = "cooperative launch: all blocks are resident, so that the grid can synchronize; default false"),     \
      RL_FIELD(rl_source_request, dynamic_shared_bytes, RL_FIELD_INT, .minimum = 0, .maximum = 1 << 20,                        \
               .summary = "dynamic shared memory of a block, in bytes; default 0"),                                            \
      RL_FIELD(rl_source_request, arguments, RL_FIELD_ARRAY, .maximum = RL_SOURCE_ARGUMENTS_MAX,                               \
               .fields = rl_source_argument_fields, .summary = "arguments of the kernel, in order"),                           \
      RL_FIELD(rl_source_request, options, RL_FIELD_ARRAY, .maximum = RL_SOURCE_OPTIONS_MAX,                                   \
               .summary = RL_SOURCE_OPTIONS_SUMMARY),                                                                          \
      RL_FIELD(rl_source_request, variants, RL_FIELD_ARRAY, .maximum = RL_SOURCE_VARIANTS_MAX,                                 \
               .fields = rl_source_variant_fields,                                                                             \
               .summary = "ways to compile the code, one run for each; default: one variant with the posted options"),         \
      RL_FIELD(rl_source_request, model, RL_FIELD_OBJECT, .fields = rl_source_model_fields,                                    \
               .summary = "compulsory bytes and operations of one launch, for rates and floors"),                              \
      RL_FIELD(rl_source_request, expected, RL_FIELD_OBJECT, .fields = rl_source_expected_fields,                              \
               .summary = "contents of an argument after one launch; a result outside the tolerance fails the job")
extern const rl_field rl_source_fields[]; /* RL_SOURCE_FIELDS: the members of the JSON text that is stored under its hash */

/* Checks a request. Its JSON document must outlive *source. Returns -1 with RL_INPUT and a JSON pointer when the request is
 * invalid; *source then needs no rl_source_clear. */
int rl_source_check(const rl_source_request *request, rl_source *source, rl_error *err);
/* Parses and checks a JSON text of rl_source_fields. */
int rl_source_read(const char *text, size_t length, rl_source *source, rl_error *err);
void rl_source_clear(rl_source *source);

/* --- the workload ------------------------------------------------------------------------------------------------------ */

typedef struct rl_source_params {
  /* Hash of the JSON text of the whole request (rl_source_fields). The worker receives that text before the parameters. The JSON
   * key of this member is "source". */
  char source_sha256[RL_SHA256_SIZE];
  char code_sha256[RL_SHA256_SIZE]; /* hash of the code or the binary alone */
  char variant[32];
  int64_t variant_index; /* the JSON key of this member is "index" */
  int64_t samples;
  rl_source_model model;
} rl_source_params;

extern const rl_workload rl_source_workload;

#ifdef __cplusplus
}
#endif
#endif
