/* Encodes a struct as a JSON object. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fields.h"

/* Makes a JSON number with 17 digits if the 15 digits that cJSON prints do not represent the value exactly. */
static cJSON *encode_number(double value) {
  char text[32];
  snprintf(text, sizeof text, "%.15g", value);
  if (strtod(text, NULL) == value) return cJSON_CreateNumber(value);
  snprintf(text, sizeof text, "%.17g", value);
  return cJSON_CreateRaw(text);
}

int64_t rl_field_integer(const rl_field *field, const void *member) {
  int64_t wide;
  uint32_t narrow;
  bool truth;
  switch (field->size) {
    case sizeof wide: memcpy(&wide, member, sizeof wide); return wide;
    case sizeof narrow: memcpy(&narrow, member, sizeof narrow); return narrow;
    default: memcpy(&truth, member, sizeof truth); return truth;
  }
}

static const void *read_pointer(const void *in) {
  const void *pointer;
  memcpy(&pointer, in, sizeof pointer);
  return pointer;
}

static cJSON *encode_name_list(const char *text) {
  cJSON *array = cJSON_CreateArray();
  while (array != NULL && *text != '\0') {
    char name[RL_FIELD_NAME_MAX + 1];
    size_t length = strcspn(text, "\n");
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    cJSON_AddItemToArray(array, cJSON_CreateString(name));
    text += length + (text[length] == '\n');
  }
  return array;
}

static cJSON *encode_one(const rl_field *field, const void *in) {
  switch (field->type) {
    case RL_FIELD_BOOL: return cJSON_CreateBool(rl_field_integer(field, in) != 0);
    case RL_FIELD_INT: return encode_number((double)rl_field_integer(field, in));
    case RL_FIELD_REAL:
    case RL_FIELD_NULLABLE_REAL: {
      double value;
      memcpy(&value, in, sizeof value);
      return isfinite(value) ? encode_number(value) : cJSON_CreateNull();
    }
    case RL_FIELD_TEXT:
    case RL_FIELD_SHA256: return cJSON_CreateString(in);
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
    case RL_FIELD_STRING: return cJSON_CreateString(read_pointer(in));
    case RL_FIELD_OBJECT:
    case RL_FIELD_ARRAY: return cJSON_Duplicate(read_pointer(in), true);
  }
  return NULL;
}

static bool is_absent(const rl_field *field, const void *in) {
  bool pointer = field->type == RL_FIELD_STRING || field->type == RL_FIELD_OBJECT || field->type == RL_FIELD_ARRAY;
  return pointer && read_pointer(in) == NULL;
}

int rl_fields_encode(const rl_field *table, const void *in, cJSON *object) {
  for (const rl_field *field = table; field->name != NULL; field++) {
    const void *member = (const unsigned char *)in + field->offset;
    if (is_absent(field, member)) continue;
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
