/* An imported trace is a file of another profiler that a client uploaded. It is imported by a job with a single run; this file
 * has the run's parameters and the formats of such files. */
#ifndef RL_MODEL_IMPORTED_TRACE_H
#define RL_MODEL_IMPORTED_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"
#include "base/sha256.h"

#define RL_IMPORT_KIND "import" /* kind of the job that imports a trace */
#define RL_IMPORT_WORKLOAD "imported_trace"
/* Name of the queue's device whose thread imports traces. GET /devices does not list it. Because imports have a device of their
 * own, an import neither waits for a job of another device nor delays one. */
#define RL_IMPORT_DEVICE "import"

typedef enum rl_trace_format {
  RL_TRACE_FORMAT_AUTO,
  RL_TRACE_FORMAT_KINETO, /* Chrome's trace event format, plain or gzip */
  RL_TRACE_FORMAT_NSYS    /* nsys's SQLite export */
} rl_trace_format;
extern const char *const rl_trace_format_names[]; /* "auto" "kineto" "nsys", NULL-terminated */

enum { RL_UPLOAD_ID_SIZE = 33, RL_FILE_NAME_SIZE = 201, RL_TRACE_MAGIC_BYTES = 64 };

typedef struct rl_imported_trace_params {
  char file_name[RL_FILE_NAME_SIZE]; /* name that the client gives the file; "": none */
  int format;                        /* rl_trace_format */
  int64_t bytes;
  char sha256[RL_SHA256_SIZE];
  char upload[RL_UPLOAD_ID_SIZE]; /* identifier of the upload, under which the daemon keeps the file until it is imported */
} rl_imported_trace_params;
extern const rl_field rl_imported_trace_fields[];

/* Replaces AUTO in *format by the format of the file that begins with these bytes (RL_TRACE_MAGIC_BYTES of them suffice). Fails
 * with RL_INPUT when the file has another format than *format names, or one that can't be imported. */
int rl_trace_format_detect(const char *start, size_t length, rl_trace_format *format, rl_error *err);

#endif
