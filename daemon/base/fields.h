/* Converts between a C struct and a JSON object. A table of rl_field describes the members of the struct; the functions below
 * decode and validate an object (fields_decode.c), encode a struct (fields_encode.c), and make the object's JSON Schema
 * (fields_schema.c). Stateless, thread-safe. */
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
  RL_FIELD_BOOL,          /* bool, or int64_t with the value 0 or 1; rl_field.size distinguishes them */
  RL_FIELD_INT,           /* int64_t, or uint32_t; rl_field.size distinguishes them. A whole number, |value| <= 2^53 */
  RL_FIELD_REAL,          /* double, finite */
  RL_FIELD_NULLABLE_REAL, /* double; NAN, which is null in JSON, means unavailable */
  /* char[size]: NUL-terminated UTF-8 without control characters; one of `names`, unless `names` is NULL. Decoding null leaves the
   * member unchanged. */
  RL_FIELD_TEXT,
  RL_FIELD_SHA256,  /* char[65]: 64 lower-case hexadecimal digits; "": unknown */
  RL_FIELD_CHOICE,  /* int: index into `names`; JSON: the name */
  RL_FIELD_CHOICES, /* uint32_t: bit i stands for names[i]. JSON: an array of distinct names, not empty unless may_be_empty */
  /* char[size]: names, one per line. A name consists of 1 to RL_FIELD_NAME_MAX letters, digits, "_" and ".". JSON: an array of
   * distinct names. */
  RL_FIELD_NAMES,
  RL_FIELD_JSON, /* char[size]: the JSON text of any object; if may_be_array is set, also of any array */
  /* int64_t[size / 8]. JSON: an array of 1 to size / 8 whole numbers. A shorter array sets only the first elements. */
  RL_FIELD_INTS,
  /* Members of the following types are pointers into the decoded cJSON document and are valid as long as the document. NULL: the
   * key is absent. */
  RL_FIELD_STRING, /* const char *: any text of at most `maximum` bytes */
  RL_FIELD_OBJECT, /* const cJSON *: an object that the table `fields` describes */
  RL_FIELD_ARRAY   /* const cJSON *: at most `maximum` objects that the table `fields` describes; `fields` NULL: strings */
} rl_field_type;

enum { RL_FIELD_NAME_MAX = 95 };

/* Bounds of |value| of a NULLABLE_REAL that is not 0. With these bounds, products and quotients of up to three values are
 * finite. */
#define RL_MEASURE_MAX 1e100
#define RL_MEASURE_MIN 1e-100
/* Returns value; 0 if |value| < RL_MEASURE_MIN; NAN if |value| > RL_MEASURE_MAX. */
double rl_sanitize_measure(double value);

typedef struct rl_field rl_field;
struct rl_field {
  const char *name;
  rl_field_type type;
  size_t offset, size; /* position and size of the member in the struct, in bytes */
  bool required;       /* decoding fails if the key is absent */
  bool may_be_empty;   /* for CHOICES: the array may be empty */
  bool may_be_array;   /* for JSON: an array is accepted as well as an object */
  bool zero_is_null;   /* 0 or "" means unknown: the store writes SQL NULL */
  /* Inclusive bounds of a number; both 0: no bounds. ARRAY: bounds of the number of elements. STRING: maximum is the largest
   * number of bytes. */
  double minimum, maximum;
  const char *const *names; /* CHOICE, CHOICES and TEXT: the accepted names, NULL-terminated */
  const char *summary;      /* description of the field in openapi.json and in the documentation */
  /* OBJECT and ARRAY: the fields of the objects. Only rl_fields_schema uses them; the caller decodes the objects. */
  const rl_field *fields;
  /* Writes a description that depends on other tables. NULL: `summary` is the description. */
  void (*describe)(char *text, size_t size);
};

/* In the functions below, `table` is an array of rl_field that ends with {0}. */

/* Returns the value of the BOOL or INT that is stored at `member`. member need not be aligned. */
int64_t rl_field_integer(const rl_field *field, const void *member);

/* Writes the JSON pointer of a member: path, "/" and the member's name, in which '~' and '/' are escaped. Truncates to size. */
void rl_fields_format_pointer(char *pointer, size_t size, const char *path, const char *name);
/* Decodes object into the struct at `out`, which has struct_size bytes (at most 16384). The caller has set the struct to the
 * defaults, which members without a key keep. Fails with RL_INPUT on unknown and repeated keys, wrong types and values out of
 * bounds; then *out is unchanged, and err->json_pointer is `path` followed by the key ("/epochs" if path is ""). */
int rl_fields_decode(const rl_field *table, const cJSON *object, const char *path, void *out, size_t struct_size, rl_error *err);
/* Parses JSON text and decodes it like rl_fields_decode. The table must not contain STRING, OBJECT or ARRAY. */
int rl_fields_parse(const rl_field *table, const char *text, size_t length, void *out, size_t struct_size, rl_error *err);
/* Adds the fields of the struct at `in` to object in the table's order; omits pointers that are NULL. Returns -1 if memory is
 * exhausted. */
int rl_fields_encode(const rl_field *table, const void *in, cJSON *object);
/* Returns the struct at `in` as compact JSON text, which the caller frees; NULL if memory is exhausted. */
char *rl_fields_print(const rl_field *table, const void *in);
/* Returns the JSON Schema of the object that the table describes, which the caller deletes; NULL if memory is exhausted. */
cJSON *rl_fields_schema(const rl_field *table);

#ifdef __cplusplus
}
#endif

#define RL_JSON_INTEGER_MAX 9007199254740992.0 /* 2^53: whole numbers up to this one are exact as JSON numbers (doubles) */
/* Makes an element of a table, for example RL_FIELD(rl_epoch, device_ms, RL_FIELD_NULLABLE_REAL, .minimum = 0). */
#define RL_FIELD(STRUCT, MEMBER, TYPE, ...) \
  { .name = #MEMBER, .type = (TYPE), .offset = offsetof(STRUCT, MEMBER), .size = sizeof(((STRUCT *)0)->MEMBER), __VA_ARGS__ }
/* Like RL_FIELD, but the key in the JSON object is KEY, not the name of the member. */
#define RL_FIELD_WITH_KEY(KEY, STRUCT, MEMBER, TYPE, ...) \
  { .name = (KEY), .type = (TYPE), .offset = offsetof(STRUCT, MEMBER), .size = sizeof(((STRUCT *)0)->MEMBER), __VA_ARGS__ }

#endif
