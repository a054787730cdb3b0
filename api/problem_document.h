/* Makes the replies for errors: RFC 9457 problem documents (application/problem+json). One table has their codes, titles and
 * statuses. */
#ifndef RL_API_PROBLEM_DOCUMENT_H
#define RL_API_PROBLEM_DOCUMENT_H

#include <stdbool.h>

#include "base/error.h"

/* The order matters: an RL_HTTP error becomes the first problem of this list whose status equals the error's code. */
typedef enum rl_problem {
  RL_PROBLEM_BAD_REQUEST,
  RL_PROBLEM_BAD_JSON,
  RL_PROBLEM_INVALID_FIELD,
  RL_PROBLEM_INVALID_PARAMETER,
  RL_PROBLEM_UNAUTHORIZED,
  RL_PROBLEM_FORBIDDEN,
  RL_PROBLEM_NOT_FOUND,
  RL_PROBLEM_METHOD_NOT_ALLOWED,
  RL_PROBLEM_JOB_FINISHED,
  RL_PROBLEM_BODY_TOO_LARGE,
  RL_PROBLEM_UNSUPPORTED_MEDIA_TYPE,
  RL_PROBLEM_FOREIGN_HOST,
  RL_PROBLEM_IDEMPOTENCY_MISMATCH,
  RL_PROBLEM_QUEUE_FULL,
  RL_PROBLEM_INTERNAL,
  RL_PROBLEM_UNAVAILABLE,
  RL_PROBLEM_BUSY,
  RL_PROBLEM_DEADLINE,
  RL_PROBLEM_STORAGE_FULL,
  RL_PROBLEM_STORAGE_LOCKED,
  RL_PROBLEM_SUITE_RUN_ENDED, /* this problem and the next three stand for RL_SUITE errors, in the order of rl_suite_code */
  RL_PROBLEM_BASELINE_EXISTS,
  RL_PROBLEM_NOT_ELIGIBLE,
  RL_PROBLEM_MALFORMED_SUITE,
  RL_PROBLEM_COUNT
} rl_problem;

typedef struct rl_problem_kind {
  const char *code, *title;
  int status;
  int retry_after_s; /* 0: no Retry-After */
} rl_problem_kind;
extern const rl_problem_kind rl_problem_kinds[RL_PROBLEM_COUNT];

/* Returns the problem that a client gets for an error. parameter_error: err->json_pointer names a query parameter or a header,
 * not a field of the body. */
rl_problem rl_problem_of_error(const rl_error *err, bool parameter_error);
/* Returns the document as malloc'ed text; NULL if memory is exhausted. The messages of RL_PROBLEM_INTERNAL and
 * RL_PROBLEM_STORAGE_FULL are only logged: the document refers to the log instead. */
char *rl_problem_print(rl_problem problem, const rl_error *err, bool parameter_error);

#endif
