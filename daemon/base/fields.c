#include "base/fields.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

enum { DEEPEST = 32, LARGEST_STRUCT = 16384 };
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
  return rl_utf8_valid(text, strlen(text));
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
  bool whole = field->type == RL_FIELD_INT || field->type == RL_FIELD_INTS, bounded = field->minimum != 0 || field->maximum != 0;
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
  char names[512], where[sizeof err->pointer];
  uint32_t bits = 0;
  int index = 0;
  if (!cJSON_IsArray(item) || (item->child == NULL && !field->may_be_empty))
    return rl_fail_at(err, at, "%s must be %s array of: %s", field->name, field->may_be_empty ? "an" : "a non-empty",
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

static int decode_ints(const rl_field *field, const cJSON *item, const char *at, void *out, rl_error *err) {
  char where[sizeof err->pointer];
  int most = (int)(field->size / sizeof(int64_t)), index = 0;
  if (!cJSON_IsArray(item) || item->child == NULL || cJSON_GetArraySize(item) > most)
    return rl_fail_at(err, at, "%s must be an array of 1 to %d whole numbers", field->name, most);
  for (const cJSON *member = item->child; member != NULL; member = member->next, index++) {
    snprintf(where, sizeof where, "%.80s/%d", at, index);
    if (decode_number(field, member, where, (int64_t *)out + index, err) < 0) return -1;
  }
  return 0;
}

static bool is_name(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  size_t length = strspn(text, letters);
  return length > 0 && length <= RL_FIELD_NAME_MOST && text[length] == '\0';
}

/* Whether a line of text is this name. */
static bool has_line(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *line = text; line != NULL && *line != '\0'; line = strchr(line, '\n'), line += line != NULL)
    if (strncmp(line, name, length) == 0 && (line[length] == '\n' || line[length] == '\0')) return true;
  return false;
}

static int decode_name_list(const rl_field *field, const cJSON *item, const char *at, char *out, rl_error *err) {
  char where[sizeof err->pointer];
  size_t used = 0;
  int index = 0;
  if (!cJSON_IsArray(item)) return rl_fail_at(err, at, "%s must be an array of names", field->name);
  out[0] = '\0';
  for (const cJSON *member = item->child; member != NULL; member = member->next, index++) {
    snprintf(where, sizeof where, "%.80s/%d", at, index);
    if (!cJSON_IsString(member) || !is_name(member->valuestring))
      return rl_fail_at(err, where, "%s takes names of at most %d letters, digits, _ and .", field->name, RL_FIELD_NAME_MOST);
    if (has_line(out, member->valuestring)) return rl_fail_at(err, where, "%s names %s twice", field->name, member->valuestring);
    if (used + strlen(member->valuestring) + 2 > field->size)
      return rl_fail_at(err, where, "%s must be shorter than %zu bytes together", field->name, field->size);
    used += (size_t)snprintf(out + used, field->size - used, "%s%s", index > 0 ? "\n" : "", member->valuestring);
  }
  return 0;
}

/* What stays in the document; null is absent. */
static int decode_pointer(const rl_field *field, const cJSON *item, const char *at, void *out, rl_error *err) {
  const void *found = item;
  if (cJSON_IsNull(item) && !field->required) return 0;
  if (field->type == RL_FIELD_STRING) {
    found = item->valuestring;
    if (!cJSON_IsString(item) || strlen(item->valuestring) > (size_t)field->maximum)
      return rl_fail_at(err, at, "%s must be a string of at most %.0f bytes", field->name, field->maximum);
  } else if (field->type == RL_FIELD_OBJECT) {
    if (!cJSON_IsObject(item)) return rl_fail_at(err, at, "%s must be an object", field->name);
  } else if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) > (int)field->maximum) {
    return rl_fail_at(err, at, "%s must be an array of at most %.0f %s", field->name, field->maximum,
                      field->fields != NULL ? "objects" : "strings");
  }
  memcpy(out, &found, sizeof found);
  return 0;
}

static int decode_one(const rl_field *field, const cJSON *item, const char *at, void *out, rl_error *err) {
  char names[192];
  switch (field->type) {
    case RL_FIELD_BOOL:
      if (!cJSON_IsBool(item)) return rl_fail_at(err, at, "%s must be true or false", field->name);
      if (field->size == sizeof(int64_t)) memcpy(out, &(int64_t){cJSON_IsTrue(item)}, sizeof(int64_t));
      else memcpy(out, &(bool){cJSON_IsTrue(item)}, sizeof(bool));
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
        return rl_fail_at(err, at, "%s must be a string of UTF-8 without control characters", field->name);
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
    case RL_FIELD_NAMES: return decode_name_list(field, item, at, out, err);
    case RL_FIELD_JSON:
      if (cJSON_IsNull(item) && !field->required) return 0;
      if (!cJSON_IsObject(item) && !cJSON_IsArray(item))
        return rl_fail_at(err, at, "%s must be an object or an array", field->name);
      if (!cJSON_PrintPreallocated((cJSON *)item, out, (int)field->size, 0))
        return rl_fail_at(err, at, "%s must be shorter than %zu bytes", field->name, field->size - 5);
      return 0;
    case RL_FIELD_INTS: return decode_ints(field, item, at, out, err);
    case RL_FIELD_STRING:
    case RL_FIELD_OBJECT:
    case RL_FIELD_ARRAY: return decode_pointer(field, item, at, out, err);
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

static int refuse_text(size_t at, const char *what, rl_error *err) {
  return rl_fail(err, RL_INPUT, (int)at, "the JSON text %s, at byte %zu", what, at);
}

/* What cJSON takes and we must not: nesting, over which it recurses; NUL, also as an escape, which ends a text for us and not for
 * the sender; bytes that are no UTF-8, which it would hand on. */
static int check_text(const char *text, size_t length, rl_error *err) {
  int depth = 0;
  bool quoted = false, escaped = false;
  for (size_t at = 0, size = 0; at < length; at += size) {
    char c = text[at];
    size = rl_utf8_size(text + at, length - at);
    if (size == 0) return refuse_text(at, "is not UTF-8", err);
    if (c == '\0') return refuse_text(at, "has a NUL byte", err);
    if (escaped) {
      if (length - at >= 5 && memcmp(text + at, "u0000", 5) == 0) return refuse_text(at, "has an escaped NUL", err);
      escaped = false;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (quoted) {
      escaped = c == '\\';
    } else if (c == '{' || c == '[') {
      if (++depth > DEEPEST) return refuse_text(at, "is nested too deep", err);
    } else if (c == '}' || c == ']') {
      depth--;
    }
  }
  return 0;
}

cJSON *rl_json_parse(const char *text, size_t length, rl_error *err) {
  const char *end = NULL;
  if (check_text(text, length, err) < 0) return NULL;
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

static const void *pointed_at(const void *in) {
  const void *pointer;
  memcpy(&pointer, in, sizeof pointer);
  return pointer;
}

static cJSON *encode_name_list(const char *text) {
  cJSON *array = cJSON_CreateArray();
  while (array != NULL && *text != '\0') {
    char name[RL_FIELD_NAME_MOST + 1];
    size_t length = strcspn(text, "\n");
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    cJSON_AddItemToArray(array, cJSON_CreateString(name));
    text += length + (text[length] == '\n');
  }
  return array;
}

static cJSON *encode_one(const rl_field *field, const void *in) {
  switch (field->type) {
    case RL_FIELD_BOOL: {
      bool value;
      int64_t whole;
      memcpy(&value, in, sizeof value);
      if (field->size == sizeof whole) memcpy(&whole, in, sizeof whole);
      return cJSON_CreateBool(field->size == sizeof whole ? whole != 0 : value);
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
    case RL_FIELD_NAMES: return encode_name_list(in);
    case RL_FIELD_JSON: return *(const char *)in != '\0' ? cJSON_CreateRaw(in) : cJSON_CreateNull();
    case RL_FIELD_INTS: {
      cJSON *array = cJSON_CreateArray();
      for (size_t i = 0; array != NULL && i < field->size / sizeof(int64_t); i++)
        cJSON_AddItemToArray(array, encode_number((double)((const int64_t *)in)[i]));
      return array;
    }
    case RL_FIELD_STRING: return cJSON_CreateString(pointed_at(in));
    case RL_FIELD_OBJECT:
    case RL_FIELD_ARRAY: return cJSON_Duplicate(pointed_at(in), true);
  }
  return NULL;
}

static bool absent(const rl_field *field, const void *in) {
  bool pointer = field->type == RL_FIELD_STRING || field->type == RL_FIELD_OBJECT || field->type == RL_FIELD_ARRAY;
  return pointer && pointed_at(in) == NULL;
}

int rl_fields_encode(const rl_field *table, const void *in, cJSON *object) {
  for (const rl_field *field = table; field->name != NULL; field++) {
    const void *member = (const unsigned char *)in + field->offset;
    if (absent(field, member)) continue;
    cJSON *item = encode_one(field, member);
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

static const char *const schema_types[] = {"boolean", "integer", "number", "number", "string", "string", "array",
                                           "array",   "object",  "array",  "string", "object", "array"};

static void add_bounds(cJSON *schema, const rl_field *field) {
  if (field->minimum == 0 && field->maximum == 0) return;
  cJSON_AddNumberToObject(schema, "minimum", field->minimum);
  cJSON_AddNumberToObject(schema, "maximum", field->maximum);
}

/* "items" of an array of one type; the holder of what its members may be. */
static cJSON *add_items(cJSON *schema, const char *type, double least, double most) {
  cJSON_AddNumberToObject(schema, "minItems", least);
  cJSON_AddNumberToObject(schema, "maxItems", most);
  cJSON *items = cJSON_AddObjectToObject(schema, "items");
  cJSON_AddStringToObject(items, "type", type);
  return items;
}

/* What types that hold others say more; the schema of a table begins with its own "type". */
static void describe_parts(cJSON *schema, const rl_field *field) {
  if (field->type == RL_FIELD_INTS) add_bounds(add_items(schema, "integer", 1, (double)(field->size / sizeof(int64_t))), field);
  if (field->type == RL_FIELD_STRING) cJSON_AddNumberToObject(schema, "maxLength", field->maximum);
  if (field->type == RL_FIELD_ARRAY && field->fields == NULL) add_items(schema, "string", 0, field->maximum);
  if (field->fields == NULL) return;
  cJSON *part = rl_fields_schema(field->fields);
  if (field->type == RL_FIELD_ARRAY) {
    cJSON_AddNumberToObject(schema, "minItems", 0);
    cJSON_AddNumberToObject(schema, "maxItems", field->maximum);
    cJSON_AddItemToObject(schema, "items", part);
    return;
  }
  cJSON_DeleteItemFromObject(part, "type");
  while (part != NULL && part->child != NULL) {
    cJSON *member = cJSON_DetachItemViaPointer(part, part->child);
    cJSON_AddItemToObject(schema, member->string, member);
  }
  cJSON_Delete(part);
}

static void add_summary(cJSON *property, const rl_field *field) {
  char text[4096];
  if (field->describe != NULL) field->describe(text, sizeof text);
  const char *summary = field->describe != NULL ? text : field->summary;
  if (summary != NULL) cJSON_AddStringToObject(property, "description", summary);
}

cJSON *rl_fields_schema(const rl_field *table) {
  cJSON *schema = cJSON_CreateObject(), *required = cJSON_CreateArray();
  cJSON_AddStringToObject(schema, "type", "object");
  cJSON *properties = cJSON_AddObjectToObject(schema, "properties");
  for (const rl_field *field = table; field->name != NULL; field++) {
    cJSON *property = cJSON_AddObjectToObject(properties, field->name), *holder = property;
    cJSON_AddStringToObject(property, "type", schema_types[field->type]);
    add_summary(property, field);
    if (field->type == RL_FIELD_INT || field->type == RL_FIELD_REAL) add_bounds(property, field);
    describe_parts(property, field);
    if (field->type == RL_FIELD_TEXT) cJSON_AddNumberToObject(property, "maxLength", (double)field->size - 1);
    if (field->type == RL_FIELD_CHOICES || field->type == RL_FIELD_NAMES) {
      if (field->type == RL_FIELD_CHOICES && !field->may_be_empty) cJSON_AddNumberToObject(property, "minItems", 1);
      cJSON_AddBoolToObject(property, "uniqueItems", 1);
      holder = cJSON_AddObjectToObject(property, "items");
      cJSON_AddStringToObject(holder, "type", "string");
    }
    if (field->type == RL_FIELD_NAMES) {
      cJSON_AddStringToObject(holder, "pattern", "^[A-Za-z0-9_.]+$");
      cJSON_AddNumberToObject(holder, "maxLength", RL_FIELD_NAME_MOST);
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
