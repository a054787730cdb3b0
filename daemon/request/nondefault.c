/* Implements nondefault.h: encodes the parameters and the defaults as JSON, and compares their members. */
#include "request/nondefault.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/json_members.h"

/* Compares the values as text, because cJSON_Compare treats numbers that differ in their last bits as equal. */
static bool same_value(const cJSON *a, const cJSON *b) {
  RL_CLEANUP(rl_free_text) char *first = cJSON_PrintUnformatted(a);
  RL_CLEANUP(rl_free_text) char *second = cJSON_PrintUnformatted(b);
  return first != NULL && second != NULL && strcmp(first, second) == 0;
}

/* Returns the member whose key follows `key` in byte order, the first member if `key` is NULL, and NULL after the last one. */
static const cJSON *next_member(const cJSON *object, const char *key) {
  const cJSON *next = NULL;
  for (const cJSON *member = object->child; member != NULL; member = member->next)
    if ((key == NULL || strcmp(member->string, key) > 0) && (next == NULL || strcmp(member->string, next->string) < 0))
      next = member;
  return next;
}

static cJSON *changed_members(const cJSON *object, const cJSON *defaults);

/* Returns a copy of the value with sorted keys. Leaves out each member of an object that has the same value in default_value.
 * default_value NULL: leaves out none. */
static cJSON *copy_changed_sorted(const cJSON *value, const cJSON *default_value) {
  if (cJSON_IsObject(value)) return changed_members(value, default_value);
  if (!cJSON_IsArray(value)) return cJSON_Duplicate(value, true);
  cJSON *copy = cJSON_CreateArray();
  for (const cJSON *element = value->child; element != NULL; element = element->next)
    cJSON_AddItemToArray(copy, copy_changed_sorted(element, NULL));
  return copy;
}

static cJSON *changed_members(const cJSON *object, const cJSON *defaults) {
  cJSON *changed = cJSON_CreateObject();
  for (const cJSON *member = next_member(object, NULL); member != NULL; member = next_member(object, member->string)) {
    const cJSON *default_value = cJSON_GetObjectItemCaseSensitive(defaults, member->string);
    if (default_value == NULL || !same_value(member, default_value))
      cJSON_AddItemToObject(changed, member->string, copy_changed_sorted(member, default_value));
  }
  return changed;
}

static cJSON *encode(const rl_workload *workload, const void *params) {
  cJSON *object = cJSON_CreateObject();
  if (object != NULL && rl_fields_encode(workload->fields, params, object) == 0) return object;
  cJSON_Delete(object);
  return NULL;
}

char *rl_nondefault_params(const rl_workload *workload, const void *params) {
  void *default_params = calloc(1, workload->params_size);
  if (default_params == NULL) return NULL;
  workload->defaults(default_params);
  RL_CLEANUP(rl_json_cleanup) cJSON *values = encode(workload, params);
  RL_CLEANUP(rl_json_cleanup) cJSON *defaults = encode(workload, default_params);
  free(default_params);
  if (values == NULL || defaults == NULL) return NULL;
  RL_CLEANUP(rl_json_cleanup) cJSON *changed = changed_members(values, defaults);
  return changed != NULL ? cJSON_PrintUnformatted(changed) : NULL;
}
