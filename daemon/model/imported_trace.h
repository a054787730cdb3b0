/* The parameters of an import job's run, and the formats of trace files. An imported trace is a file of another profiler that a
 * client has uploaded; a job with a single run imports it. */
#ifndef RL_MODEL_IMPORTED_TRACE_H
#define RL_MODEL_IMPORTED_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/fields.h"
#include "base/sha256.h"

#define RL_IMPORT_KIND "import" /* kind of the job that imports a trace */
#define RL_IMPORT_WORKLOAD "imported_trace"
/* Id of the queue's device that runs imports; GET /devices does not list it. With a separate device, imports and the jobs of
 * other devices don't wait for each other. */
#define RL_IMPORT_DEVICE "import"

typedef enum rl_trace_format {
  RL_TRACE_FORMAT_AUTO,
  RL_TRACE_FORMAT_KINETO, /* Chrome's trace event format, plain or gzip */
  RL_TRACE_FORMAT_NSYS    /* nsys's SQLite export */
} rl_trace_format;
extern const char *const rl_trace_format_names[]; /* "auto" "kineto" "nsys", NULL-terminated */

enum { RL_UPLOAD_ID_SIZE = 33, RL_FILE_NAME_SIZE = 201, RL_TRACE_MAGIC_BYTES = 64 };

typedef struct rl_imported_trace_params {
  char file_name[RL_FILE_NAME_SIZE]; /* name that the client has given to the file; "": unknown */
  int format;                        /* rl_trace_format */
  int64_t bytes;
  char sha256[RL_SHA256_SIZE];
  char upload[RL_UPLOAD_ID_SIZE]; /* id of the upload (upload/spool.h), which keeps the file until it is imported */
} rl_imported_trace_params;
extern const rl_field rl_imported_trace_fields[];

/* Determines the format of a file from its first bytes; RL_TRACE_MAGIC_BYTES bytes are enough. If *format is
 * RL_TRACE_FORMAT_AUTO, sets *format to the file's format. Fails with RL_INPUT when the file has another format than *format, or
 * a format that can't be imported. */
int rl_trace_format_detect(const char *start, size_t length, rl_trace_format *format, rl_error *err);

#endif
