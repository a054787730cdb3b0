/* JSON text from outside: cJSON parses it, after what it would take and we must not is refused. Stateless, thread-safe. */
#ifndef RL_BASE_JSON_H
#define RL_BASE_JSON_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Parse JSON text of a bounded length: NULL and a filled err (RL_INPUT, code = byte offset) on bad JSON, bytes that are no UTF-8,
 * nesting deeper than 32, an embedded NUL (\u0000 too) or trailing text. The caller deletes the result. */
cJSON *rl_json_parse(const char *text, size_t length, rl_error *err);

#ifdef __cplusplus
}
#endif
#endif
