/* Makes the JSON Schema of a field table. A test compares the schemas with openapi.json. */
#include "base/fields.h"

/* JSON Schema type of each rl_field_type. */
static const char *const schema_types[] = {
    [RL_FIELD_BOOL] = "boolean",  [RL_FIELD_INT] = "integer",   [RL_FIELD_REAL] = "number",   [RL_FIELD_NULLABLE_REAL] = "number",
    [RL_FIELD_TEXT] = "string",   [RL_FIELD_SHA256] = "string", [RL_FIELD_CHOICE] = "string", [RL_FIELD_CHOICES] = "array",
    [RL_FIELD_NAMES] = "array",   [RL_FIELD_JSON] = "object",   [RL_FIELD_INTS] = "array",    [RL_FIELD_STRING] = "string",
    [RL_FIELD_OBJECT] = "object", [RL_FIELD_ARRAY] = "array"};

static void add_bounds(cJSON *schema, const rl_field *field) {
  if (field->minimum == 0 && field->maximum == 0) return;
  cJSON_AddNumberToObject(schema, "minimum", field->minimum);
  cJSON_AddNumberToObject(schema, "maximum", field->maximum);
}

/* Adds minItems, maxItems and "items" with this type. Returns the schema of an item. */
static cJSON *add_items(cJSON *schema, const char *type, double min_items, double max_items) {
  cJSON_AddNumberToObject(schema, "minItems", min_items);
  cJSON_AddNumberToObject(schema, "maxItems", max_items);
  cJSON *items = cJSON_AddObjectToObject(schema, "items");
  cJSON_AddStringToObject(items, "type", type);
  return items;
}

/* Adds the keywords that describe the contents of strings, arrays and objects. For an object, copies the keywords of the schema
 * of field->fields, except "type", which the caller has already added. */
static void add_content_keywords(cJSON *schema, const rl_field *field) {
  if (field->type == RL_FIELD_INTS) add_bounds(add_items(schema, "integer", 1, (double)(field->size / sizeof(int64_t))), field);
  if (field->type == RL_FIELD_STRING) cJSON_AddNumberToObject(schema, "maxLength", field->maximum);
  if (field->type == RL_FIELD_ARRAY && field->fields == NULL) add_items(schema, "string", 0, field->maximum);
  if (field->fields == NULL) return;
  cJSON *nested = rl_fields_schema(field->fields);
  if (field->type == RL_FIELD_ARRAY) {
    cJSON_AddNumberToObject(schema, "minItems", field->minimum);
    cJSON_AddNumberToObject(schema, "maxItems", field->maximum);
    cJSON_AddItemToObject(schema, "items", nested);
    return;
  }
  cJSON_DeleteItemFromObject(nested, "type");
  while (nested != NULL && nested->child != NULL) {
    cJSON *member = cJSON_DetachItemViaPointer(nested, nested->child);
    cJSON_AddItemToObject(schema, member->string, member);
  }
  cJSON_Delete(nested);
}

static void add_summary(cJSON *property, const rl_field *field) {
  char text[4096];
  if (field->describe != NULL) field->describe(text, sizeof text);
  const char *summary = field->describe != NULL ? text : field->summary;
  if (summary != NULL) cJSON_AddStringToObject(property, "description", summary);
}

static bool is_list_of_names(const rl_field *field) { return field->type == RL_FIELD_CHOICES || field->type == RL_FIELD_NAMES; }

/* Adds "items" for a list of names. Returns the schema of a name. */
static cJSON *add_names(cJSON *schema, const rl_field *field) {
  if (field->type == RL_FIELD_CHOICES && !field->may_be_empty) cJSON_AddNumberToObject(schema, "minItems", 1);
  cJSON_AddBoolToObject(schema, "uniqueItems", 1);
  cJSON *items = cJSON_AddObjectToObject(schema, "items");
  cJSON_AddStringToObject(items, "type", "string");
  if (field->type == RL_FIELD_NAMES) {
    cJSON_AddStringToObject(items, "pattern", "^[A-Za-z0-9_.-]+$");
    cJSON_AddNumberToObject(items, "maxLength", RL_FIELD_NAME_MAX);
  }
  return items;
}

static void add_enum(cJSON *schema, const char *const *names) {
  cJSON *values = cJSON_AddArrayToObject(schema, "enum");
  for (int i = 0; names[i] != NULL; i++) cJSON_AddItemToArray(values, cJSON_CreateString(names[i]));
}

static void describe_field(cJSON *property, const rl_field *field) {
  cJSON_AddStringToObject(property, "type", schema_types[field->type]);
  add_summary(property, field);
  if (field->type == RL_FIELD_INT || field->type == RL_FIELD_REAL || field->type == RL_FIELD_NULLABLE_REAL)
    add_bounds(property, field);
  add_content_keywords(property, field);
  if (field->type == RL_FIELD_TEXT) cJSON_AddNumberToObject(property, "maxLength", (double)field->size - 1);
  if (field->type == RL_FIELD_SHA256) cJSON_AddStringToObject(property, "pattern", "^([0-9a-f]{64})?$");
  cJSON *holder = is_list_of_names(field) ? add_names(property, field) : property;
  if (field->names != NULL) add_enum(holder, field->names);
}

cJSON *rl_fields_schema(const rl_field *table) {
  cJSON *schema = cJSON_CreateObject(), *required = cJSON_CreateArray();
  cJSON_AddStringToObject(schema, "type", "object");
  cJSON *properties = cJSON_AddObjectToObject(schema, "properties");
  for (const rl_field *field = table; field->name != NULL; field++) {
    describe_field(cJSON_AddObjectToObject(properties, field->name), field);
    if (field->required) cJSON_AddItemToArray(required, cJSON_CreateString(field->name));
  }
  if (required->child != NULL) cJSON_AddItemToObject(schema, "required", required);
  else cJSON_Delete(required);
  cJSON_AddBoolToObject(schema, "additionalProperties", 0);
  return schema;
}
