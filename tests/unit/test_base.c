/* Tests daemon/base: field tables, JSON, UTF-8, the cache folder, the clock and the error object. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/fields.h"
#include "base/json.h"
#include "base/metric_unit.h"
#include "base/timed_mutex.h"
#include "base/utf8.h"

/* Has a member for each type of field. */
typedef struct all_types {
  int64_t epochs;
  double rate, power;
  bool fast;
  char name[8];
  int colour;
  uint32_t passes;
  char extra[64], metrics[24];
  uint32_t sections;
} all_types;

static const char *const colours[] = {"red", "green", NULL};
static const rl_field fields[] = {RL_FIELD(all_types, epochs, RL_FIELD_INT, .minimum = 1, .maximum = 10, .required = true),
                                  RL_FIELD(all_types, rate, RL_FIELD_REAL, .minimum = 0.5, .maximum = 2),
                                  RL_FIELD(all_types, power, RL_FIELD_NULLABLE_REAL),
                                  RL_FIELD(all_types, fast, RL_FIELD_BOOL),
                                  RL_FIELD(all_types, name, RL_FIELD_TEXT),
                                  RL_FIELD(all_types, colour, RL_FIELD_CHOICE, .names = colours),
                                  RL_FIELD(all_types, passes, RL_FIELD_CHOICES, .names = colours),
                                  RL_FIELD(all_types, extra, RL_FIELD_JSON),
                                  RL_FIELD(all_types, sections, RL_FIELD_CHOICES, .names = colours, .may_be_empty = true),
                                  RL_FIELD(all_types, metrics, RL_FIELD_NAMES),
                                  {0}};

static int parse_fields(const char *text, all_types *out, rl_error *err) {
  return rl_fields_parse(fields, text, strlen(text), out, sizeof *out, err);
}

static void printed_fields_decode_to_the_same_values(void **state) {
  (void)state;
  all_types in = {.epochs = 7,
                  .rate = 1.25,
                  .power = NAN,
                  .fast = true,
                  .name = "abc",
                  .colour = 1,
                  .passes = 3,
                  .extra = "{\"a\":[1,null]}",
                  .metrics = "dram__bytes.sum\nb_c"};
  char *text = rl_fields_print(fields, &in);
  assert_string_equal(text,
                      "{\"epochs\":7,\"rate\":1.25,\"power\":null,\"fast\":true,\"name\":\"abc\",\"colour\":\"green\","
                      "\"passes\":[\"red\",\"green\"],\"extra\":{\"a\":[1,null]},"
                      "\"sections\":[],\"metrics\":[\"dram__bytes.sum\",\"b_c\"]}");
  all_types out = {0};
  rl_error err;
  assert_int_equal(parse_fields(text, &out, &err), 0);
  assert_int_equal(out.epochs, 7);
  assert_true(isnan(out.power) && out.fast && out.colour == 1 && out.passes == 3);
  assert_string_equal(out.extra, in.extra);
  assert_string_equal(out.metrics, in.metrics);
  assert_int_equal(out.sections, 0);
  free(text);
}

/* |value| is at most 1e100, so that products and quotients of values in SQL and reports stay finite. */
static void nullable_numbers_are_finite_and_in_range(void **state) {
  (void)state;
  static const struct {
    const char *json;
    double decoded; /* NAN: refused */
  } cases[] = {{"1e100", 1e100}, {"-1e100", -1e100}, {"1e-100", 1e-100}, {"9e-101", 0},  {"-5e-324", 0},
               {"0", 0},         {"1.1e100", NAN},   {"-1e308", NAN},    {"1e999", NAN}, {"\"1\"", NAN}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    all_types out = {.power = 7};
    char text[64];
    rl_error err;
    snprintf(text, sizeof text, "{\"epochs\":1,\"power\":%s}", cases[i].json);
    assert_int_equal(parse_fields(text, &out, &err), isnan(cases[i].decoded) ? -1 : 0);
    assert_true(out.power == (isnan(cases[i].decoded) ? 7 : cases[i].decoded));
    if (isnan(cases[i].decoded)) assert_string_equal(err.json_pointer, "/power");
  }
  assert_true(isnan(rl_sanitize_measure(NAN)) && isnan(rl_sanitize_measure(-INFINITY)));
}

/* --- members that point into the JSON document ---------------------------------------------------------------------------- */

typedef struct pointer_members {
  int64_t sizes[3];
  const char *text;
  const cJSON *object, *list, *words;
} pointer_members;

static const rl_field inner_fields[] = {RL_FIELD(all_types, rate, RL_FIELD_REAL, .minimum = 0.5, .maximum = 2), {0}};
static const rl_field pointer_fields[] = {RL_FIELD(pointer_members, sizes, RL_FIELD_INTS, .minimum = 1, .maximum = 9),
                                          RL_FIELD(pointer_members, text, RL_FIELD_STRING, .maximum = 6),
                                          RL_FIELD(pointer_members, object, RL_FIELD_OBJECT, .fields = inner_fields),
                                          RL_FIELD(pointer_members, list, RL_FIELD_ARRAY, .maximum = 2, .fields = inner_fields),
                                          RL_FIELD(pointer_members, words, RL_FIELD_ARRAY, .maximum = 2),
                                          {0}};

static void pointer_members_point_into_the_document(void **state) {
  (void)state;
  static const char text[] =
      "{\"sizes\":[4,5],\"text\":\"a\\n\\tb\",\"object\":{\"rate\":1},\"list\":[{\"rate\":2},{}],\"words\":[\"x\"]}";
  rl_error err;
  cJSON *document = rl_json_parse(text, strlen(text), &err);
  pointer_members out = {.sizes = {1, 1, 1}}, empty = {.sizes = {1, 1, 1}};
  assert_int_equal(rl_fields_decode(pointer_fields, document, "", &out, sizeof out, &err), 0);
  assert_true(out.sizes[0] == 4 && out.sizes[1] == 5 && out.sizes[2] == 1);
  assert_string_equal(out.text, "a\n\tb"); /* a STRING may contain control characters */
  assert_ptr_equal(out.list, cJSON_GetObjectItem(document, "list"));
  char *printed = rl_fields_print(pointer_fields, &out);
  assert_string_equal(
      printed, "{\"sizes\":[4,5,1],\"text\":\"a\\n\\tb\",\"object\":{\"rate\":1},\"list\":[{\"rate\":2},{}],\"words\":[\"x\"]}");
  free(printed);
  cJSON_Delete(document);
  printed = rl_fields_print(pointer_fields, &empty); /* absent members are not written */
  assert_string_equal(printed, "{\"sizes\":[1,1,1]}");
  free(printed);
}

static void errors_of_pointer_members_name_their_json_pointer(void **state) {
  (void)state;
  static const struct {
    const char *text, *pointer;
  } cases[] = {{"{\"sizes\":[]}", "/sizes"},        {"{\"sizes\":[1,2,3,4]}", "/sizes"}, {"{\"sizes\":[1,0]}", "/sizes/1"},
               {"{\"sizes\":[1,2.5]}", "/sizes/1"}, {"{\"sizes\":3}", "/sizes"},         {"{\"text\":\"1234567\"}", "/text"},
               {"{\"text\":[]}", "/text"},          {"{\"object\":[]}", "/object"},      {"{\"list\":{}}", "/list"},
               {"{\"list\":[1,2,3]}", "/list"},     {"{\"words\":\"x\"}", "/words"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_error err;
    pointer_members out = {0};
    cJSON *document = rl_json_parse(cases[i].text, strlen(cases[i].text), &err);
    assert_int_equal(rl_fields_decode(pointer_fields, document, "", &out, sizeof out, &err), -1);
    assert_string_equal(err.json_pointer, cases[i].pointer);
    cJSON_Delete(document);
  }
}

static void numbers_keep_every_bit(void **state) {
  (void)state;
  static const rl_field table[] = {RL_FIELD(all_types, epochs, RL_FIELD_INT), RL_FIELD(all_types, rate, RL_FIELD_REAL), {0}};
  static const struct {
    int64_t whole;
    double real;
  } cases[] = {
      {INT64_C(9007199254740992), 0.1 + 0.2}, {INT64_C(-9007199254740991), 1.0 / 3}, {1763675580123456, 0.1}, {0, 5e-324}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    all_types in = {.epochs = cases[i].whole, .rate = cases[i].real}, out = {0};
    char *text = rl_fields_print(table, &in);
    rl_error err;
    assert_int_equal(rl_fields_parse(table, text, strlen(text), &out, sizeof out, &err), 0);
    assert_true(out.epochs == in.epochs && out.rate == in.rate);
    free(text);
  }
}

static void errors_name_their_json_pointer(void **state) {
  (void)state;
  static const struct {
    const char *text, *pointer;
  } cases[] = {
      {"{}", "/epochs"},
      {"{\"epochs\":0}", "/epochs"},
      {"{\"epochs\":1.5}", "/epochs"},
      {"{\"epochs\":1e300}", "/epochs"},
      {"{\"epochs\":\"1\"}", "/epochs"},
      {"{\"epochs\":1,\"epochs\":2}", "/epochs"},
      {"{\"epochs\":1,\"rate\":9}", "/rate"},
      {"{\"epochs\":1,\"rate\":null}", "/rate"},
      {"{\"epochs\":1,\"fast\":1}", "/fast"},
      {"{\"epochs\":1,\"name\":\"longer than seven\"}", "/name"},
      {"{\"epochs\":1,\"name\":\"a\\u0007\"}", "/name"},
      {"{\"epochs\":1,\"colour\":\"red\\u0000blue\"}", ""},
      {"{\"epochs\":1,\"fast\\u0000er\":true}", ""},
      {"{\"epochs\":1,\"name\":\"\xff\xfe\"}", ""},
      {"{\"epochs\":1,\"colour\":\"blue\"}", "/colour"},
      {"{\"epochs\":1,\"passes\":[]}", "/passes"},
      {"{\"epochs\":1,\"passes\":[\"red\",\"red\"]}", "/passes/1"},
      {"{\"epochs\":1,\"passes\":[\"red\",3]}", "/passes/1"},
      {"{\"epochs\":1,\"extra\":5}", "/extra"},
      {"{\"epochs\":1,\"extra\":[5]}", "/extra"},
      {"{\"epochs\":1,\"a/b~c\":5}", "/a~1b~0c"},
      {"[]", ""},
      {"{\"epochs\":1} x", ""},
      {"{\"epochs\":", ""},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    all_types out = {.epochs = 42, .name = "kept"}, before = out;
    rl_error err = {0};
    if (parse_fields(cases[i].text, &out, &err) != -1) fail_msg("accepted: %s", cases[i].text);
    assert_int_equal(err.domain, RL_INPUT);
    assert_string_equal(err.json_pointer, cases[i].pointer);
    assert_memory_equal(&out, &before, sizeof out);
  }
}

static void json_text_is_bounded(void **state) {
  (void)state;
  char deep[200];
  rl_error err;
  memset(deep, '[', sizeof deep);
  assert_null(rl_json_parse(deep, sizeof deep, &err));
  assert_non_null(strstr(err.message, "too deep"));
  assert_null(rl_json_parse("1\0", 2, &err));
  cJSON *quoted = rl_json_parse("\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[\"", 45, &err);
  assert_non_null(quoted);
  cJSON_Delete(quoted);
}

static void numbers_follow_the_grammar(void **state) {
  (void)state;
  static const char *const right[] = {"0", "-0", "10", "-1.25", "0.5e-3", "1E+2", "[1,2]", "{\"01\":\"1.\"}"};
  static const char *const wrong[] = {"01", "-01", "1.", "-", "-.5", "1e", "1e+", "1.e5", "[1,02]", "{\"a\":1.}", "+1", "0x1"};
  rl_error err;
  for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
    cJSON *value = rl_json_parse(right[i], strlen(right[i]), &err);
    if (value == NULL) fail_msg("%s: %s", right[i], err.message);
    cJSON_Delete(value);
  }
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    if (rl_json_parse(wrong[i], strlen(wrong[i]), &err) != NULL) fail_msg("accepted: %s", wrong[i]);
    assert_int_equal(err.domain, RL_INPUT);
  }
}

static void integers_have_the_size_of_their_member(void **state) {
  (void)state;
  typedef struct narrow {
    uint32_t count;
    int64_t total;
  } narrow;
  static const rl_field table[] = {RL_FIELD(narrow, count, RL_FIELD_INT), RL_FIELD(narrow, total, RL_FIELD_INT), {0}};
  narrow out = {0};
  rl_error err;
  static const char text[] = "{\"count\":4294967295,\"total\":-7}";
  assert_int_equal(rl_fields_parse(table, text, strlen(text), &out, sizeof out, &err), 0);
  assert_true(out.count == UINT32_MAX && out.total == -7);
  char *printed = rl_fields_print(table, &out);
  assert_string_equal(printed, text);
  free(printed);
  static const char *const wrong[] = {"{\"count\":-1}", "{\"count\":4294967296}"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(rl_fields_parse(table, wrong[i], strlen(wrong[i]), &out, sizeof out, &err), -1);
    assert_string_equal(err.json_pointer, "/count");
  }
}

static void text_is_utf8(void **state) {
  (void)state;
  static const struct {
    const char *text, *sanitized;
  } cases[] = {
      {"", ""},
      {"a \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf", NULL},
      {"\xff\xfe", "??"},
      {"a\x80z", "a?z"},
      {"cut \xe2\x82", "cut ??"},
      {"\xc3(\xc3\xa9", "?(\xc3\xa9"},
      {"\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf", "?????????"}, /* overlong forms */
      {"\xed\xa0\x80", "???"},                               /* a surrogate */
      {"\xf4\x90\x80\x80\xf5\x80\x80\x80", "????????"},      /* beyond U+10FFFF */
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *sanitized = cases[i].sanitized != NULL ? cases[i].sanitized : cases[i].text;
    size_t size = strlen(cases[i].text);
    char text[64];
    strcpy(text, cases[i].text);
    assert_int_equal(rl_utf8_is_valid(text, size), strcmp(text, sanitized) == 0);
    rl_utf8_sanitize(text, size);
    assert_string_equal(text, sanitized);
    assert_true(rl_utf8_is_valid(text, size));
  }
}

static void text_that_shows_nothing_is_blank(void **state) {
  (void)state;
  static const char *const blank[] = {
      "", " ", "\t\n", "\u00a0", "\u00a0 \u2003", "\u3000", "\u200b\ufeff", "\u00ad", "\u2028\u2029", "\u2800", "\U000e0020"};
  static const char *const shown[] = {"a", " a ", "\u00a0.", "\u00a1", "\u200b\u65e5", "\U0001f600", "\xff"};
  for (size_t i = 0; i < sizeof blank / sizeof *blank; i++)
    if (!rl_utf8_is_blank(blank[i])) fail_msg("blank text %zu", i);
  for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
    if (rl_utf8_is_blank(shown[i])) fail_msg("text %zu", i);
}

static const int64_t DAY_NS = INT64_C(86400000000000);

static void put_file(const char *folder, const char *name, int64_t bytes, int64_t used_ns) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  struct timespec times[2] = {{.tv_sec = used_ns / 1000000000}, {.tv_sec = used_ns / 1000000000}};
  assert_int_equal(ftruncate(fileno(file), bytes), 0);
  assert_int_equal(futimens(fileno(file), times), 0);
  fclose(file);
}

static bool has_file(const char *folder, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

static int count_files(const char *folder, const char *pattern) {
  char path[256];
  glob_t found;
  snprintf(path, sizeof path, "%s/%s", folder, pattern);
  int count = glob(path, 0, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
  globfree(&found);
  return count;
}

static void files_of_the_cache_folder_are_bounded_in_number_size_and_age(void **state) {
  (void)state;
  char folder[] = "/tmp/rooflined-cache-XXXXXX", name[64];
  const int64_t now = 1000 * DAY_NS;
  rl_cache_prune("/nowhere", now);
  assert_non_null(mkdtemp(folder));
  for (int i = 0; i < 300; i++) {
    snprintf(name, sizeof name, "counters-%016x", (unsigned)i);
    put_file(folder, name, 1, now - (300 - i) * INT64_C(1000000000));
  }
  put_file(folder, "large.rln", INT64_C(512) << 20, now);
  put_file(folder, "larger.rln", INT64_C(1) << 20, now - DAY_NS);
  put_file(folder, "counters-0123456789abcdef.77", 1, now - DAY_NS); /* an abandoned file of a killed process */
  put_file(folder, ".0123456789abcdef.77", 1, now - DAY_NS);
  put_file(folder, ".0123456789abcdef.78", 1, now); /* a file that a process is writing */
  put_file(folder, "choices.tsv", 1, 0);
  rl_cache_prune(folder, now);
  assert_int_equal(count_files(folder, "counters-*"), 256);
  /* The 300 - 256 = 0x2c oldest files are removed. */
  assert_true(!has_file(folder, "counters-000000000000002b") && has_file(folder, "counters-000000000000002c"));
  assert_true(has_file(folder, "large.rln") && !has_file(folder, "larger.rln"));
  assert_true(!has_file(folder, ".0123456789abcdef.77") && has_file(folder, ".0123456789abcdef.78"));
  rl_cache_prune(folder, now + 91 * DAY_NS);
  assert_int_equal(count_files(folder, "*"), 1);
  assert_true(has_file(folder, "choices.tsv") && !has_file(folder, ".0123456789abcdef.78"));
  put_file(folder, "a.rln", 1, now);
  rl_cache_prune(folder, now - 400 * DAY_NS); /* the clock was set back */
  assert_true(has_file(folder, "a.rln"));
  assert_int_equal(count_files(folder, "*"), 2);
  snprintf(name, sizeof name, "%s/a.rln", folder), unlink(name);
  snprintf(name, sizeof name, "%s/choices.tsv", folder), unlink(name);
  assert_int_equal(rmdir(folder), 0);
}

static void instants_are_rfc_3339_timestamps(void **state) {
  (void)state;
  char text[RL_INSTANT_SIZE];
  int64_t ns = 0;
  assert_string_equal(rl_instant_format(1763675580123456789, text), "2025-11-20T21:53:00.123456789Z");
  assert_int_equal(rl_instant_parse(text, &ns), 0);
  assert_int_equal(ns, 1763675580123456789);
  assert_int_equal(rl_instant_parse("2025-11-20T22:53:00.5+01:00", &ns), 0);
  assert_int_equal(ns, 1763675580500000000);
  static const struct {
    const char *text;
    int64_t ns;
  } cases[] = {{"1970-01-01T00:00:00Z", 0},
               {"1969-12-31T23:59:59.5Z", -500000000},
               {"2024-02-29t00:00:00z", 1709164800000000000},
               {"1677-09-21T00:12:43.145224193Z", INT64_MIN + 1},
               {"2262-04-11T23:47:16.854775807Z", INT64_MAX},
               {"2262-04-11T23:47:16.854775808Z", INT64_MAX}, /* 1 ns beyond INT64_MAX */
               {"0001-01-01T00:00:00Z", INT64_MIN},
               {"9999-12-31T23:59:59Z", INT64_MAX}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (rl_instant_parse(cases[i].text, &ns) < 0) fail_msg("refused: %s", cases[i].text);
    if (ns != cases[i].ns) fail_msg("%s is %lld ns, not %lld ns", cases[i].text, (long long)ns, (long long)cases[i].ns);
  }
  static const char *const wrong[] = {"",
                                      "2026-02-30T00:00:00Z",
                                      "2025-02-29T00:00:00Z",
                                      "2026-04-31T00:00:00Z",
                                      "2026-1-1T0:0:0Z",
                                      "2026-01-01T00:00: 1Z",
                                      "2026-01-01T00:00:00+1:00",
                                      "2026-00-01T00:00:00Z",
                                      "2026-01-01T00:60:00Z",
                                      "yesterday",
                                      "2025-11-20",
                                      "2025-13-20T00:00:00Z",
                                      "2025-11-20T21:53:00",
                                      "2025-11-20T21:53:00Zx",
                                      "2025-11-20T21:53:00.Z",
                                      "2025-11-20T25:00:00Z"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    if (rl_instant_parse(wrong[i], &ns) != -1) fail_msg("accepted: %s", wrong[i]);
}

static void errors_keep_their_context(void **state) {
  (void)state;
  rl_error err;
  assert_int_equal(rl_fail_at(&err, "/a", "must be %d", 3), -1);
  rl_wrap(&err, "job %d", 7);
  assert_string_equal(err.message, "job 7: must be 3");
  assert_string_equal(err.json_pointer, "/a");
  char longer[2000];
  memset(longer, 'x', sizeof longer - 1);
  longer[sizeof longer - 1] = '\0';
  rl_fail(&err, RL_ERRNO, 5, "%s", longer);
  assert_int_equal(strlen(err.message), sizeof err.message - 1);
  for (size_t i = 0; i + 1 < sizeof longer; i++) longer[i] = i % 2 == 0 ? '\xc3' : '\xa9'; /* truncation splits a character */
  longer[sizeof longer - 2] = '\0';
  rl_fail_at(&err, longer, "%s", longer);
  rl_wrap(&err, "job %d", 7);
  assert_true(rl_utf8_is_valid(err.message, strlen(err.message)));
  assert_true(rl_utf8_is_valid(err.json_pointer, strlen(err.json_pointer)));
}

static void arrays_grow(void **state) {
  (void)state;
  int *items = NULL;
  size_t capacity = 0;
  for (int i = 0; i < 5000; i++) {
    assert_return_code(rl_array_reserve(&items, (size_t)i, &capacity, sizeof *items, NULL), 0);
    items[i] = i;
  }
  for (int i = 0; i < 5000; i++) assert_int_equal(items[i], i);
  rl_error err = {0};
  size_t huge = SIZE_MAX / 8, before = huge;
  int *kept = items;
  assert_int_equal(rl_array_reserve(&items, huge, &huge, sizeof *items, &err), -1);
  assert_int_equal(err.domain, RL_ERRNO);
  assert_int_equal(huge, before);
  assert_ptr_equal(items, kept);
  free(items);
}

typedef struct counter {
  rl_timed_mutex mutex;
  int value;
} counter;

static void *count_to_20000(void *context) {
  counter *shared = context;
  for (int i = 0; i < 20000; i++) {
    if (i % 2 == 0) rl_timed_mutex_lock(&shared->mutex);
    else assert_true(rl_timed_mutex_lock_within(&shared->mutex, INT64_C(600000000000)));
    shared->value++;
    rl_timed_mutex_unlock(&shared->mutex);
  }
  return NULL;
}

static void a_timed_mutex_excludes_threads(void **state) {
  (void)state;
  counter shared = {.value = 0};
  pthread_t threads[3];
  rl_timed_mutex_init(&shared.mutex);
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, count_to_20000, &shared), 0);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  assert_int_equal(shared.value, 60000);
  rl_timed_mutex_destroy(&shared.mutex);
}

static void a_timed_lock_gives_up_after_its_time(void **state) {
  (void)state;
  rl_timed_mutex mutex;
  rl_timed_mutex_init(&mutex);
  rl_timed_mutex_lock(&mutex);
  const int64_t begin_ns = rl_monotonic_ns();
  assert_false(rl_timed_mutex_lock_within(&mutex, 20000000));
  assert_true(rl_monotonic_ns() - begin_ns >= 20000000);
  rl_timed_mutex_unlock(&mutex);
  assert_true(rl_timed_mutex_lock_within(&mutex, 0));
  rl_timed_mutex_unlock(&mutex);
  rl_timed_mutex_destroy(&mutex);
}

static void a_metrics_name_contains_its_unit(void **state) {
  (void)state;
  static const struct {
    const char *key, *unit, *word;
  } cases[] = {{"train/fp16/epoch_ms_median", "ms", "ms"},
               {"copy/vector/time_warm_us_median", "µs", "us"},
               {"peak_memory_bytes", "byte", "bytes"},
               {"test_accuracy_ratio", "1", "ratio"},
               {"images_per_s", "images/s", NULL},
               {"train_images_per_s_median", "images/s", NULL},
               {"launches_per_step", "launches/step", NULL},
               {"s", "1", NULL},
               {"ms_epoch", "1", NULL},
               {"sms_used", "1", NULL},
               {"a/b_ms/losses", "1", NULL},
               {"", "1", NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char unit[RL_METRIC_UNIT_SIZE];
    const char *word = rl_metric_unit_word(cases[i].key);
    assert_string_equal(rl_metric_unit(unit, cases[i].key), cases[i].unit);
    assert_string_equal(word != NULL ? word : "", cases[i].word != NULL ? cases[i].word : "");
  }
}

static void a_metrics_value_has_the_unit_of_its_size(void **state) {
  (void)state;
  static const struct {
    const char *key;
    double value;
    const char *text; /* with 4 digits */
  } cases[] = {{"copy/vector/time_warm_us_median", 21693, "21.69 ms"},
               {"copy/vector/time_warm_us_median", 0.64, "640.0 ns"},
               {"train/fp16/epoch_ms_median", 0.5, "0.5000 ms"},
               {"train/fp16/epoch_ms_median", -18400, "-18.40 s"},
               {"total_s", 2, "2.000 s"},
               {"gap_ns", 1500, "1.500 µs"},
               {"gap_ns", 0, "0 µs"},
               {"peak_memory_bytes", 61.1 * 1048576, "61.10 MiB"},
               {"peak_memory_bytes", 12.3 * 1073741824, "12.30 GiB"},
               {"peak_memory_bytes", 12.34 * 1073741824, "12.34 GiB"},
               {"peak_memory_bytes", 100, "100.0 B"},
               {"test_accuracy_ratio", 0.989, "98.90 %"},
               {"skipped_ratio", 0.0003, "0.03000 %"},
               {"skipped_ratio", 1.5e-5, "0.001500 %"},
               {"skipped_ratio", 1.5e-6, "0.00015 %"},
               {"images_per_s", 4625.49, "4625 images/s"},
               {"power_w", 5, "5.000 W"},
               {"launches", 1e-4, "0.0001"},
               {"launches", 1e15, "1e+15"}};
  char text[RL_METRIC_TEXT_SIZE];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    assert_string_equal(rl_metric_text(text, cases[i].key, cases[i].value, 4), cases[i].text);
  assert_string_equal(rl_metric_text(text, "train/fp16/epoch_ms_median", 20.0012, 6), "20.0012 ms");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(printed_fields_decode_to_the_same_values),
                                     cmocka_unit_test(arrays_grow),
                                     cmocka_unit_test(nullable_numbers_are_finite_and_in_range),
                                     cmocka_unit_test(pointer_members_point_into_the_document),
                                     cmocka_unit_test(errors_of_pointer_members_name_their_json_pointer),
                                     cmocka_unit_test(numbers_keep_every_bit),
                                     cmocka_unit_test(json_text_is_bounded),
                                     cmocka_unit_test(numbers_follow_the_grammar),
                                     cmocka_unit_test(integers_have_the_size_of_their_member),
                                     cmocka_unit_test(errors_name_their_json_pointer),
                                     cmocka_unit_test(text_is_utf8),
                                     cmocka_unit_test(text_that_shows_nothing_is_blank),
                                     cmocka_unit_test(files_of_the_cache_folder_are_bounded_in_number_size_and_age),
                                     cmocka_unit_test(a_timed_mutex_excludes_threads),
                                     cmocka_unit_test(a_timed_lock_gives_up_after_its_time),
                                     cmocka_unit_test(instants_are_rfc_3339_timestamps),
                                     cmocka_unit_test(a_metrics_name_contains_its_unit),
                                     cmocka_unit_test(a_metrics_value_has_the_unit_of_its_size),
                                     cmocka_unit_test(errors_keep_their_context)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
