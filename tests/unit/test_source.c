/* Tests requests of the kind `source`: the JSON pointers of errors, compiler options, element types, the policy for posting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "request/spec.h"
#include "source/base64.h"
#include "source/source_cache.h"

static const rl_job_policy allowing_policy = {RL_POSTING_ALLOWED, 1 << 20};

static int parse_spec(const char *text, const rl_job_policy *policy, rl_job_spec *spec, rl_error *err) {
  *spec = (rl_job_spec){0};
  *err = (rl_error){0};
  return rl_job_spec_parse(text, strlen(text), policy, spec, err);
}

/* Returns a valid request without the member `without` and with `more` appended. */
static char *make_request(const char *without, const char *more) {
  static const struct {
    const char *name, *value;
  } members[] = {{"kind", "\"source\""},
                 {"code", "\"extern \\\"C\\\" __global__ void add(float *x, int n) {}\""},
                 {"entry", "\"add\""},
                 {"grid", "[4]"},
                 {"block", "[64]"},
                 {"arguments", "[{\"buffer\":{\"dtype\":\"fp32\",\"count\":4}},{\"scalar\":{\"dtype\":\"int32\",\"value\":4}}]"}};
  static char text[8192];
  size_t used = (size_t)sprintf(text, "{");
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (strcmp(without, members[i].name) != 0)
      used += (size_t)sprintf(text + used, "%s\"%s\":%s", used > 1 ? "," : "", members[i].name, members[i].value);
  sprintf(text + used, "%s%s}", *more != '\0' ? "," : "", more);
  return text;
}

static void a_minimal_request_is_one_run(void **state) {
  (void)state;
  rl_job_spec spec;
  rl_error err;
  rl_source source;
  if (parse_spec(make_request("", ""), &allowing_policy, &spec, &err) < 0) fail_msg("%s %s", err.json_pointer, err.message);
  assert_int_equal(spec.run_count, 1);
  assert_string_equal(spec.runs[0].workload, "source");
  assert_string_equal(spec.runs[0].variant, "default");
  assert_int_equal(spec.passes, 1u << RL_PASS_TIMING);
  assert_true(spec.needs_gpu && spec.buffer_bytes == 16 && spec.device[0] == '\0');
  assert_non_null(strstr(spec.request, spec.source_sha256));
  assert_non_null(strstr(spec.runs[0].params, spec.source_sha256));
  assert_null(strstr(spec.request, "__global__"));
  assert_int_equal(rl_source_read(spec.source_json, strlen(spec.source_json), &source, &err), 0);
  assert_string_equal(source.request.entry, "add");
  assert_int_equal(source.request.grid[0], 4);
  assert_int_equal(source.request.grid[2], 1);
  assert_true(source.argument_count == 2 && source.arguments[0].kind == RL_SOURCE_BUFFER &&
              source.arguments[0].init == RL_SOURCE_ZEROS);
  assert_int_equal(source.arguments[0].access, RL_SOURCE_INOUT);
  assert_true(source.arguments[1].value == 4 && source.expected_argument == -1 && isnan(source.model.bytes));
  rl_source_clear(&source);
  rl_job_spec_clear(&spec);
}

typedef struct invalid_request {
  const char *without, *more, *pointer;
} invalid_request;

/* Asserts that each request is refused with an error that has the request's pointer. A NULL pointer ends the list. */
static void assert_refused_with_pointers(const invalid_request *cases) {
  for (; cases->pointer != NULL; cases++) {
    rl_job_spec spec;
    rl_error err;
    char *text = make_request(cases->without, cases->more);
    if (parse_spec(text, &allowing_policy, &spec, &err) == 0) fail_msg("accepted: %s", text);
    if (err.domain != RL_INPUT || strcmp(err.json_pointer, cases->pointer) != 0)
      fail_msg("pointer %s instead of %s for %s: %s", err.json_pointer, cases->pointer, text, err.message);
    assert_true(err.message[0] != '\0' && spec.source_json == NULL);
  }
}

static void errors_in_the_code_name_their_field(void **state) {
  (void)state;
  static const invalid_request cases[] = {
      {"code", "", "/code"},
      {"code", "\"code\":\"\"", "/code"},
      {"code", "\"code\":7", "/code"},
      {"", "\"binary\":\"AAAA\"", "/binary"},
      {"code", "\"binary\":\"AAAA\"", "/binary"},
      {"code", "\"binary\":\"not base64\"", "/binary"},
      {"code", "\"binary\":\"\"", "/binary"},
      {"code", "\"binary\":\"f0VMRgIBATMHAAAAAAAAAAIAvgABAAAAAAAAAAAAAAD//wAAAAAAAAAAAAAAAAAABQBaAEAAOAAEAEAAEgABAA==\"",
       "/binary"},
      {"code", "\"binary\":\"LnZlcnNpb24gOS4w\",\"options\":[]", "/options"},
      {"code", "\"binary\":\"LnZlcnNpb24gOS4w\",\"variants\":[]", "/variants"},
      {"code", "\"binary\":\"LnZlcnNpb24gOS4w\",\"entry\":\"a<b>\"", "/entry"},
      {"entry", "", "/entry"},
      {"entry", "\"entry\":\"\"", "/entry"},
      {"entry", "\"entry\":\"add; int x\"", "/entry"},
      {"entry", "\"entry\":\"a\\\"b\"", "/entry"},
      {0}};
  assert_refused_with_pointers(cases);
}

static void errors_in_the_launch_name_their_field(void **state) {
  (void)state;
  static const invalid_request cases[] = {{"grid", "", "/grid"},
                                          {"grid", "\"grid\":[]", "/grid"},
                                          {"grid", "\"grid\":[1,1,1,1]", "/grid"},
                                          {"grid", "\"grid\":[1,0]", "/grid/1"},
                                          {"grid", "\"grid\":[1.5]", "/grid/0"},
                                          {"grid", "\"grid\":[1,65536]", "/grid/1"},
                                          {"grid", "\"grid\":[1,1,65536]", "/grid/2"},
                                          {"grid", "\"grid\":[2147483648]", "/grid/0"},
                                          {"block", "\"block\":[1025]", "/block/0"},
                                          {"block", "\"block\":[1,1,65]", "/block/2"},
                                          {"block", "\"block\":[64,32]", "/block"},
                                          {"", "\"dynamic_shared_bytes\":-1", "/dynamic_shared_bytes"},
                                          {"", "\"cluster\":[]", "/cluster"},
                                          {"", "\"cluster\":[0]", "/cluster/0"},
                                          {"", "\"cluster\":[17]", "/cluster/0"},
                                          {"", "\"cluster\":[4,4,2]", "/cluster"},
                                          {"", "\"cluster\":[3]", "/grid/0"},
                                          {"", "\"cluster\":[4,2]", "/grid/1"},
                                          {"", "\"cooperative\":1", "/cooperative"},
                                          {"", "\"samples\":0", "/samples"},
                                          {"", "\"device\":\"cpu\"", "/device"},
                                          {"", "\"source\":\"0123\"", "/source"},
                                          {"", "\"epochs\":1", "/epochs"},
                                          {0}};
  assert_refused_with_pointers(cases);
}

/* A request whose second argument is a tensor map of a buffer of 64 x 32 floats. */
#define TENSOR_MAP(MEMBERS) \
  "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":2048}},{\"tensor_map\":{\"argument\":0" MEMBERS "}}]"
#define TENSOR_MAP_POINTER(MEMBER) "/arguments/1/tensor_map/" MEMBER

static void errors_in_tensor_maps_name_their_field(void **state) {
  (void)state;
  static const invalid_request cases[] = {
      {"arguments", TENSOR_MAP(""), TENSOR_MAP_POINTER("shape")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,32]"), TENSOR_MAP_POINTER("box")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,0],\"box\":[32,8]"), TENSOR_MAP_POINTER("shape/1")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,32],\"box\":[32]"), TENSOR_MAP_POINTER("box")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,32],\"box\":[32,8,1]"), TENSOR_MAP_POINTER("box")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,32],\"box\":[257,8]"), TENSOR_MAP_POINTER("box/0")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,32],\"box\":[3,8]"), TENSOR_MAP_POINTER("box")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,32],\"box\":[32,8],\"swizzle\":\"64\""), TENSOR_MAP_POINTER("box")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,32],\"box\":[32,8],\"swizzle\":\"16\""), TENSOR_MAP_POINTER("swizzle")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,33],\"box\":[32,8]"), TENSOR_MAP_POINTER("shape")},
      {"arguments", TENSOR_MAP(",\"shape\":[62,32],\"box\":[32,8]"), TENSOR_MAP_POINTER("shape")},
      {"arguments", TENSOR_MAP(",\"shape\":[4294967296,4294967296,4294967296],\"box\":[32,1,1]"), TENSOR_MAP_POINTER("shape")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,33],\"box\":[32,8],\"strides_bytes\":[256]"), TENSOR_MAP_POINTER("shape")},
      {"arguments",
       TENSOR_MAP(",\"shape\":[16,4294967296,4294967296],\"box\":[16,8,1],\"strides_bytes\":[1099511627776,"
                  "1099511627776]"),
       TENSOR_MAP_POINTER("shape")},
      {"arguments", TENSOR_MAP(",\"shape\":[64,32],\"box\":[32,8],\"strides_bytes\":[256,16]"),
       TENSOR_MAP_POINTER("strides_bytes")},
      {"arguments", TENSOR_MAP(",\"shape\":[32,32],\"box\":[32,8],\"strides_bytes\":[136]"), TENSOR_MAP_POINTER("strides_bytes")},
      {"arguments", "\"arguments\":[{\"tensor_map\":{\"argument\":0,\"shape\":[64],\"box\":[32]}}]",
       "/arguments/0/tensor_map/argument"},
      {"arguments", "\"arguments\":[{\"tensor_map\":{\"argument\":1,\"shape\":[64],\"box\":[32]}}]",
       "/arguments/0/tensor_map/argument"},
      {"arguments",
       "\"arguments\":[{\"tensor_map\":{\"argument\":1,\"shape\":[64],\"box\":[32],\"fills_nan\":true}},"
       "{\"buffer\":{\"dtype\":\"int32\",\"count\":64}}]",
       "/arguments/0/tensor_map/fills_nan"},
      {"arguments",
       "\"arguments\":[{\"tensor_map\":{\"argument\":0,\"shape\":[64],\"box\":[32]},"
       "\"scalar\":{\"dtype\":\"fp32\",\"value\":1}}]",
       "/arguments/0"},
      {0}};
  assert_refused_with_pointers(cases);
}

/* Without strides_bytes, the strides are those of a packed tensor; otherwise they are the given ones. A buffer of exactly the
 * tensor's size suffices. */
static void tensor_maps_have_strides(void **state) {
  (void)state;
  static const struct {
    const char *members;
    int rank;
    int64_t strides_bytes[2];
  } cases[] = {{",\"shape\":[2048],\"box\":[32]", 1, {0, 0}},
               {",\"shape\":[64,32],\"box\":[32,8],\"swizzle\":\"128\"", 2, {256, 0}},
               {",\"shape\":[4,32,16],\"box\":[4,8,1]", 3, {16, 512}},
               {",\"shape\":[60,32],\"box\":[32,8],\"strides_bytes\":[256]", 2, {256, 0}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char members[512];
    rl_job_spec spec;
    rl_error err;
    rl_source source;
    snprintf(members, sizeof members, TENSOR_MAP("%s"), cases[i].members);
    if (parse_spec(make_request("arguments", members), &allowing_policy, &spec, &err) < 0)
      fail_msg("%s %s", err.json_pointer, err.message);
    assert_int_equal(rl_source_read(spec.source_json, strlen(spec.source_json), &source, &err), 0);
    const rl_source_tensor_map *map = &source.arguments[1].tensor_map;
    assert_true(source.arguments[1].kind == RL_SOURCE_TENSOR_MAP && map->rank == cases[i].rank);
    assert_true(map->strides_bytes[0] == cases[i].strides_bytes[0] && map->strides_bytes[1] == cases[i].strides_bytes[1]);
    rl_source_clear(&source);
    rl_job_spec_clear(&spec);
  }
}

static void errors_in_the_arguments_name_their_field(void **state) {
  (void)state;
  static const invalid_request cases[] = {
      {"arguments", "\"arguments\":{}", "/arguments"},
      {"arguments", "\"arguments\":[7]", "/arguments/0"},
      {"arguments", "\"arguments\":[{}]", "/arguments/0"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":1},\"scalar\":{\"dtype\":\"fp32\",\"value\":1}}]",
       "/arguments/0"},
      {"arguments", "\"arguments\":[{\"pointer\":{}}]", "/arguments/0/pointer"},
      {"arguments", "\"arguments\":[{\"buffer\":7}]", "/arguments/0/buffer"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"count\":1}}]", "/arguments/0/buffer/dtype"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp8\",\"count\":1}}]", "/arguments/0/buffer/dtype"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\"}}]", "/arguments/0/buffer/count"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":1}},{\"buffer\":{\"dtype\":\"fp32\",\"count\":0}}]",
       "/arguments/1/buffer/count"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":1,\"init\":\"twos\"}}]",
       "/arguments/0/buffer/init"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"int8\",\"count\":1,\"init\":\"normal\"}}]",
       "/arguments/0/buffer/init"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":1,\"seed\":-1}}]", "/arguments/0/buffer/seed"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":1,\"access\":\"rw\"}}]",
       "/arguments/0/buffer/access"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":1,\"access\":\"out\",\"init\":\"ones\"}}]",
       "/arguments/0/buffer/init"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"access\":\"out\",\"bytes\":\"AAAAAA==\"}}]",
       "/arguments/0/buffer/bytes"},
      {"arguments",
       "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":1,\"access\":\"in\"}}],"
       "\"expected\":{\"argument\":0,\"values\":\"AAAAAA==\"}",
       "/expected/argument"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"bytes\":\"AAA\"}}]", "/arguments/0/buffer/bytes"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"bytes\":\"AAAAAAA=\"}}]", "/arguments/0/buffer/bytes"},
      {"arguments", "\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":2,\"bytes\":\"AAAAAA==\"}}]",
       "/arguments/0/buffer/bytes"},
      {"arguments", "\"arguments\":[{\"scalar\":{\"dtype\":\"int8\",\"value\":128}}]", "/arguments/0/scalar/value"},
      {"arguments", "\"arguments\":[{\"scalar\":{\"dtype\":\"uint8\",\"value\":-1}}]", "/arguments/0/scalar/value"},
      {"arguments", "\"arguments\":[{\"scalar\":{\"dtype\":\"int32\",\"value\":1.5}}]", "/arguments/0/scalar/value"},
      {"arguments", "\"arguments\":[{\"scalar\":{\"dtype\":\"uint64\",\"value\":1e17}}]", "/arguments/0/scalar/value"},
      {"arguments", "\"arguments\":[{\"scalar\":{\"dtype\":\"fp32\"}}]", "/arguments/0/scalar/value"},
      {"arguments", "\"arguments\":[{\"scalar\":{\"dtype\":\"fp32\",\"value\":\"1\"}}]", "/arguments/0/scalar/value"},
      {"arguments",
       "\"arguments\":[{\"buffer\":{\"dtype\":\"fp64\",\"count\":131072}},{\"buffer\":{\"dtype\":\"uint8\",\"count\":1}}]",
       "/arguments"},
      {0}};
  assert_refused_with_pointers(cases);
}

static void errors_in_options_and_variants_name_their_field(void **state) {
  (void)state;
  static const invalid_request cases[] = {{"", "\"options\":\"-lineinfo\"", "/options"},
                                          {"", "\"options\":[7]", "/options/0"},
                                          {"", "\"options\":[\"-lineinfo\",\"-I/etc\"]", "/options/1"},
                                          {"", "\"options\":[\"-include=/etc/passwd\"]", "/options/0"},
                                          {"", "\"options\":[\"--pre-include=/etc/passwd\"]", "/options/0"},
                                          {"", "\"options\":[\"-arch=sm_80\"]", "/options/0"},
                                          {"", "\"options\":[\"lineinfo\"]", "/options/0"},
                                          {"", "\"options\":[\"-lineinfo=1\"]", "/options/0"},
                                          {"", "\"options\":[\"-maxrregcount=8\"]", "/options/0"},
                                          {"", "\"options\":[\"-maxrregcount=32x\"]", "/options/0"},
                                          {"", "\"options\":[\"-maxrregcount\"]", "/options/0"},
                                          {"", "\"options\":[\"-std=c++98\"]", "/options/0"},
                                          {"", "\"options\":[\"--fmad=maybe\"]", "/options/0"},
                                          {"", "\"options\":[\"--ptxas-options=-v\"]", "/options/0"},
                                          {"", "\"options\":[\"-D1X=2\"]", "/options/0"},
                                          {"", "\"options\":[\"-DX(a)=a\"]", "/options/0"},
                                          {"", "\"options\":[\"-DX=1\\n-I/etc\"]", "/options/0"},
                                          {"", "\"options\":[\"-O4\"]", "/options/0"},
                                          {"", "\"variants\":[{\"fast_math\":1}]", "/variants/0/fast_math"},
                                          {"", "\"variants\":[{},{\"max_registers\":8}]", "/variants/1/max_registers"},
                                          {"", "\"variants\":[{\"max_registers\":256}]", "/variants/0/max_registers"},
                                          {"", "\"variants\":[{\"launch_bounds\":[1,2,3]}]", "/variants/0/launch_bounds"},
                                          {"", "\"variants\":[{\"defines\":[\"A=1\",\"=2\"]}]", "/variants/0/defines/1"},
                                          {"", "\"variants\":[{\"defines\":[7]}]", "/variants/0/defines/0"},
                                          {"", "\"variants\":[{\"name\":\"a\"},{\"name\":\"a\"}]", "/variants/1/name"},
                                          {"", "\"variants\":[{},{}]", "/variants/1/name"},
                                          {"", "\"variants\":[{\"registers\":8}]", "/variants/0/registers"},
                                          {"", "\"variants\":[{},{},{},{},{},{},{},{},{}]", "/variants"},
                                          {0}};
  assert_refused_with_pointers(cases);
}

#define REFERENCE(MEMBERS) "\"expected\":{\"argument\":0,\"reference\":{" MEMBERS "}}"
#define REFERENCE_POINTER(MEMBER) "/expected/reference/" MEMBER

static void errors_in_references_name_their_field(void **state) {
  (void)state;
  static const invalid_request cases[] = {
      {"", "\"expected\":{\"argument\":0}", "/expected/values"},
      {"", "\"expected\":{\"argument\":0,\"values\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"reference\":{\"entry\":\"add\"}}",
       "/expected/reference"},
      {"", "\"expected\":{\"argument\":0,\"reference\":7}", "/expected/reference"},
      {"", REFERENCE(""), REFERENCE_POINTER("entry")},
      {"", REFERENCE("\"entry\":\"\""), REFERENCE_POINTER("entry")},
      {"", REFERENCE("\"entry\":\"a;b\""), REFERENCE_POINTER("entry")},
      {"", REFERENCE("\"entry\":\"add\",\"grid\":[0]"), REFERENCE_POINTER("grid/0")},
      {"", REFERENCE("\"entry\":\"add\",\"grid\":[1,65536]"), REFERENCE_POINTER("grid/1")},
      {"", REFERENCE("\"entry\":\"add\",\"block\":[64,32]"), REFERENCE_POINTER("block")},
      {"", REFERENCE("\"entry\":\"add\",\"block\":[1,1,65]"), REFERENCE_POINTER("block/2")},
      {"", REFERENCE("\"entry\":\"add\",\"arguments\":[]"), REFERENCE_POINTER("arguments")},
      {"", "\"expected\":{\"argument\":1,\"reference\":{\"entry\":\"add\"}}", "/expected/argument"},
      {"code", "\"binary\":\"LnZlcnNpb24gOS4w\"," REFERENCE("\"entry\":\"add\""), REFERENCE_POINTER("code")},
      {0}};
  assert_refused_with_pointers(cases);
}

/* The reference has the code, grid and block of the job unless the request names others for it. */
static void references_have_defaults(void **state) {
  (void)state;
  static const struct {
    const char *more, *code;
    int64_t grid[2], block;
  } cases[] = {{REFERENCE("\"entry\":\"plain\""), "__global__", {4, 1}, 64},
               {REFERENCE("\"entry\":\"plain\",\"code\":\"other\",\"grid\":[7,3],\"block\":[32]"), "other", {7, 3}, 32}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_job_spec spec;
    rl_error err;
    rl_source source;
    if (parse_spec(make_request("", cases[i].more), &allowing_policy, &spec, &err) < 0)
      fail_msg("%s %s", err.json_pointer, err.message);
    assert_int_equal(rl_source_read(spec.source_json, strlen(spec.source_json), &source, &err), 0);
    assert_true(source.has_reference && source.expected == NULL && source.expected_argument == 0 && source.tolerance == 1e-6);
    assert_string_equal(source.reference.entry, "plain");
    assert_non_null(strstr(source.reference.code, cases[i].code));
    assert_true(source.reference.grid[0] == cases[i].grid[0] && source.reference.grid[1] == cases[i].grid[1]);
    assert_true(source.reference.block[0] == cases[i].block && source.reference.block[1] == 1);
    rl_source_clear(&source);
    rl_job_spec_clear(&spec);
  }
}

static void errors_in_model_and_expected_name_their_field(void **state) {
  (void)state;
  static const invalid_request cases[] = {
      {"", "\"model\":{\"bytes\":-1}", "/model/bytes"},
      {"", "\"model\":{\"flops\":1}", "/model/flops"},
      {"", "\"model\":[]", "/model"},
      {"", "\"expected\":{\"values\":\"AAAAAA==\"}", "/expected/argument"},
      {"", "\"expected\":{\"argument\":0}", "/expected/values"},
      {"", "\"expected\":{\"argument\":1,\"values\":\"AAAAAA==\"}", "/expected/argument"},
      {"", "\"expected\":{\"argument\":2,\"values\":\"AAAAAA==\"}", "/expected/argument"},
      {"", "\"expected\":{\"argument\":0,\"values\":\"AAAAAA==\"}", "/expected/values"},
      {"", "\"expected\":{\"argument\":0,\"values\":\"AAAAAAAAAAAAAAAAAAAAAA==\",\"tolerance\":-1}", "/expected/tolerance"},
      {0}};
  assert_refused_with_pointers(cases);
}

static void sizes_are_bounded(void **state) {
  (void)state;
  enum { CAPACITY = 6 << 20 };
  static const struct {
    const char *without, *member;
    size_t max_size;
  } cases[] = {{"code", "code", RL_SOURCE_CODE_MAX}, {"code", "binary", RL_SOURCE_BINARY_MAX / 3 * 4}};
  char *text = malloc(CAPACITY);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (size_t excess = 0; excess <= 4; excess += 4) {
      rl_job_spec spec;
      rl_error err;
      size_t size = cases[i].max_size + excess, used = (size_t)sprintf(text, "%s", make_request(cases[i].without, ""));
      used += (size_t)sprintf(text + used - 1, ",\"%s\":\"", cases[i].member) - 1;
      memset(text + used, 'A', size);
      strcpy(text + used + size, "\"}");
      int rc = parse_spec(text, &allowing_policy, &spec, &err);
      if (excess > 0 && (rc == 0 || strstr(err.message, "at most") == NULL))
        fail_msg("%s of %zu bytes: %s", cases[i].member, size, err.message);
      if (excess == 0 && i == 0) assert_int_equal(rc, 0);
      if (excess == 0 && i == 1)
        assert_non_null(strstr(err.message, "complete cubin")); /* the size is accepted, but the bytes are no binary */
      rl_job_spec_clear(&spec);
    }
  free(text);
}

static void variants_are_runs(void **state) {
  (void)state;
  static const char *const names[] = {"default", "fast_math", "few", "max_registers=32,launch_bounds=", "N=4,M"};
  static const char *const expected_options[] = {
      "--generate-line-info --define-macro=A=b c", "--generate-line-info --define-macro=A=b c --use_fast_math",
      "--generate-line-info --define-macro=A=b c --maxrregcount=24",
      "--generate-line-info --define-macro=A=b c --maxrregcount=32 --ptxas-options=--maxntid=256 "
      "--ptxas-options=--minnctapersm=4",
      "--generate-line-info --define-macro=A=b c --define-macro=N=4 --define-macro=M"};
  rl_job_spec spec;
  rl_source source;
  rl_error err;
  if (parse_spec(make_request("",
                              "\"options\":[\"--lineinfo\",\"-DA=b c\"],\"samples\":7,\"model\":{\"bytes\":32},"
                              "\"variants\":[{},{\"fast_math\":true},{\"name\":\"few\",\"max_registers\":24},"
                              "{\"max_registers\":32,\"launch_bounds\":[256,4]},{\"defines\":[\"N=4\",\"M\"]}]"),
                 &allowing_policy, &spec, &err) < 0)
    fail_msg("%s %s", err.json_pointer, err.message);
  assert_int_equal(spec.run_count, 5);
  assert_int_equal(rl_source_cache_put(spec.source_json, strlen(spec.source_json), &err), 0);
  assert_int_equal(rl_source_cache_get(spec.source_sha256, &source, &err), 0);
  for (int i = 0; i < spec.run_count; i++) {
    rl_source_params params;
    rl_source_options options;
    char text[1024] = "";
    rl_source_workload.defaults(&params);
    assert_int_equal(rl_fields_parse(rl_source_workload.fields, spec.runs[i].params, strlen(spec.runs[i].params), &params,
                                     sizeof params, &err),
                     0);
    assert_true(params.variant_index == i && params.samples == 7 && params.model.bytes == 32 && isnan(params.model.operations));
    assert_string_equal(params.source_sha256, spec.source_sha256);
    assert_int_equal(strncmp(spec.runs[i].variant, names[i], strlen(names[i])), 0);
    assert_int_equal(rl_source_compile_options(&source, i, &options, &err), 0);
    for (int o = 0; o < options.count; o++) strcat(strcat(text, o > 0 ? " " : ""), options.items[o]);
    assert_string_equal(text, expected_options[i]);
  }
  rl_source_clear(&source);
  rl_job_spec_clear(&spec);
}

static void the_same_text_has_the_same_hash(void **state) {
  (void)state;
  rl_job_spec first, second, third;
  rl_error err;
  parse_spec(make_request("", "\"samples\":5"), &allowing_policy, &first, &err);
  parse_spec(make_request("", "\"samples\":6,\"device\":\"gpu0\""), &allowing_policy, &second, &err);
  parse_spec(make_request("", "\"options\":[\"-lineinfo\"]"), &allowing_policy, &third, &err);
  assert_string_equal(first.source_sha256, second.source_sha256);
  assert_string_not_equal(first.source_sha256, third.source_sha256);
  rl_job_spec_clear(&first);
  rl_job_spec_clear(&second);
  rl_job_spec_clear(&third);
}

static void posting_follows_the_policy(void **state) {
  (void)state;
  static const struct {
    rl_posting posting;
    int status;
    const char *hint;
  } cases[] = {{RL_POSTING_OFF, 403, "allow_source = true"}, {RL_POSTING_NEEDS_TOKEN, 401, "rooflinectl token"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_job_policy policy = {cases[i].posting, 1 << 20};
    rl_job_spec spec;
    rl_error err;
    assert_int_equal(parse_spec(make_request("code", ""), &policy, &spec, &err),
                     -1); /* although the request lacks its code: the policy is checked first */
    assert_true(err.domain == RL_HTTP && err.code == cases[i].status);
    assert_non_null(strstr(err.message, cases[i].hint));
    assert_int_equal(parse_spec("{\"kind\":\"train\"}", &policy, &spec, &err), 0);
  }
}

static void stored_numbers_load_unchanged(void **state) {
  (void)state;
  static const double cases[RL_SOURCE_TYPE_COUNT][3] = {{0.1, -1e300, 0},
                                                        {0.5, -3e38, 1},
                                                        {0.5, -65504, 1},
                                                        {0.5, -256, 1},
                                                        {127, -128, 0},
                                                        {255, 0, 1},
                                                        {32767, -32768, 0},
                                                        {65535, 0, 1},
                                                        {2147483647, -2147483648.0, 0},
                                                        {4294967295, 0, 1},
                                                        {9007199254740992, -9007199254740991, 0},
                                                        {9007199254740992, 0, 1}};
  for (int type = 0; type < RL_SOURCE_TYPE_COUNT; type++) {
    uint64_t memory[4] = {0};
    for (size_t i = 0; i < 3; i++) rl_source_double_to_element(type, memory, i, cases[type][i]);
    for (size_t i = 0; i < 3; i++)
      if (rl_source_element_to_double(type, memory, i) !=
          (type == RL_SOURCE_FP32 ? (double)(float)cases[type][i] : cases[type][i]))
        fail_msg("%s does not keep the value %g", rl_source_type_names[type], cases[type][i]);
  }
}

static void the_cache_keeps_the_last_sources(void **state) {
  (void)state;
  rl_source source;
  rl_error err;
  char text[256], sha256[4][RL_SHA256_SIZE];
  for (int i = 0; i < 4; i++) {
    int length = snprintf(text, sizeof text, "{\"code\":\"%d\",\"entry\":\"k\",\"grid\":[1],\"block\":[1]}", i);
    assert_int_equal(rl_source_cache_put(text, (size_t)length, &err), 0);
    assert_int_equal(rl_source_cache_put(text, (size_t)length, &err), 0); /* uses no second entry of the cache */
    rl_sha256(text, (size_t)length, sha256[i]);
  }
  for (int i = 2; i < 4; i++) {
    assert_int_equal(rl_source_cache_get(sha256[i], &source, &err), 0);
    assert_int_equal(source.request.code[0], '0' + i);
    rl_source_clear(&source);
  }
  assert_int_equal(rl_source_cache_get(sha256[0], &source, &err), -1);
  assert_int_equal(err.domain, RL_INPUT);
}

/* Decodes a text with libsodium. Returns the number of bytes; 0: the text is not base64. */
static size_t decode_with_sodium(const char *text, unsigned char *bytes, size_t capacity) {
  const char *end = NULL;
  size_t size = 0;
  const int rc = sodium_base642bin(bytes, capacity, text, strlen(text), NULL, &size, &end, sodium_base64_VARIANT_ORIGINAL);
  return rc == 0 && *end == '\0' ? size : 0;
}

/* Compares with libsodium: texts of each length, and the same texts with one other ASCII character. */
static void base64_is_decoded_as_by_libsodium(void **state) {
  (void)state;
  enum { MAX_SIZE = 64, CHANGES = 400 };
  unsigned char bytes[MAX_SIZE], expected[2 * MAX_SIZE];
  size_t accepted = 0, refused = 0;
  for (size_t size = 1; size <= MAX_SIZE; size++) {
    char text[2 * MAX_SIZE + 8];
    randombytes_buf(bytes, size);
    sodium_bin2base64(text, sizeof text, bytes, size, sodium_base64_VARIANT_ORIGINAL);
    for (int change = 0; change < CHANGES; change++) {
      const size_t position = randombytes_uniform((uint32_t)strlen(text));
      const char original = text[position];
      if (change > 0) text[position] = (char)(change % 2 == 0 ? randombytes_uniform(127) + 1 : (uint32_t) "A/+=z-_ "[change % 8]);
      unsigned char *decoded = NULL;
      size_t decoded_size = 0;
      rl_error err;
      const size_t expected_size = decode_with_sodium(text, expected, sizeof expected);
      const int rc = rl_source_decode_base64(text, sizeof expected, "/bytes", &decoded, &decoded_size, &err);
      if ((rc == 0) != (expected_size > 0)) fail_msg("\"%s\": %d, libsodium %zu bytes", text, rc, expected_size);
      if (rc == 0) assert_int_equal(decoded_size, expected_size);
      if (rc == 0) assert_memory_equal(decoded, expected, expected_size);
      free(decoded);
      accepted += rc == 0;
      refused += rc != 0;
      text[position] = original;
    }
  }
  assert_true(accepted > 100 && refused > 100);
}

static void base64_is_bounded(void **state) {
  (void)state;
  unsigned char *decoded = NULL;
  size_t size = 0;
  rl_error err;
  assert_int_equal(rl_source_decode_base64("", 3, "/bytes", &decoded, &size, &err), -1);
  assert_int_equal(rl_source_decode_base64("QUJDRA==", 3, "/bytes", &decoded, &size, &err), -1);
  assert_non_null(strstr(err.message, "at most 3 bytes"));
  assert_int_equal(rl_source_decode_base64("\xdfw==", 3, "/bytes", &decoded, &size, &err), -1); /* libsodium accepts it */
  assert_int_equal(rl_source_decode_base64("QUJDRA==", 4, "/bytes", &decoded, &size, &err), 0);
  assert_string_equal((char *)decoded, "ABCD");
  free(decoded);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(base64_is_decoded_as_by_libsodium),
                                     cmocka_unit_test(base64_is_bounded),
                                     cmocka_unit_test(a_minimal_request_is_one_run),
                                     cmocka_unit_test(errors_in_the_code_name_their_field),
                                     cmocka_unit_test(errors_in_the_launch_name_their_field),
                                     cmocka_unit_test(errors_in_the_arguments_name_their_field),
                                     cmocka_unit_test(errors_in_tensor_maps_name_their_field),
                                     cmocka_unit_test(tensor_maps_have_strides),
                                     cmocka_unit_test(errors_in_options_and_variants_name_their_field),
                                     cmocka_unit_test(errors_in_references_name_their_field),
                                     cmocka_unit_test(references_have_defaults),
                                     cmocka_unit_test(errors_in_model_and_expected_name_their_field),
                                     cmocka_unit_test(sizes_are_bounded),
                                     cmocka_unit_test(variants_are_runs),
                                     cmocka_unit_test(the_same_text_has_the_same_hash),
                                     cmocka_unit_test(posting_follows_the_policy),
                                     cmocka_unit_test(stored_numbers_load_unchanged),
                                     cmocka_unit_test(the_cache_keeps_the_last_sources)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
