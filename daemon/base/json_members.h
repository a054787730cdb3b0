/* Adds members to a JSON object; a member whose value is unknown becomes null. */
#ifndef RL_BASE_JSON_MEMBERS_H
#define RL_BASE_JSON_MEMBERS_H

#include <cjson/cJSON.h>

#include "base/cleanup.h"

void rl_json_add_number(cJSON *object, const char *name, double value);   /* adds null when value is NAN or infinite */
void rl_json_add_text(cJSON *object, const char *name, const char *text); /* adds null when text is NULL or "" */
/* Adds a null for each name. names: ends with NULL. */
void rl_json_add_nulls(cJSON *object, const char *const names[]);

RL_DEFINE_CLEANUP(rl_json_cleanup, cJSON *, cJSON_Delete, NULL)

#endif
