/* A trace that a client uploaded: the parameters of its run, and the formats. */
#ifndef RL_MODEL_IMPORTED_TRACE_H
#define RL_MODEL_IMPORTED_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"
#include "base/sha256.h"

#define RL_IMPORT_KIND "import" /* of its job */
#define RL_IMPORT_WORKLOAD "imported_trace"
/* The device of the queue whose thread imports traces. It is none of GET /devices, so an import neither waits for a device's job
 * nor delays one. */
#define RL_IMPORT_DEVICE "import"

typedef enum rl_trace_format {
  RL_TRACE_FORMAT_AUTO,
  RL_TRACE_FORMAT_KINETO, /* Chrome's trace event format, plain or gzip */
  RL_TRACE_FORMAT_NSYS    /* nsys's SQLite export */
} rl_trace_format;
extern const char *const rl_trace_format_names[]; /* "auto" "kineto" "nsys", NULL-terminated */

enum { RL_UPLOAD_ID_SIZE = 33, RL_FILE_NAME_SIZE = 201, RL_TRACE_MAGIC_BYTES = 64 };

typedef struct rl_imported_trace_params {
  char file_name[RL_FILE_NAME_SIZE]; /* as the client names it; "": it does not */
  int format;                        /* rl_trace_format */
  int64_t bytes;
  char sha256[RL_SHA256_SIZE];
  char upload[RL_UPLOAD_ID_SIZE]; /* name of the spooled file */
} rl_imported_trace_params;
extern const rl_field rl_imported_trace_fields[];

/* Replaces AUTO in *format by the format of a file that begins with these bytes. RL_INPUT: the file has another format than
 * *format, or one that can't be imported. */
int rl_trace_format_detect(const char *start, size_t length, rl_trace_format *format, rl_error *err);

#endif
