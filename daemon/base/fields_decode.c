/* Decodes a JSON object into a struct, and checks each member against its field in the table. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fields.h"
#include "base/json.h"
#include "base/utf8.h"

enum { MAX_STRUCT_SIZE = 16384 };

static const rl_field *find_field(const rl_field *table, const char *name) {
  for (const rl_field *field = table; field->name != NULL; field++)
    if (strcmp(field->name, name) == 0) return field;
  return NULL;
}

static int name_index(const char *const *names, const char *text) {
  for (int i = 0; names[i] != NULL; i++)
    if (strcmp(names[i], text) == 0) return i;
  return -1;
}

/* Writes the names, separated by commas, to text and returns text. */
static const char *list_names(const char *const *names, char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; names[i] != NULL && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", names[i][0] != '\0' ? names[i] : "\"\"");
  return text;
}

static bool is_plain_text(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++)
    if (*c < 0x20 || *c == 0x7f) return false;
  return rl_utf8_is_valid(text, strlen(text));
}

void rl_fields_format_pointer(char *pointer, size_t size, const char *path, const char *name) {
  size_t used = (size_t)snprintf(pointer, size, "%s/", path);
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

static int decode_uint32(const rl_field *field, double value, const char *path, void *out, rl_error *err) {
  if (value < 0 || value > UINT32_MAX) return rl_fail_at(err, path, "%s must be between 0 and %u", field->name, UINT32_MAX);
  memcpy(out, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
  return 0;
}

static int decode_number(const rl_field *field, const cJSON *item, const char *path, void *out, rl_error *err) {
  bool is_integer = field->type == RL_FIELD_INT || field->type == RL_FIELD_INTS,
       has_bounds = field->minimum != 0 || field->maximum != 0;
  double value = item->valuedouble;
  if (!cJSON_IsNumber(item) || !isfinite(value) || (is_integer && value != floor(value)))
    return rl_fail_at(err, path, "%s must be a %s", field->name, is_integer ? "whole number" : "number");
  if (has_bounds && (value < field->minimum || value > field->maximum))
    return rl_fail_at(err, path, "%s must be between %.10g and %.10g", field->name, field->minimum, field->maximum);
  if (is_integer && fabs(value) > RL_JSON_INTEGER_MAX)
    return rl_fail_at(err, path, "%s must be a whole number of at most 2^53", field->name);
  if (!is_integer) memcpy(out, &value, sizeof value);
  else if (field->size == sizeof(uint32_t)) return decode_uint32(field, value, path, out, err);
  else memcpy(out, &(int64_t){(int64_t)value}, sizeof(int64_t));
  return 0;
}

static int decode_choices(const rl_field *field, const cJSON *item, const char *path, void *out, rl_error *err) {
  char names[512], item_path[sizeof err->json_pointer];
  uint32_t bits = 0;
  int index = 0;
  if (!cJSON_IsArray(item) || (item->child == NULL && !field->may_be_empty))
    return rl_fail_at(err, path, "%s must be %s array of: %s", field->name, field->may_be_empty ? "an" : "a non-empty",
                      list_names(field->names, names, sizeof names));
  for (const cJSON *member = item->child; member != NULL; member = member->next, index++) {
    snprintf(item_path, sizeof item_path, "%.80s/%d", path, index);
    int bit = cJSON_IsString(member) ? name_index(field->names, member->valuestring) : -1;
    if (bit < 0) return rl_fail_at(err, item_path, "%s takes: %s", field->name, list_names(field->names, names, sizeof names));
    if (bits & (1u << bit)) return rl_fail_at(err, item_path, "%s names %s twice", field->name, member->valuestring);
    bits |= 1u << bit;
  }
  memcpy(out, &bits, sizeof bits);
  return 0;
}

static int decode_ints(const rl_field *field, const cJSON *item, const char *path, void *out, rl_error *err) {
  char item_path[sizeof err->json_pointer];
  int max_count = (int)(field->size / sizeof(int64_t)), index = 0;
  if (!cJSON_IsArray(item) || item->child == NULL || cJSON_GetArraySize(item) > max_count)
    return rl_fail_at(err, path, "%s must be an array of 1 to %d whole numbers", field->name, max_count);
  for (const cJSON *member = item->child; member != NULL; member = member->next, index++) {
    snprintf(item_path, sizeof item_path, "%.80s/%d", path, index);
    if (decode_number(field, member, item_path, (int64_t *)out + index, err) < 0) return -1;
  }
  return 0;
}

static bool is_name(const char *text) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  size_t length = strspn(text, letters);
  return length > 0 && length <= RL_FIELD_NAME_MAX && text[length] == '\0';
}

/* Returns whether one line of text equals name. */
static bool has_line(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *line = text; *line != '\0';) {
    const size_t line_length = strcspn(line, "\n");
    if (line_length == length && memcmp(line, name, length) == 0) return true;
    line += line_length + (line[line_length] == '\n');
  }
  return false;
}

static int decode_name_list(const rl_field *field, const cJSON *item, const char *path, char *out, rl_error *err) {
  char item_path[sizeof err->json_pointer];
  size_t used = 0;
  int index = 0;
  if (!cJSON_IsArray(item)) return rl_fail_at(err, path, "%s must be an array of names", field->name);
  out[0] = '\0';
  for (const cJSON *member = item->child; member != NULL; member = member->next, index++) {
    snprintf(item_path, sizeof item_path, "%.80s/%d", path, index);
    if (!cJSON_IsString(member) || !is_name(member->valuestring))
      return rl_fail_at(err, item_path, "%s takes names of at most %d letters, digits, _, . and -", field->name,
                        RL_FIELD_NAME_MAX);
    if (has_line(out, member->valuestring))
      return rl_fail_at(err, item_path, "%s names %s twice", field->name, member->valuestring);
    if (used + strlen(member->valuestring) + 2 > field->size)
      return rl_fail_at(err, item_path, "%s must be shorter than %zu bytes together", field->name, field->size);
    used += (size_t)snprintf(out + used, field->size - used, "%s%s", index > 0 ? "\n" : "", member->valuestring);
  }
  return 0;
}

/* Stores a pointer to the item, or to its text, at `out`. The document keeps the ownership of the item. JSON null leaves the
 * member unchanged. */
static int decode_pointer(const rl_field *field, const cJSON *item, const char *path, void *out, rl_error *err) {
  const void *found = item;
  if (cJSON_IsNull(item) && !field->required) return 0;
  if (field->type == RL_FIELD_STRING) {
    found = item->valuestring;
    if (!cJSON_IsString(item) || strlen(item->valuestring) > (size_t)field->maximum)
      return rl_fail_at(err, path, "%s must be a string of at most %.0f bytes", field->name, field->maximum);
  } else if (field->type == RL_FIELD_OBJECT) {
    if (!cJSON_IsObject(item)) return rl_fail_at(err, path, "%s must be an object", field->name);
  } else if (!cJSON_IsArray(item) || cJSON_GetArraySize(item) < (int)field->minimum ||
             cJSON_GetArraySize(item) > (int)field->maximum) {
    return rl_fail_at(err, path, "%s must be an array of %.0f to %.0f %s", field->name, field->minimum, field->maximum,
                      field->fields != NULL ? "objects" : "strings");
  }
  memcpy(out, &found, sizeof found);
  return 0;
}

static int decode_bool(const rl_field *field, const cJSON *item, const char *path, void *out, rl_error *err) {
  if (!cJSON_IsBool(item)) return rl_fail_at(err, path, "%s must be true or false", field->name);
  if (field->size == sizeof(int64_t)) memcpy(out, &(int64_t){cJSON_IsTrue(item)}, sizeof(int64_t));
  else memcpy(out, &(bool){cJSON_IsTrue(item)}, sizeof(bool));
  return 0;
}

double rl_sanitize_measure(double value) {
  if (!(fabs(value) <= RL_MEASURE_MAX)) return NAN;
  return fabs(value) < RL_MEASURE_MIN ? 0 : value;
}

static int decode_nullable_real(const rl_field *field, const cJSON *item, const char *path, void *out, rl_error *err) {
  double value = NAN;
  if (!cJSON_IsNull(item)) {
    if (decode_number(field, item, path, &value, err) < 0) return -1;
    value = rl_sanitize_measure(value);
    if (isnan(value)) return rl_fail_at(err, path, "%s must be null or at most %g", field->name, RL_MEASURE_MAX);
  }
  memcpy(out, &value, sizeof value);
  return 0;
}

/* Returns the index of the item's string in field->names. Returns -1 and sets err if field->names does not contain it. */
static int find_choice(const rl_field *field, const cJSON *item, const char *path, rl_error *err) {
  char names[192];
  int choice = cJSON_IsString(item) ? name_index(field->names, item->valuestring) : -1;
  if (choice >= 0) return choice;
  return rl_fail_at(err, path, "%s must be one of: %s", field->name, list_names(field->names, names, sizeof names));
}

static bool is_sha256(const char *text) {
  size_t length = strlen(text);
  return (length == 0 || length == 64) && strspn(text, "0123456789abcdef") == length;
}

static int decode_text(const rl_field *field, const cJSON *item, const char *path, char *out, rl_error *err) {
  if (cJSON_IsNull(item) && !field->required) return 0;
  if (!cJSON_IsString(item) || !is_plain_text(item->valuestring))
    return rl_fail_at(err, path, "%s must be a string of UTF-8 without control characters", field->name);
  if (strlen(item->valuestring) >= field->size)
    return rl_fail_at(err, path, "%s must be shorter than %zu bytes", field->name, field->size);
  if (field->type == RL_FIELD_SHA256 && !is_sha256(item->valuestring))
    return rl_fail_at(err, path, "%s must be 64 hexadecimal digits, or empty", field->name);
  if (field->names != NULL && find_choice(field, item, path, err) < 0) return -1;
  memcpy(out, item->valuestring, strlen(item->valuestring) + 1);
  return 0;
}

static int decode_choice(const rl_field *field, const cJSON *item, const char *path, void *out, rl_error *err) {
  int choice = find_choice(field, item, path, err);
  if (choice < 0) return -1;
  memcpy(out, &choice, sizeof choice);
  return 0;
}

static int decode_json(const rl_field *field, const cJSON *item, const char *path, char *out, rl_error *err) {
  const size_t spare = 5; /* number of bytes that cJSON_PrintPreallocated needs in addition to the text */
  if (cJSON_IsNull(item) && !field->required) return 0;
  if (!cJSON_IsObject(item) && !(field->may_be_array && cJSON_IsArray(item)))
    return rl_fail_at(err, path, "%s must be an object%s", field->name, field->may_be_array ? " or an array" : "");
  if (!cJSON_PrintPreallocated((cJSON *)item, out, (int)field->size, 0))
    return rl_fail_at(err, path, "%s must be shorter than %zu bytes", field->name, field->size - spare);
  return 0;
}

static int decode_one(const rl_field *field, const cJSON *item, const char *path, void *out, rl_error *err) {
  switch (field->type) {
    case RL_FIELD_BOOL: return decode_bool(field, item, path, out, err);
    case RL_FIELD_INT:
    case RL_FIELD_REAL: return decode_number(field, item, path, out, err);
    case RL_FIELD_NULLABLE_REAL: return decode_nullable_real(field, item, path, out, err);
    case RL_FIELD_TEXT:
    case RL_FIELD_SHA256: return decode_text(field, item, path, out, err);
    case RL_FIELD_CHOICE: return decode_choice(field, item, path, out, err);
    case RL_FIELD_CHOICES: return decode_choices(field, item, path, out, err);
    case RL_FIELD_NAMES: return decode_name_list(field, item, path, out, err);
    case RL_FIELD_JSON: return decode_json(field, item, path, out, err);
    case RL_FIELD_INTS: return decode_ints(field, item, path, out, err);
    case RL_FIELD_STRING:
    case RL_FIELD_OBJECT:
    case RL_FIELD_ARRAY: return decode_pointer(field, item, path, out, err);
  }
  return rl_fail_at(err, path, "%s has no known type", field->name);
}

/* Returns the number of characters to insert, delete or replace (Levenshtein distance) between two texts, of which only the first
 * MAX_COMPARED characters count. */
static size_t edit_distance(const char *from, const char *to) {
  enum { MAX_COMPARED = 32 };
  size_t row[MAX_COMPARED + 1];
  const size_t length = strnlen(to, MAX_COMPARED);
  for (size_t k = 0; k <= length; k++) row[k] = k;
  for (size_t i = 0; i < strnlen(from, MAX_COMPARED); i++) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < length; k++) {
      const size_t replaced = diagonal + (from[i] != to[k]), shorter = row[k] < row[k + 1] ? row[k] : row[k + 1];
      diagonal = row[k + 1];
      row[k + 1] = replaced < shorter + 1 ? replaced : shorter + 1;
    }
  }
  return row[length];
}

/* Returns the key of the table that is most similar to the name; NULL: none differs by at most two characters. */
static const char *most_similar_key(const rl_field *table, const char *name) {
  const char *found = NULL;
  for (size_t least = 3; table->name != NULL; table++) {
    const size_t distance = edit_distance(name, table->name);
    if (distance < least && distance < strlen(name)) least = distance, found = table->name;
  }
  return found;
}

/* Fails because the key is unknown. The message lists the accepted keys if the table is short, else names a similar one. */
static int fail_unknown(const rl_field *table, const char *pointer, const char *name, rl_error *err) {
  enum { LISTED_FIELDS = 8 };
  char names[160] = "", hint[sizeof names + 16] = "";
  size_t used = 0, count = 0;
  for (; table[count].name != NULL && count < LISTED_FIELDS && used < sizeof names; count++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", count > 0 ? ", " : "", table[count].name);
  bool lists_all = table[count].name == NULL && used < sizeof names;
  const char *similar = lists_all ? NULL : most_similar_key(table, name);
  if (lists_all) snprintf(hint, sizeof hint, "; expected %s", names);
  else if (similar) snprintf(hint, sizeof hint, "; did you mean %s?", similar);
  rl_fail_at(err, pointer, "unknown field \"%.64s\"%s", name, hint);
  if (err != NULL) rl_utf8_sanitize(err->message, sizeof err->message);
  return -1;
}

int rl_fields_decode(const rl_field *table, const cJSON *object, const char *path, void *out, size_t struct_size, rl_error *err) {
  _Alignas(16) unsigned char copy[MAX_STRUCT_SIZE];
  char pointer[sizeof err->json_pointer];
  uint64_t decoded_bits = 0;
  if (struct_size > sizeof copy) return rl_fail(err, RL_ERRNO, 0, "a struct of %zu bytes is too large", struct_size);
  if (!cJSON_IsObject(object)) return rl_fail_at(err, path, "must be a JSON object");
  memcpy(copy, out, struct_size);
  for (const cJSON *item = object->child; item != NULL; item = item->next) {
    rl_fields_format_pointer(pointer, sizeof pointer, path, item->string);
    const rl_field *field = find_field(table, item->string);
    if (field == NULL) return fail_unknown(table, pointer, item->string, err);
    uint64_t bit = UINT64_C(1) << (field - table);
    if (decoded_bits & bit) return rl_fail_at(err, pointer, "the key is repeated");
    decoded_bits |= bit;
    if (decode_one(field, item, pointer, copy + field->offset, err) < 0) return -1;
  }
  for (const rl_field *field = table; field->name != NULL; field++)
    if (field->required && !(decoded_bits & (UINT64_C(1) << (field - table)))) {
      rl_fields_format_pointer(pointer, sizeof pointer, path, field->name);
      return rl_fail_at(err, pointer, "%s is required", field->name);
    }
  memcpy(out, copy, struct_size);
  return 0;
}

int rl_fields_parse(const rl_field *table, const char *text, size_t length, void *out, size_t struct_size, rl_error *err) {
  cJSON *object = rl_json_parse(text, length, err);
  if (object == NULL) return -1;
  int rc = rl_fields_decode(table, object, "", out, struct_size, err);
  cJSON_Delete(object);
  return rc;
}
