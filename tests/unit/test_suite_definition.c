/* Tests definitions of suites and the line numbers of their errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json_line.h"
#include "suite/definition.h"

static const rl_job_policy policy = {.posting = RL_POSTING_OFF};
static const rl_job_policy posting_policy = {RL_POSTING_ALLOWED, 1 << 20};
static rl_error err;

#define JOB "{\"name\":\"a\",\"request\":{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":64}}}"
#define METRIC "{\"job\":\"a\",\"metric\":\"time_cold_us_median\"}"

static rl_suite *parse_suite(const char *text) {
  rl_suite *suite = NULL;
  if (rl_suite_parse(text, strlen(text), &policy, &suite, &err) < 0) return NULL;
  return suite;
}

static void defaults_are_filled_in(void **state) {
  (void)state;
  rl_suite *suite = parse_suite("{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[" METRIC "]}");
  assert_non_null(suite);
  assert_true(suite->blocks == 7 && suite->time_budget_s == 600 && suite->baseline_runs == 5 && suite->profile);
  assert_int_equal(suite->canary, RL_SUITE_CANARY_ON_GPU_ONLY);
  assert_int_equal(suite->metrics[0].direction, 0);
  assert_true(suite->metrics[0].threshold_ratio == 0.05);
  rl_suite *reparsed = parse_suite(suite->text); /* the canonical text decodes to the same suite */
  assert_non_null(reparsed);
  assert_string_equal(reparsed->text, suite->text);
  assert_string_equal(reparsed->sha256, suite->sha256);
  rl_suite_free(reparsed);
  rl_suite_free(suite);
}

/* Writes the hash of a job with this request to sha256[RL_SHA256_SIZE]. */
static void hash_request(const char *request, char *sha256) {
  char text[2048];
  RL_CLEANUP(rl_suite_cleanup) rl_suite *suite = NULL;
  snprintf(text, sizeof text, "{\"name\":\"s\",\"jobs\":[{\"name\":\"a\",\"request\":%s}],\"metrics\":[" METRIC "]}", request);
  if (rl_suite_parse(text, strlen(text), &posting_policy, &suite, &err) < 0) fail_msg("%s: %s", err.json_pointer, err.message);
  memcpy(sha256, suite->jobs[0].sha256, RL_SHA256_SIZE);
}

#define SOURCE(code, grid, count)                                                                                            \
  "{\"kind\":\"source\",\"code\":\"extern \\\"C\\\" __global__ void f(float *x) { *x = " code                                \
  "; }\",\"entry\":\"f\",\"grid\":[" grid "],\"block\":[32],\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":" count \
  "}}]}"

/* Jobs whose values can be compared have equal hashes, however their requests are written, and whatever passes they have. */
static void the_hash_of_a_job_depends_only_on_its_runs(void **state) {
  (void)state;
  static const char relu[] = "{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":64}}";
  static const struct {
    const char *request, *other;
    bool comparable;
  } cases[] = {
      {relu, "{\"shape\":{\"n\":64},\"kernel\":\"relu\",\"dtype\":\"fp32\",\"kind\":\"kernel\",\"deadline_s\":9}", true},
      {relu, "{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":64},\"passes\":[\"timing\",\"activity\"]}", true},
      {relu, "{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":65}}", false},
      {relu, "{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":64},\"variant\":\"vector\"}", false},
      {"{\"kind\":\"train\",\"epochs\":2}", "{\"kind\":\"train\",\"epochs\":3}", false},
      {SOURCE("1", "1", "64"), SOURCE("2", "1", "64"), true}, /* a suite compares versions of the code */
      {SOURCE("1", "1", "64"), SOURCE("1", "2", "64"), false},
      {SOURCE("1", "1", "64"), SOURCE("1", "1", "65"), false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char sha256[RL_SHA256_SIZE], other[RL_SHA256_SIZE];
    hash_request(cases[i].request, sha256);
    hash_request(cases[i].other, other);
    if ((strcmp(sha256, other) == 0) != cases[i].comparable) fail_msg("%s and %s", cases[i].request, cases[i].other);
  }
}

static void a_metric_of_a_variant_overrides_the_metric_of_its_job(void **state) {
  (void)state;
  rl_suite *suite =
      parse_suite("{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[" METRIC
                  ",{\"job\":\"a\",\"variant\":\"vector\",\"metric\":\"time_cold_us_median\",\"threshold_ratio\":0.5}]}");
  assert_non_null(suite);
  assert_true(rl_suite_find_metric(suite, "a", "vector", "time_cold_us_median")->threshold_ratio == 0.5);
  assert_true(rl_suite_find_metric(suite, "a", "scalar", "time_cold_us_median")->threshold_ratio == 0.05);
  assert_null(rl_suite_find_metric(suite, "a", "scalar", "time_warm_us_median"));
  assert_null(rl_suite_find_metric(suite, "b", "scalar", "time_cold_us_median"));
  rl_suite_free(suite);
}

static void errors_name_the_field(void **state) {
  (void)state;
  static const struct {
    const char *text, *pointer;
  } cases[] = {
      {"{\"name\":\"S\",\"jobs\":[" JOB "],\"metrics\":[" METRIC "]}", "/name"},
      {"{\"name\":\"s\",\"metrics\":[" METRIC "]}", "/jobs"},
      {"{\"name\":\"s\",\"jobs\":[],\"metrics\":[" METRIC "]}", "/jobs"},
      {"{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[]}", "/metrics"},
      {"{\"name\":\"s\",\"jobs\":[" JOB "," JOB "],\"metrics\":[" METRIC "]}", "/jobs/1/name"},
      {"{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[" METRIC "," METRIC "]}", "/metrics/1"},
      {"{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[{\"job\":\"b\",\"metric\":\"x\"}]}", "/metrics/0/job"},
      {"{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[{\"job\":\"a\",\"metric\":\"x/y\"}]}", "/metrics/0/metric"},
      {"{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[{\"job\":\"a\",\"metric\":\"x\",\"threshold_ratio\":0}]}",
       "/metrics/0/threshold_ratio"},
      {"{\"name\":\"s\",\"jobs\":[" JOB
       "],\"metrics\":[{\"job\":\"a\",\"metric\":\"x\",\"direction\":\"higher\",\"threshold_ratio\":1}]}",
       "/metrics/0/threshold_ratio"},
      {"{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[" METRIC "],\"baseline\":{\"runs\":0}}", "/baseline/runs"},
      {"{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[" METRIC "],\"blocks\":31}", "/blocks"},
      {"{\"name\":\"s\",\"jobs\":[{\"name\":\"a\",\"request\":{\"kind\":\"ceilings\",\"device\":\"cpu\"}}],\"metrics\":[" METRIC
       "]}",
       "/jobs/0/request/device"},
      {"{\"name\":\"s\",\"jobs\":[{\"name\":\"a\",\"request\":{\"kind\":\"train\",\"epochs\":0}}],\"metrics\":[" METRIC "]}",
       "/jobs/0/request/epochs"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    err = (rl_error){0};
    rl_suite *suite = parse_suite(cases[i].text);
    if (suite != NULL || err.domain != RL_INPUT || strcmp(err.json_pointer, cases[i].pointer) != 0)
      fail_msg("%s: %s, not %s", cases[i].text, err.json_pointer, cases[i].pointer);
  }
}

/* A value can rise by more than 100 %, but not fall. */
static void a_threshold_must_be_reachable(void **state) {
  (void)state;
  static const char *const metrics[] = {"\"direction\":\"higher\",\"threshold_ratio\":0.99", "\"threshold_ratio\":3"};
  for (int i = 0; i < 2; i++) {
    char text[512];
    snprintf(text, sizeof text, "{\"name\":\"s\",\"jobs\":[" JOB "],\"metrics\":[{\"job\":\"a\",\"metric\":\"x\",%s}]}",
             metrics[i]);
    rl_suite *suite = parse_suite(text);
    assert_non_null(suite);
    rl_suite_free(suite);
  }
}

static void posted_code_follows_the_policy(void **state) {
  (void)state;
  assert_null(
      parse_suite("{\"name\":\"s\",\"jobs\":[{\"name\":\"a\",\"request\":{\"kind\":\"source\"}}],\"metrics\":[" METRIC "]}"));
  assert_true(err.domain == RL_HTTP && err.code == 403);
}

static void json_pointers_have_line_numbers(void **state) {
  (void)state;
  static const char text[] =
      "{\n \"a\": [1,\n  {\"b\": \"}]\\\"\",\n   \"c\": {},\n   \"d~/\": [\n    2,\n    3]}],\n \"e\":\n  null}";
  static const struct {
    const char *pointer;
    int line;
  } cases[] = {{"", 1},           {"/a", 2}, {"/a/0", 2}, {"/a/1", 3},      {"/a/1/b", 3}, {"/a/1/c", 4}, {"/a/1/d~0~1/1", 7},
               {"/a/1/d~0~1", 5}, {"/e", 9}, {"/f", 1},   {"/a/1/none", 3}, {"/a/9", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int line = rl_json_line_of_pointer(text, strlen(text), cases[i].pointer);
    if (line != cases[i].line) fail_msg("%s: line %d, not %d", cases[i].pointer, line, cases[i].line);
  }
  assert_int_equal(rl_json_line_of_byte("a\nb", 3, 2), 2);
  assert_int_equal(rl_json_line_of_byte("a\nb", 3, 99), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(defaults_are_filled_in),
                                     cmocka_unit_test(the_hash_of_a_job_depends_only_on_its_runs),
                                     cmocka_unit_test(a_metric_of_a_variant_overrides_the_metric_of_its_job),
                                     cmocka_unit_test(a_threshold_must_be_reachable),
                                     cmocka_unit_test(errors_name_the_field),
                                     cmocka_unit_test(posted_code_follows_the_policy),
                                     cmocka_unit_test(json_pointers_have_line_numbers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
