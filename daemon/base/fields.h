/* One codec between C structs and JSON objects, driven by a table of fields. The same table validates a request body,
 * (de)serialises a wire message, canonicalises what the store keeps, and describes itself for OpenAPI: fields_decode.c,
 * fields_encode.c, fields_schema.c.
 * cJSON appears here, in api/ and in the wire's control frames, and nowhere else. Stateless, thread-safe. */
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
  RL_FIELD_MEASURE, /* double; null is NAN: a number that may be unavailable, and that can be measured (rl_sanitize_measure),
                       within [minimum, maximum] */
  RL_FIELD_TEXT,    /* char[size], NUL-terminated, UTF-8, no control characters; one of names, if there are; null or absent leaves
                       it */
  RL_FIELD_SHA256,  /* char[65]: text of 64 lower-case hexadecimal digits, "" when not known */
  RL_FIELD_CHOICE,  /* int: index into names */
  RL_FIELD_CHOICES, /* uint32_t: bit i stands for names[i]; JSON: an array without repeats, empty only where that is allowed */
  RL_FIELD_NAMES,   /* char[size]: names of letters, digits, _ and . up to RL_FIELD_NAME_MAX bytes, one a line; JSON: an array
                       without repeats */
  RL_FIELD_JSON,    /* char[size]: JSON text of an object, or of an array where that is allowed, kept as it is */
  RL_FIELD_INTS,    /* int64_t[]: an array of 1 to size / 8 whole numbers within [minimum, maximum]; what is left out stays */
  /* What is too large or too varied for a struct stays in the document: these hold a pointer into it, NULL when it is absent, and
   * are valid as long as the document is. */
  RL_FIELD_STRING, /* const char *: at most `maximum` bytes of any text */
  RL_FIELD_OBJECT, /* const cJSON *: an object of the table `fields` */
  RL_FIELD_ARRAY   /* const cJSON *: at most `maximum` objects of the table `fields`; strings where there is none */
} rl_field_type;

enum { RL_FIELD_NAME_MAX = 95 };

/* The largest and the smallest magnitude of a measure that is not 0, so that what is computed of a few is a number, too. */
#define RL_MEASURE_MAX 1e100
#define RL_MEASURE_MIN 1e-100
/* The number, 0 for what is smaller than any; NAN for what no measurement can be. */
double rl_sanitize_measure(double value);

typedef struct rl_field rl_field;
struct rl_field {
  const char *name;
  rl_field_type type;
  size_t offset, size;                       /* in the struct; size of the text buffer for TEXT, NAMES and JSON */
  bool required, may_be_empty, may_be_array; /* may_be_empty: CHOICES; may_be_array: JSON */
  bool zero_is_null;                         /* the store keeps 0 or "" as NULL: not known */
  double minimum, maximum;                   /* of numbers; both 0: no bounds. STRING and ARRAY: maximum */
  const char *const *names;                  /* CHOICE, CHOICES and TEXT, NULL-terminated */
  const char *summary;                       /* for OpenAPI and the documents */
  const rl_field *fields;                    /* OBJECT and ARRAY; whoever asked for the pointer decodes what it points to */
  void (*describe)(char *text, size_t size); /* writes the summary, where that is made from other tables */
};                                           /* a table ends with {0} */

/* The value of a BOOL or an INT at `member`, which need not be aligned. */
int64_t rl_field_integer(const rl_field *field, const void *member);

/* Decode object into out, which holds the defaults on entry. Unknown and repeated keys, wrong types and values out of
 * bounds are errors (RL_INPUT with a JSON pointer below `at`, e.g. at = "" gives "/epochs"). out is untouched on failure.
 * struct_size: sizeof the struct behind out (at most 16384). */
int rl_fields_decode(const rl_field *table, const cJSON *object, const char *at, void *out, size_t struct_size, rl_error *err);
/* The same from text, for tables without STRING, OBJECT and ARRAY; nesting deeper than 32 and text after the value are errors at
 * "". */
int rl_fields_parse(const rl_field *table, const char *text, size_t length, void *out, size_t struct_size, rl_error *err);
/* Every field but what is absent, in the table's order, added to object. Returns -1 only when memory is out. */
int rl_fields_encode(const rl_field *table, const void *in, cJSON *object);
/* Compact text of the same; malloc'ed, the caller frees; NULL when memory is out. */
char *rl_fields_print(const rl_field *table, const void *in);
/* JSON Schema of the table's object ("type": "object", "properties", "required", "additionalProperties": false). */
cJSON *rl_fields_schema(const rl_field *table);

#ifdef __cplusplus
}
#endif

/* RL_FIELD(struct type, member, RL_FIELD_..., .minimum = ...) */
#define RL_FIELD(STRUCT, MEMBER, TYPE, ...) \
  { .name = #MEMBER, .type = (TYPE), .offset = offsetof(STRUCT, MEMBER), .size = sizeof(((STRUCT *)0)->MEMBER), __VA_ARGS__ }

#endif
