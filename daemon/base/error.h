/* Error object: every fallible function returns 0 or -1 and fills a trailing rl_error. Fixed size, so reporting an
 * error never allocates. Library code fills errors; only the job, request and main boundaries log or answer with them. */
#ifndef RL_BASE_ERROR_H
#define RL_BASE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_domain {
  RL_OK = 0,
  RL_SYS,     /* code: errno */
  RL_INPUT,   /* invalid input of a client or a file; code: byte offset in malformed JSON, else 0 */
  RL_CUDA,    /* code: cudaError_t or CUresult */
  RL_CUPTI,   /* code: CUptiResult */
  RL_CUDNN,   /* code: cudnnStatus_t */
  RL_CUBLAS,  /* code: cublasStatus_t */
  RL_STORAGE, /* the database; code: rl_storage_code */
  RL_HTTP,    /* code: status */
  RL_WIRE     /* a malformed frame, or a worker that exited; code: rl_wire_code */
} rl_domain;

typedef enum rl_wire_code {
  RL_WIRE_CLOSED = 1, /* end of file at a frame boundary */
  RL_WIRE_TRUNCATED,
  RL_WIRE_MAGIC,
  RL_WIRE_BAD_VERSION,
  RL_WIRE_TYPE,
  RL_WIRE_TOO_LARGE,
  RL_WIRE_PAYLOAD,
  RL_WIRE_TIMEOUT,
  RL_WIRE_LIMIT
} rl_wire_code;

typedef enum rl_storage_code {
  RL_STORAGE_FULL = 1,   /* no space left on the disk: HTTP 507 */
  RL_STORAGE_LOCKED,     /* another program holds the database: HTTP 503 */
  RL_STORAGE_CONSTRAINT, /* a value violates a constraint of its table */
  RL_STORAGE_DENIED,     /* no permission for the file */
  RL_STORAGE_DAMAGED,    /* the file is not an intact database */
  RL_STORAGE_IO,         /* the disk reports an error */
  RL_STORAGE_MEMORY,     /* out of memory */
  RL_STORAGE_INTERNAL    /* an error of the program */
} rl_storage_code;

typedef struct rl_error {
  rl_domain domain;
  int code;
  char pointer[96];  /* RFC 6901 pointer to the invalid field; "": none */
  char message[384]; /* what failed, and what to do */
} rl_error;          /* both texts are UTF-8 */

/* Fills *err, unless err is NULL, and returns -1. */
int rl_fail(rl_error *err, rl_domain domain, int code, const char *format, ...) __attribute__((format(printf, 4, 5)));
/* The same with RL_INPUT for a field of a JSON document: rl_fail_at(err, "/epochs", "must be ..."). */
int rl_fail_at(rl_error *err, const char *pointer, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same with RL_SYS and errno: "<message>: <strerror>". */
int rl_fail_errno(rl_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prepends "<context>: " to the message; returns -1. */
int rl_wrap(rl_error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* "sys" "input" "cuda" ... */
const char *rl_domain_name(rl_domain domain);

#ifdef __cplusplus
}
#endif
#endif
