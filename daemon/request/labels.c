/* Implements labels.h. */
#include "request/labels.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/utf8.h"
#include "request/spec_internal.h"

typedef struct labels {
  rl_spec_common common; /* only name and tags are used */
} labels;

static const rl_field label_fields[] = {RL_SPEC_LABEL_FIELDS(labels), {0}};

/* Replaces null by "" for the name and by [] for the tags. */
static void replace_nulls(cJSON *object) {
  if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, "name")))
    cJSON_ReplaceItemInObjectCaseSensitive(object, "name", cJSON_CreateString(""));
  if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, "tags")))
    cJSON_ReplaceItemInObjectCaseSensitive(object, "tags", cJSON_CreateArray());
}

int rl_job_check_name(const char *name, const char *what, const char *pointer, rl_error *err) {
  if (name[0] == '\0' || !rl_utf8_is_blank(name)) return 0;
  return rl_fail_at(err, pointer, "%s must not consist of white space or invisible characters only; an empty %s stands for none",
                    what, what);
}

int rl_spec_check_name(const cJSON *request, rl_error *err) {
  const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(request, "name"));
  return name != NULL ? rl_job_check_name(name, "name", "/name", err) : 0;
}

int rl_job_labels_parse(const char *text, size_t length, char patch[RL_JOB_LABELS_SIZE], rl_error *err) {
  labels decoded = {0};
  RL_CLEANUP(rl_json_cleanup) cJSON *object = rl_json_parse(text, length, err);
  if (object == NULL) return -1;
  replace_nulls(object);
  if (rl_fields_decode(label_fields, object, "", &decoded, sizeof decoded, err) < 0 || rl_spec_check_name(object, err) < 0)
    return -1;
  if (object->child == NULL) return rl_fail_at(err, "/name", "name or tags is required");
  return rl_spec_move_text(cJSON_PrintUnformatted(object), patch, RL_JOB_LABELS_SIZE, err);
}
