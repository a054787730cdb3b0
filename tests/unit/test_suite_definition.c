/* Definitions of suites: which jobs of two definitions can be compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "suite/definition.h"

static const rl_job_policy policy = {RL_POSTING_ALLOWED, 1 << 20};

/* Writes the hash of a job with this request to sha256[RL_SHA256_SIZE]. */
static void hash_request(const char *request, char *sha256) {
  char text[2048];
  rl_error err = {0};
  RL_CLEANUP(rl_suite_cleanup) rl_suite *suite = NULL;
  snprintf(text, sizeof text,
           "{\"name\":\"s\",\"jobs\":[{\"name\":\"j\",\"request\":%s}],"
           "\"metrics\":[{\"job\":\"j\",\"metric\":\"time_warm_us_median\",\"direction\":\"lower\"}]}",
           request);
  if (rl_suite_parse(text, strlen(text), &policy, &suite, &err) < 0) fail_msg("%s: %s", err.json_pointer, err.message);
  snprintf(sha256, RL_SHA256_SIZE, "%s", suite->jobs[0].sha256);
}

#define SOURCE(code, grid, count)                                                                                            \
  "{\"kind\":\"source\",\"code\":\"extern \\\"C\\\" __global__ void f(float *x) { *x = " code                                \
  "; }\",\"entry\":\"f\",\"grid\":[" grid "],\"block\":[32],\"arguments\":[{\"buffer\":{\"dtype\":\"fp32\",\"count\":" count \
  "}}]}"

static void test_jobs_that_can_be_compared(void **state) {
  (void)state;
  static const struct {
    const char *request, *other;
    bool comparable;
  } cases[] = {
      {SOURCE("1", "1", "64"), SOURCE("2", "1", "64"), true}, /* another version of the code is what a suite compares */
      {SOURCE("1", "1", "64"), SOURCE("1", "2", "64"), false},
      {SOURCE("1", "1", "64"), SOURCE("1", "1", "65"), false},
      {"{\"kind\":\"kernel\",\"kernel\":\"copy\",\"shape\":{\"n\":64}}",
       "{\"shape\":{\"n\":64},\"kernel\":\"copy\",\"kind\":\"kernel\"}", true},
      {"{\"kind\":\"kernel\",\"kernel\":\"copy\",\"shape\":{\"n\":64}}",
       "{\"kind\":\"kernel\",\"kernel\":\"copy\",\"shape\":{\"n\":65}}", false},
      {"{\"kind\":\"train\",\"epochs\":2}", "{\"kind\":\"train\",\"epochs\":3}", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char sha256[RL_SHA256_SIZE], other[RL_SHA256_SIZE];
    hash_request(cases[i].request, sha256);
    hash_request(cases[i].other, other);
    if ((strcmp(sha256, other) == 0) != cases[i].comparable) fail_msg("%s and %s", cases[i].request, cases[i].other);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs_that_can_be_compared)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
