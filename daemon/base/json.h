/* Parses untrusted JSON text with cJSON, after stricter checks. Stateless, thread-safe. */
#ifndef RL_BASE_JSON_H
#define RL_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses JSON text. Returns a value that the caller deletes; NULL with RL_INPUT (code: byte offset) if the text is not JSON, is
 * not UTF-8, has more than 32 levels of nesting, contains NUL or \u0000, or continues after the value. */
cJSON *rl_json_parse(const char *text, size_t length, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
