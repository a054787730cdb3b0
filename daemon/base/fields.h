/* Conversion between C structs and JSON objects, by a table of fields: validates and decodes a JSON object (fields_decode.c),
 * encodes a struct (fields_encode.c), and prints the JSON Schema for OpenAPI (fields_schema.c). cJSON is used here, in api/ and
 * in the wire's control frames only. Stateless, thread-safe. */
#ifndef RL_BASE_FIELDS_H
#define RL_BASE_FIELDS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rl_field_type {
  RL_FIELD_BOOL,    /* bool, or an int64_t that is 0 or 1: by its size */
  RL_FIELD_INT,     /* int64_t, or uint32_t: by its size; a whole number within [minimum, maximum], |value| <= 2^53 */
  RL_FIELD_REAL,    /* double, finite, within [minimum, maximum] */
  RL_FIELD_MEASURE, /* double that may be unavailable: null is NAN; within [minimum, maximum] */
  RL_FIELD_TEXT,    /* char[size], NUL-terminated UTF-8 without control characters; one of names, if not NULL; null: unchanged */
  RL_FIELD_SHA256,  /* char[65]: 64 lower-case hexadecimal digits; "": unknown */
  RL_FIELD_CHOICE,  /* int: index into names */
  RL_FIELD_CHOICES, /* uint32_t: bit i stands for names[i]; JSON: an array without repeats, not empty unless may_be_empty */
  RL_FIELD_NAMES,   /* char[size]: names of letters, digits, _ and . up to RL_FIELD_NAME_MAX bytes, one a line; JSON: an array
                       without repeats */
  RL_FIELD_JSON,    /* char[size]: JSON text of an object, or of an array with may_be_array, not interpreted */
  RL_FIELD_INTS, /* int64_t[]: an array of 1 to size / 8 whole numbers within [minimum, maximum]; further elements stay unchanged
                  */
  /* These are pointers into the decoded document, valid as long as it is; NULL: absent. */
  RL_FIELD_STRING, /* const char *: at most `maximum` bytes of any text */
  RL_FIELD_OBJECT, /* const cJSON *: an object of the table `fields` */
  RL_FIELD_ARRAY   /* const cJSON *: at most `maximum` objects of the table `fields`, or strings when it is NULL */
} rl_field_type;

enum { RL_FIELD_NAME_MAX = 95 };

/* The largest and the smallest magnitude of a measure other than 0: products and quotients of a few stay finite. */
#define RL_MEASURE_MAX 1e100
#define RL_MEASURE_MIN 1e-100
/* Returns the value, 0 when its magnitude is below RL_MEASURE_MIN, NAN when it is above RL_MEASURE_MAX. */
double rl_sanitize_measure(double value);

typedef struct rl_field rl_field;
struct rl_field {
  const char *name;
  rl_field_type type;
  size_t offset, size;                       /* in the struct; size of the text buffer for TEXT, NAMES and JSON */
  bool required, may_be_empty, may_be_array; /* may_be_empty: CHOICES; may_be_array: JSON */
  bool zero_is_null;                         /* the store keeps 0 or "" as NULL: not known */
  double minimum, maximum;                   /* of numbers; both 0: no bounds. STRING and ARRAY: maximum only */
  const char *const *names;                  /* CHOICE, CHOICES and TEXT, NULL-terminated */
  const char *summary;                       /* for OpenAPI and the documents */
  const rl_field *fields; /* of OBJECT and ARRAY, for the schema; the caller decodes the object that the pointer refers to */
  void (*describe)(char *text, size_t size); /* writes the summary when other tables determine it; NULL: summary */
};                                           /* a table ends with {0} */

/* The value of a BOOL or an INT at `member`, which need not be aligned. */
int64_t rl_field_integer(const rl_field *field, const void *member);

/* Decodes object into out, which holds the defaults on entry. Unknown and repeated keys, wrong types and values out of bounds are
 * errors: RL_INPUT with a JSON pointer, `path` followed by the field ("/epochs" for path ""). out is unchanged on failure.
 * struct_size: of the struct at out, at most 16384. */
int rl_fields_decode(const rl_field *table, const cJSON *object, const char *path, void *out, size_t struct_size, rl_error *err);
/* The same from JSON text, for tables without STRING, OBJECT and ARRAY. */
int rl_fields_parse(const rl_field *table, const char *text, size_t length, void *out, size_t struct_size, rl_error *err);
/* Adds every field that is not absent to object, in the table's order. Returns -1 when out of memory. */
int rl_fields_encode(const rl_field *table, const void *in, cJSON *object);
/* Returns the compact JSON text of the same, which the caller frees; NULL when out of memory. */
char *rl_fields_print(const rl_field *table, const void *in);
/* Returns the JSON Schema of the table's object ("type": "object", "properties", "required", "additionalProperties": false). */
cJSON *rl_fields_schema(const rl_field *table);

#ifdef __cplusplus
}
#endif

/* RL_FIELD(struct type, member, RL_FIELD_..., .minimum = ...) */
#define RL_FIELD(STRUCT, MEMBER, TYPE, ...) \
  { .name = #MEMBER, .type = (TYPE), .offset = offsetof(STRUCT, MEMBER), .size = sizeof(((STRUCT *)0)->MEMBER), __VA_ARGS__ }

#endif
