/* Implements json_members.h with cJSON. */
#include "base/json_members.h"

#include <math.h>
#include <stddef.h>

void rl_json_add_number(cJSON *object, const char *name, double value) {
  if (isfinite(value)) cJSON_AddNumberToObject(object, name, value);
  else cJSON_AddNullToObject(object, name);
}

void rl_json_add_text(cJSON *object, const char *name, const char *text) {
  if (text != NULL && text[0] != '\0') cJSON_AddStringToObject(object, name, text);
  else cJSON_AddNullToObject(object, name);
}

void rl_json_add_nulls(cJSON *object, const char *const names[]) {
  for (size_t i = 0; names[i] != NULL; i++) cJSON_AddNullToObject(object, names[i]);
}
