/* The error object of all functions that can fail. A function that fails returns -1 and fills its last argument, an rl_error. An
 * rl_error has a fixed size, so that an error can be reported when memory is exhausted. Functions don't log their errors: the
 * code that ends a job, a request or the program logs the error or sends it to the client. */
#ifndef RL_BASE_ERROR_H
#define RL_BASE_ERROR_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_error_domain {
  RL_OK = 0,
  RL_ERRNO,   /* code: errno */
  RL_INPUT,   /* invalid input of a client or a file; code: byte offset in malformed JSON, else 0 */
  RL_CUDA,    /* code: cudaError_t or CUresult */
  RL_CUPTI,   /* code: CUptiResult */
  RL_CUDNN,   /* code: cudnnStatus_t */
  RL_CUBLAS,  /* code: cublasStatus_t */
  RL_STORAGE, /* the database; code: rl_storage_code */
  RL_HTTP,    /* code: status */
  RL_WIRE,    /* a connection between daemon and worker (wire/wire.h) or between rooflinectl and daemon; code: rl_wire_code */
  RL_LIMIT,   /* a request exceeded a limit on requests; code: rl_limit_code */
  RL_SUITE    /* an operation on a regression suite was refused; code: rl_suite_code */
} rl_error_domain;

typedef enum rl_wire_code {
  RL_WIRE_CLOSED = 1, /* end of file at a frame boundary */
  RL_WIRE_TRUNCATED,  /* end of file inside a frame */
  RL_WIRE_BAD_MAGIC,  /* the header does not begin with "RLFW" */
  RL_WIRE_BAD_VERSION,
  RL_WIRE_UNKNOWN_TYPE,
  RL_WIRE_FRAME_TOO_LARGE,
  RL_WIRE_MALFORMED_PAYLOAD,
  RL_WIRE_TIMEOUT,
  RL_WIRE_MEMORY_LIMIT /* the records of a pass exceed their limit in bytes, or memory is exhausted */
} rl_wire_code;

typedef enum rl_limit_code {
  RL_LIMIT_BUSY = 1, /* too many requests of this kind wait or run already: HTTP 503 */
  RL_LIMIT_DEADLINE  /* a request took longer than request_deadline_s: HTTP 503 */
} rl_limit_code;

typedef enum rl_suite_code {
  RL_SUITE_ENDED = 1,       /* the suite run has ended: HTTP 409 */
  RL_SUITE_BASELINE_EXISTS, /* HTTP 409 */
  RL_SUITE_NOT_ELIGIBLE,    /* the suite run can't be a baseline: HTTP 422 */
  RL_SUITE_MALFORMED        /* the file of the suite is malformed: HTTP 422 */
} rl_suite_code;

typedef enum rl_storage_code {
  RL_STORAGE_FULL = 1,    /* no space left on the disk: HTTP 503 */
  RL_STORAGE_LOCKED,      /* another program or thread holds the lock for writing: HTTP 503 */
  RL_STORAGE_CONSTRAINT,  /* a value violates a constraint of its table */
  RL_STORAGE_DENIED,      /* no permission for the file */
  RL_STORAGE_DAMAGED,     /* the file is not a database, or it is corrupt */
  RL_STORAGE_IO,          /* the disk reports an error */
  RL_STORAGE_MEMORY,      /* out of memory */
  RL_STORAGE_INTERRUPTED, /* a query exceeded its time limit, or its client disconnected */
  RL_STORAGE_INTERNAL     /* a bug in rooflined */
} rl_storage_code;

typedef struct rl_error {
  rl_error_domain domain;
  int code;
  /* UTF-8: RFC 6901 pointer to the invalid field; "": the error concerns no field, or the whole document */
  char json_pointer[96];
  char message[384]; /* UTF-8: what failed, and what the user can do about it */
} rl_error;

/* Fills *err, unless err is NULL, and returns -1. */
int rl_fail(rl_error *err, rl_error_domain domain, int code, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Does the same as rl_fail with RL_INPUT, for the field of a JSON document to which `pointer` points: rl_fail_at(err, "/epochs",
 * "must be ..."). */
int rl_fail_at(rl_error *err, const char *pointer, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Does the same as rl_fail with RL_ERRNO and errno. Appends ": <strerror(errno)>" to the message. */
int rl_fail_errno(rl_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prepends the formatted text and ": " to the message of err. Returns -1. */
int rl_wrap(rl_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns whether another program, or another thread of the daemon, holds the lock that a write to the database needs. */
bool rl_is_storage_locked(const rl_error *err);
/* Returns "sys", "input", "cuda" and so on. */
const char *rl_domain_name(rl_error_domain domain);

#ifdef __cplusplus
}
#endif
#endif
