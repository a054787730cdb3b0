#include "base/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 32, LARGEST_STRUCT = 8192 };
static const double EXACT = 9007199254740992.0; /* 2^53 */

static const rl_field *find(const rl_field *table, const char *name) {
  for (const rl_field *field = table; field->name != NULL; field++)
    if (strcmp(field->name, name) == 0) return field;
  return NULL;
}

static int name_index(const char *const *names, const char *text) {
  for (int i = 0; names[i] != NULL; i++)
    if (strcmp(names[i], text) == 0) return i;
  return -1;
}

/* "one of a, b, c" for messages */
static const char *list_names(const char *const *names, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; names[i] != NULL && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", names[i]);
  return text;
}

static bool plain_text(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++)
    if (*c < 0x20 || *c == 0x7f) return false;
  return true;
}

/* RFC 6901: ~ is ~0, / is ~1 */
static void pointer_to(char *pointer, size_t size, const char *at, const char *name) {
  size_t used = (size_t)snprintf(pointer, size, "%s/", at);
  for (; *name != '\0' && used + 3 < size; name++) {
    if (*name == '~' || *name == '/') {
      pointer[used++] = '~';
      pointer[used++] = *name == '~' ? '0' : '1';
    } else {
      pointer[used++] = *name;
    }
  }
  pointer[used < size ? used : size - 1] = '\0';
}

static int decode_number(const rl_field *field, const cJSON *item, const char *at, void *out, rl_error *err) {
  bool whole = field->type == RL_FIELD_INT, bounded = field->minimum != 0 || field->maximum != 0;
  double value = item->valuedouble;
  if (!cJSON_IsNumber(item) || !isfinite(value) || (whole && (value != floor(value) || fabs(value) > EXACT)))
    return rl_fail_at(err, at, "%s must be a %s", field->name, whole ? "whole number" : "number");
  if (bounded && (value < field->minimum || value > field->maximum))
    return rl_fail_at(err, at, "%s must be between %.10g and %.10g", field->name, field->minimum, field->maximum);
  if (whole)
    memcpy(out, &(int64_t){(int64_t)value}, sizeof(int64_t));
  else
    memcpy(out, &value, sizeof value);
  return 0;
}

static int decode_choices(const rl_field *field, const cJSON *item, const char *at, void *out, rl_error *err) {
  char names[192], where[sizeof err->pointer];
  uint32_t bits = 0;
  int index = 0;
  if (!cJSON_IsArray(item) || item->child == NULL)
    return rl_fail_at(err, at, "%s must be a non-empty array of: %s", field->name,
                      list_names(field->names, names, sizeof names));
  for (const cJSON *member = item->child; member != NULL; member = member->next, index++) {
    snprintf(where, sizeof where, "%.80s/%d", at, index);
    int bit = cJSON_IsString(member) ? name_index(field->names, member->valuestring) : -1;
    if (bit < 0)
      return rl_fail_at(err, where, "%s takes: %s", field->name, list_names(field->names, names, sizeof names));
    if (bits & (1u << bit)) return rl_fail_at(err, where, "%s names %s twice", field->name, member->valuestring);
    bits |= 1u << bit;
  }
  memcpy(out, &bits, sizeof bits);
  return 0;
}

static int decode_one(const rl_field *field, const cJSON *item, const char *at, void *out, rl_error *err) {
  char names[192];
  switch (field->type) {
    case RL_FIELD_BOOL:
      if (!cJSON_IsBool(item)) return rl_fail_at(err, at, "%s must be true or false", field->name);
      memcpy(out, &(bool){cJSON_IsTrue(item)}, sizeof(bool));
      return 0;
    case RL_FIELD_MEASURE:
      if (cJSON_IsNull(item)) {
        memcpy(out, &(double){NAN}, sizeof(double));
        return 0;
      } /* fall through */
    case RL_FIELD_INT:
    case RL_FIELD_REAL: return decode_number(field, item, at, out, err);
    case RL_FIELD_TEXT:
      if (cJSON_IsNull(item) && !field->required) return 0;
      if (!cJSON_IsString(item) || !plain_text(item->valuestring))
        return rl_fail_at(err, at, "%s must be a string without control characters", field->name);
      if (strlen(item->valuestring) >= field->size)
        return rl_fail_at(err, at, "%s must be shorter than %zu bytes", field->name, field->size);
      memcpy(out, item->valuestring, strlen(item->valuestring) + 1);
      return 0;
    case RL_FIELD_CHOICE: {
      int choice = cJSON_IsString(item) ? name_index(field->names, item->valuestring) : -1;
      if (choice < 0)
        return rl_fail_at(err, at, "%s must be one of: %s", field->name,
                          list_names(field->names, names, sizeof names));
      memcpy(out, &choice, sizeof choice);
      return 0;
    }
    case RL_FIELD_CHOICES: return decode_choices(field, item, at, out, err);
    case RL_FIELD_JSON:
      if (cJSON_IsNull(item) && !field->required) return 0;
      if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
        return rl_fail_at(err, at, "%s must be an object or an array", field->name);
      if (!cJSON_PrintPreallocated((cJSON *)item, out, (int)field->size, 0))
        return rl_fail_at(err, at, "%s must be shorter than %zu bytes", field->name, field->size - 5);
      return 0;
  }
  return rl_fail_at(err, at, "%s has no known type", field->name);
}

int rl_fields_decode(const rl_field *table, const cJSON *object, const char *at, void *out, size_t struct_size,
                     rl_error *err) {
  _Alignas(16) unsigned char copy[LARGEST_STRUCT];
  char pointer[sizeof err->pointer];
  uint64_t seen = 0;
  if (struct_size > sizeof copy) return rl_fail(err, RL_SYS, 0, "a struct of %zu bytes is too large", struct_size);
  if (!cJSON_IsObject(object)) return rl_fail_at(err, at, "must be a JSON object");
  memcpy(copy, out, struct_size);
  for (const cJSON *item = object->child; item != NULL; item = item->next) {
    pointer_to(pointer, sizeof pointer, at, item->string);
    const rl_field *field = find(table, item->string);
    if (field == NULL) return rl_fail_at(err, pointer, "unknown key");
    uint64_t bit = UINT64_C(1) << (field - table);
    if (seen & bit) return rl_fail_at(err, pointer, "the key stands here twice");
    seen |= bit;
    if (decode_one(field, item, pointer, copy + field->offset, err) < 0) return -1;
  }
  for (const rl_field *field = table; field->name != NULL; field++)
    if (field->required && !(seen & (UINT64_C(1) << (field - table)))) {
      pointer_to(pointer, sizeof pointer, at, field->name);
      return rl_fail_at(err, pointer, "%s is required", field->name);
    }
  memcpy(out, copy, struct_size);
  return 0;
}

cJSON *rl_json_parse(const char *text, size_t length, rl_error *err) {
  /* cJSON recurses: bound the depth before it sees the text. */
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < length; i++) {
    char c = text[i];
    if (c == '\0') {
      rl_fail(err, RL_INPUT, (int)i, "the JSON text has a NUL byte at offset %zu", i);
      return NULL;
    }
    if (quoted) {
      if (c == '\\') i++;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > DEEPEST) {
        rl_fail(err, RL_INPUT, (int)i, "the JSON text is nested deeper than %d", DEEPEST);
        return NULL;
      }
    } else if (c == '}' || c == ']') {
      depth--;
    }
  }
  const char *end = NULL;
  cJSON *value = cJSON_ParseWithLengthOpts(text, length, &end, 0);
  if (value == NULL) {
    rl_fail(err, RL_INPUT, end != NULL ? (int)(end - text) : 0, "the body is not valid JSON (near byte %d)",
            end != NULL ? (int)(end - text) : 0);
    return NULL;
  }
  for (; end < text + length; end++)
    if (strchr(" \t\r\n", *end) == NULL) {
      rl_fail(err, RL_INPUT, (int)(end - text), "there is text after the JSON value, at byte %d", (int)(end - text));
      cJSON_Delete(value);
      return NULL;
    }
  return value;
}

int rl_fields_parse(const rl_field *table, const char *text, size_t length, void *out, size_t struct_size,
                    rl_error *err) {
  cJSON *object = rl_json_parse(text, length, err);
  if (object == NULL) return -1;
  int rc = rl_fields_decode(table, object, "", out, struct_size, err);
  cJSON_Delete(object);
  return rc;
}

/* cJSON writes 15 digits when that comes close; what then reads back as another number is written out with 17. */
static cJSON *encode_number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.15g", value);
  if (strtod(text, NULL) == value) return cJSON_CreateNumber(value);
  snprintf(text, sizeof text, "%.17g", value);
  return cJSON_CreateRaw(text);
}

static cJSON *encode_one(const rl_field *field, const void *in) {
  switch (field->type) {
    case RL_FIELD_BOOL: {
      bool value;
      memcpy(&value, in, sizeof value);
      return cJSON_CreateBool(value);
    }
    case RL_FIELD_INT: {
      int64_t value;
      memcpy(&value, in, sizeof value);
      return encode_number((double)value);
    }
    case RL_FIELD_REAL:
    case RL_FIELD_MEASURE: {
      double value;
      memcpy(&value, in, sizeof value);
      return isfinite(value) ? encode_number(value) : cJSON_CreateNull();
    }
    case RL_FIELD_TEXT: return cJSON_CreateString(in);
    case RL_FIELD_CHOICE: {
      int choice;
      memcpy(&choice, in, sizeof choice);
      return cJSON_CreateString(field->names[choice]);
    }
    case RL_FIELD_CHOICES: {
      uint32_t bits;
      memcpy(&bits, in, sizeof bits);
      cJSON *array = cJSON_CreateArray();
      for (int i = 0; array != NULL && field->names[i] != NULL; i++)
        if (bits & (1u << i)) cJSON_AddItemToArray(array, cJSON_CreateString(field->names[i]));
      return array;
    }
    case RL_FIELD_JSON: return *(const char *)in != '\0' ? cJSON_CreateRaw(in) : cJSON_CreateNull();
  }
  return NULL;
}

int rl_fields_encode(const rl_field *table, const void *in, cJSON *object) {
  for (const rl_field *field = table; field->name != NULL; field++) {
    cJSON *item = encode_one(field, (const unsigned char *)in + field->offset);
    if (item == NULL || !cJSON_AddItemToObject(object, field->name, item)) {
      cJSON_Delete(item);
      return -1;
    }
  }
  return 0;
}

char *rl_fields_print(const rl_field *table, const void *in) {
  cJSON *object = cJSON_CreateObject();
  char *text = NULL;
  if (object != NULL && rl_fields_encode(table, in, object) == 0) text = cJSON_PrintUnformatted(object);
  cJSON_Delete(object);
  return text;
}

cJSON *rl_fields_schema(const rl_field *table) {
  static const char *const types[] = {"boolean", "integer", "number", "number", "string", "string", "array", "object"};
  cJSON *schema = cJSON_CreateObject(), *required = cJSON_CreateArray();
  cJSON_AddStringToObject(schema, "type", "object");
  cJSON *properties = cJSON_AddObjectToObject(schema, "properties");
  for (const rl_field *field = table; field->name != NULL; field++) {
    cJSON *property = cJSON_AddObjectToObject(properties, field->name), *holder = property;
    cJSON_AddStringToObject(property, "type", types[field->type]);
    if (field->summary != NULL) cJSON_AddStringToObject(property, "description", field->summary);
    if ((field->type == RL_FIELD_INT || field->type == RL_FIELD_REAL) && (field->minimum != 0 || field->maximum != 0)) {
      cJSON_AddNumberToObject(property, "minimum", field->minimum);
      cJSON_AddNumberToObject(property, "maximum", field->maximum);
    }
    if (field->type == RL_FIELD_TEXT) cJSON_AddNumberToObject(property, "maxLength", (double)field->size - 1);
    if (field->type == RL_FIELD_CHOICES) {
      cJSON_AddNumberToObject(property, "minItems", 1);
      cJSON_AddBoolToObject(property, "uniqueItems", 1);
      holder = cJSON_AddObjectToObject(property, "items");
      cJSON_AddStringToObject(holder, "type", "string");
    }
    if (field->names != NULL) {
      cJSON *values = cJSON_AddArrayToObject(holder, "enum");
      for (int i = 0; field->names[i] != NULL; i++)
        cJSON_AddItemToArray(values, cJSON_CreateString(field->names[i]));
    }
    if (field->required) cJSON_AddItemToArray(required, cJSON_CreateString(field->name));
  }
  if (required->child != NULL) cJSON_AddItemToObject(schema, "required", required);
  else cJSON_Delete(required);
  cJSON_AddBoolToObject(schema, "additionalProperties", 0);
  return schema;
}
