/* Parses JSON text that is not trusted: checks the text more strictly than cJSON, then parses it with cJSON. Stateless,
 * thread-safe. */
#ifndef RL_BASE_JSON_H
#define RL_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses JSON text and returns the value, which the caller deletes. Fails with NULL and RL_INPUT (code: offset in bytes) if the
 * text is not JSON or not UTF-8, has more than 32 levels of nesting, contains NUL or \u0000, or continues after the value. */
cJSON *rl_json_parse(const char *text, size_t length, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
