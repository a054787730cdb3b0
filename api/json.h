/* Members of a JSON object that may be null. */
#ifndef RL_API_JSON_H
#define RL_API_JSON_H

#include <cjson/cJSON.h>

void rl_json_number(cJSON *object, const char *name, double value);   /* null unless finite */
void rl_json_text(cJSON *object, const char *name, const char *text); /* null when NULL or "" */

#endif
