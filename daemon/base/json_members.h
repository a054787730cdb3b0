/* Members of a JSON object that may be null. */
#ifndef RL_BASE_JSON_MEMBERS_H
#define RL_BASE_JSON_MEMBERS_H

#include <cjson/cJSON.h>

#include "base/cleanup.h"

void rl_json_add_number(cJSON *object, const char *name, double value);   /* null unless finite */
void rl_json_add_text(cJSON *object, const char *name, const char *text); /* null when text is NULL or "" */
void rl_json_add_nulls(cJSON *object, const char *const names[]);         /* ends with NULL */

RL_DEFINE_CLEANUP(rl_json_cleanup, cJSON *, cJSON_Delete, NULL)

#endif
