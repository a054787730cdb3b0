/* Parsing JSON text from outside: stricter than cJSON, which does the parsing. Stateless, thread-safe. */
#ifndef RL_BASE_JSON_H
#define RL_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parses JSON text. Returns NULL and fills err (RL_INPUT, code: byte offset) when the text is not JSON, is not UTF-8, is nested
 * deeper than 32, contains NUL (also as \u0000), or continues after the value. The caller deletes the result. */
cJSON *rl_json_parse(const char *text, size_t length, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
