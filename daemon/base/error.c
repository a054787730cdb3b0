/* Implements error.h. A message that does not fit is truncated. All messages are valid UTF-8. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Replaces invalid UTF-8: a message may quote invalid text, and truncation may split its last character. */
static void sanitize(char *text) { rl_utf8_sanitize(text, strlen(text)); }

static void fill(rl_error *err, rl_error_domain domain, int code, const char *pointer, const char *format, va_list args) {
  if (err == NULL) return;
  char message[sizeof err->message];
  vsnprintf(message, sizeof message, format, args);
  err->domain = domain;
  err->code = code;
  snprintf(err->json_pointer, sizeof err->json_pointer, "%s", pointer);
  memcpy(err->message, message, sizeof message);
  sanitize(err->message);
  sanitize(err->json_pointer);
}

int rl_fail(rl_error *err, rl_error_domain domain, int code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fill(err, domain, code, "", format, args);
  va_end(args);
  return -1;
}

int rl_fail_at(rl_error *err, const char *pointer, const char *format, ...) {
  va_list args;
  va_start(args, format);
  fill(err, RL_INPUT, 0, pointer, format, args);
  va_end(args);
  return -1;
}

int rl_fail_errno(rl_error *err, const char *format, ...) {
  int code = errno;
  va_list args;
  va_start(args, format);
  fill(err, RL_ERRNO, code, "", format, args);
  va_end(args);
  if (err != NULL) {
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof err->message - used, ": %s", strerror(code));
  }
  return -1;
}

int rl_wrap(rl_error *err, const char *format, ...) {
  if (err == NULL) return -1;
  char message[sizeof err->message];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  size_t used = strlen(message);
  snprintf(message + used, sizeof message - used, ": %s", err->message);
  memcpy(err->message, message, sizeof message);
  sanitize(err->message);
  return -1;
}

bool rl_is_storage_locked(const rl_error *err) { return err->domain == RL_STORAGE && err->code == RL_STORAGE_LOCKED; }

const char *rl_domain_name(rl_error_domain domain) {
  switch (domain) {
    case RL_OK: return "ok";
    case RL_ERRNO: return "sys";
    case RL_INPUT: return "input";
    case RL_CUDA: return "cuda";
    case RL_CUPTI: return "cupti";
    case RL_CUDNN: return "cudnn";
    case RL_CUBLAS: return "cublas";
    case RL_STORAGE: return "storage";
    case RL_HTTP: return "http";
    case RL_WIRE: return "wire";
    case RL_LIMIT: return "limit";
    case RL_SUITE: return "suite";
  }
  return "unknown";
}
