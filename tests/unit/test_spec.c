/* Tests that requests are validated field by field and expanded into runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "model/catalogue.h"
#include "section_bits.h"
#include "request/spec.h"
#include "request/spec_internal.h"
#include "train/model.h"

static const rl_job_policy policy = {RL_POSTING_ALLOWED, 1 << 30};
static int parse_spec(const char *text, rl_job_spec *spec, rl_error *err) {
  return rl_job_spec_parse(text, strlen(text), &policy, spec, err);
}

static rl_train_params parse_params(const rl_run_spec *run) {
  rl_train_params params = {0};
  rl_error err = {0};
  if (rl_fields_parse(rl_train_fields, run->params, strlen(run->params), &params, sizeof params, &err) < 0)
    fail_msg("%s: %s", run->params, err.message);
  return params;
}

static void a_bare_request_gets_the_defaults(void **state) {
  (void)state;
  rl_job_spec spec;
  rl_error err = {0};
  if (parse_spec("{\"kind\":\"train\"}", &spec, &err) < 0) fail_msg("%s", err.message);
  assert_string_equal(spec.kind, "train");
  assert_string_equal(spec.device, "");
  assert_int_equal(spec.passes, 1u << RL_PASS_TIMING);
  assert_int_equal(spec.run_count, 2);
  assert_string_equal(spec.runs[0].workload, "mnist_cnn");
  assert_string_equal(spec.runs[0].variant, "fp32");
  assert_string_equal(spec.runs[1].variant, "fp16");
  rl_train_params params = parse_params(&spec.runs[1]);
  assert_int_equal(params.precision, RL_FP16);
  assert_true(params.epochs == 2 && params.warmup_epochs == 1 && params.batch_size == 64 && params.seed == 1 &&
              params.max_images == 0);
  assert_true(params.learning_rate == 1e-3);
  assert_string_equal(params.engine, "auto");
  assert_string_equal(params.dataset, "auto");
}

static void every_field_is_decoded(void **state) {
  (void)state;
  static const char text[] =
      "{\"passes\":[\"counters\",\"activity\"],\"kind\":\"train\",\"precisions\":[\"fp16\",\"tf32\"],\"epochs\":7,"
      "\"warmup_epochs\":0,\"batch_size\":8192,\"seed\":9007199254740991,\"learning_rate\":0.5,\"engine\":\"cudnn\","
      "\"dataset\":\"files\",\"device\":\"gpu1\","
      "\"max_images\":640,\"deadline_s\":60}";
  rl_job_spec spec, reparsed;
  rl_error err = {0};
  if (parse_spec(text, &spec, &err) < 0) fail_msg("%s", err.message);
  assert_int_equal(spec.passes, 1u << RL_PASS_ACTIVITY | 1u << RL_PASS_COUNTERS);
  assert_int_equal(spec.time_limit_s, 60);
  assert_string_equal(spec.device, "gpu1");
  assert_int_equal(spec.run_count, 2);
  assert_string_equal(spec.runs[0].variant, "tf32"); /* in the order of rl_precision_names */
  rl_train_params params = parse_params(&spec.runs[1]);
  assert_true(params.epochs == 7 && params.warmup_epochs == 0 && params.batch_size == 8192 &&
              params.seed == INT64_C(9007199254740991));
  assert_true(params.max_images == 640 && params.learning_rate == 0.5);
  assert_string_equal(params.engine, "cudnn");
  assert_string_equal(params.dataset, "files");
  /* The canonical request decodes to the same job. */
  if (parse_spec(spec.request, &reparsed, &err) < 0) fail_msg("%s", err.message);
  assert_memory_equal(&spec, &reparsed, sizeof spec);
}

static void errors_name_the_field(void **state) {
  (void)state;
  static const struct {
    const char *text, *pointer;
  } cases[] = {
      {"", ""},
      {"[]", ""},
      {"{\"kind\":\"train\"", ""},
      {"{}", "/kind"},
      {"{\"kind\":\"bake\"}", "/kind"},
      {"{\"kind\":3}", "/kind"},
      {"{\"kind\":\"train\",\"kind\":\"train\"}", "/kind"},
      {"{\"kind\":\"train\",\"epochs\":0}", "/epochs"},
      {"{\"kind\":\"train\",\"epochs\":1001}", "/epochs"},
      {"{\"kind\":\"train\",\"epochs\":\"2\"}", "/epochs"},
      {"{\"kind\":\"train\",\"batch_size\":0}", "/batch_size"},
      {"{\"kind\":\"train\",\"batch_size\":1000000000}", "/batch_size"},
      {"{\"kind\":\"train\",\"seed\":-1}", "/seed"},
      {"{\"kind\":\"train\",\"learning_rate\":0}", "/learning_rate"},
      {"{\"kind\":\"train\",\"learning_rate\":10.5}", "/learning_rate"},
      {"{\"kind\":\"train\",\"precisions\":[]}", "/precisions"},
      {"{\"kind\":\"train\",\"precisions\":[\"fp32\",\"fp8\"]}", "/precisions/1"},
      {"{\"kind\":\"train\",\"passes\":[\"timing\",\"timing\"]}", "/passes/1"},
      {"{\"kind\":\"train\",\"engine\":\"tensorflow\"}", "/engine"},
      {"{\"kind\":\"train\",\"dataset\":\"cifar\"}", "/dataset"},
      {"{\"kind\":\"train\",\"device\":\"a name that is far too long\"}", "/device"},
      {"{\"kind\":\"train\",\"deadline_s\":604801}", "/deadline_s"},
      {"{\"kind\":\"train\",\"epoch\":2}", "/epoch"},
      {"{\"kind\":\"kernel\",\"shape\":{\"n\":1}}", "/kernel"},
      {"{\"kind\":\"kernel\",\"kernel\":\"knead\",\"shape\":{\"n\":1}}", "/kernel"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\"}", "/shape"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":[1]}", "/shape"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{}}", "/shape/n"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":0}}", "/shape/n"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":1,\"rows\":1}}", "/shape/rows"},
      {"{\"kind\":\"kernel\",\"kernel\":\"bias_gelu\",\"shape\":{\"rows\":1}}", "/shape/columns"},
      {"{\"kind\":\"kernel\",\"kernel\":\"bias_gelu\",\"shape\":{\"rows\":100000,\"columns\":100000}}", "/shape"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":1},\"dtype\":\"fp8\"}", "/dtype"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":1},\"variant\":\"best\"}", "/variant"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":1},\"samples\":1001}", "/samples"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":1},\"epochs\":1}", "/epochs"},
      {"{\"kind\":\"train\",\"set\":\"everything\"}", "/set"},
      {"{\"kind\":\"train\",\"sections\":[\"Occupancy\",\"Nothing\"]}", "/sections/1"},
      {"{\"kind\":\"train\",\"sections\":\"Occupancy\"}", "/sections"},
      {"{\"kind\":\"train\",\"metrics\":[\"dram__bytes.sum\",\"dram__bytes sum\"]}", "/metrics/1"},
      {"{\"kind\":\"train\",\"metrics\":[\"\"]}", "/metrics/0"},
      {"{\"kind\":\"train\",\"metrics\":[\"a__b\",\"a__b\"]}", "/metrics/1"},
      {"{\"kind\":\"train\",\"metrics\":[7]}", "/metrics/0"},
      {"{\"kind\":\"train\",\"metrics\":\"dram__bytes.sum\"}", "/metrics"},
      {"{\"kind\":\"train\",\"launch\":-2}", "/launch"},
      {"{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":1},\"kernels\":\"*\"}", "/kernels"},
      {"{\"kind\":\"train\",\"engine\":\"blas\",\"device\":\"gpu0\"}", "/engine"},
      {"{\"kind\":\"train\",\"engine\":\"cudnn\",\"device\":\"cpu\"}", "/engine"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_job_spec spec = {.run_count = 42};
    rl_error err = {0};
    if (parse_spec(cases[i].text, &spec, &err) != -1) fail_msg("accepted: %s", cases[i].text);
    assert_int_equal(err.domain, RL_INPUT);
    assert_string_equal(err.json_pointer, cases[i].pointer);
    assert_int_equal(spec.run_count, 42);
  }
}

static void a_kernel_runs_once_for_each_variant(void **state) {
  (void)state;
  rl_job_spec spec, reparsed;
  rl_error err = {0};
  if (parse_spec("{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":17}}", &spec, &err) < 0) fail_msg("%s", err.message);
  assert_string_equal(spec.kind, "kernel");
  assert_int_equal(spec.passes, 1u << RL_PASS_TIMING);
  assert_int_equal(spec.run_count, 2);
  assert_string_equal(spec.runs[0].workload, "relu");
  assert_string_equal(spec.runs[0].variant, "scalar");
  assert_string_equal(spec.runs[1].variant, "vector");
  assert_string_equal(
      spec.runs[1].params,
      "{\"dtype\":\"fp32\",\"shape\":{\"n\":17},\"variant\":\"vector\",\"build\":\"\",\"samples\":20,\"pause_ms\":0,"
      "\"seed\":1}");
  assert_int_equal(
      parse_spec("{\"kind\":\"kernel\",\"kernel\":\"bias_gelu\",\"dtype\":\"bf16\",\"shape\":{\"columns\":3,\"rows\":2},"
                 "\"variant\":\"scalar\",\"samples\":7,\"pause_ms\":5,\"seed\":9,\"device\":\"gpu1\",\"passes\":[\"counters\"],"
                 "\"deadline_s\":5}",
                 &spec, &err),
      0);
  assert_int_equal(spec.run_count, 1);
  assert_string_equal(spec.device, "gpu1");
  assert_int_equal(spec.passes, 1u << RL_PASS_COUNTERS);
  assert_int_equal(spec.time_limit_s, 5);
  assert_string_equal(spec.runs[0].params,
                      "{\"dtype\":\"bf16\",\"shape\":{\"rows\":2,\"columns\":3},\"variant\":\"scalar\",\"build\":\"\","
                      "\"samples\":7,\"pause_ms\":5,\"seed\":9}");
  /* The canonical request decodes to the same job. */
  if (parse_spec(spec.request, &reparsed, &err) < 0) fail_msg("%s", err.message);
  assert_memory_equal(&spec, &reparsed, sizeof spec);
}

static rl_profile_options parse_profile_options(const rl_job_spec *spec) {
  rl_profile_options profile_options = {0};
  rl_error err = {0};
  if (rl_fields_parse(rl_profile_options_fields, spec->profile, strlen(spec->profile), &profile_options, sizeof profile_options,
                      &err) < 0)
    fail_msg("%s: %s", spec->profile, err.message);
  return profile_options;
}

static void profile_fields_add_the_counters_pass(void **state) {
  (void)state;
  static const char *const profile_fields[] = {"\"set\":\"full\"", "\"sections\":[\"Occupancy\"]",
                                               "\"metrics\":[\"dram__bytes.sum\"]", "\"kernels\":\"conv*\"", "\"launch\":3"};
  rl_job_spec spec, reparsed;
  rl_error err = {0};
  for (size_t i = 0; i < sizeof profile_fields / sizeof *profile_fields; i++) {
    char text[256];
    snprintf(text, sizeof text, "{\"kind\":\"train\",%s}", profile_fields[i]);
    if (parse_spec(text, &spec, &err) < 0) fail_msg("%s: %s", text, err.message);
    assert_int_equal(spec.passes, 1u << RL_PASS_TIMING | 1u << RL_PASS_COUNTERS);
    if (parse_spec(spec.request, &reparsed, &err) < 0) fail_msg("%s", err.message);
    assert_memory_equal(&spec, &reparsed, sizeof spec);
  }
  assert_int_equal(parse_spec("{\"kind\":\"train\",\"set\":\"auto\"}", &spec, &err), 0);
  assert_int_equal(spec.passes, 1u << RL_PASS_TIMING);
  assert_string_equal(spec.profile, "");
}

static void a_profile_has_the_sections_of_its_set_and_more(void **state) {
  (void)state;
  rl_job_spec spec;
  rl_error err = {0};
  assert_int_equal(parse_spec("{\"kind\":\"kernel\",\"kernel\":\"relu\",\"shape\":{\"n\":1},\"set\":\"basic\","
                              "\"sections\":[\"SchedulerStats\"],\"metrics\":[\"dram__bytes.sum\",\"sm__no_such_thing.max\"]}",
                              &spec, &err),
                   0);
  rl_profile_options profile_options = parse_profile_options(&spec);
  assert_int_equal(profile_options.sections, section_bit("SpeedOfLight") | section_bit("LaunchStats") | section_bit("Occupancy") |
                                                 section_bit("WorkloadDistribution") | section_bit("SchedulerStats"));
  assert_string_equal(profile_options.metrics, "dram__bytes.sum\nsm__no_such_thing.max");
  assert_true(profile_options.kernel_pattern[0] == '\0' && profile_options.matching_index == -1);
  assert_int_equal(
      parse_spec("{\"kind\":\"train\",\"kernels\":\"*wgrad*\",\"launch\":2,\"metrics\":[\"dram__bytes.sum\"]}", &spec, &err), 0);
  profile_options = parse_profile_options(&spec);
  assert_string_equal(profile_options.kernel_pattern, "*wgrad*");
  assert_true(profile_options.matching_index == 2 && profile_options.sections == 0);
  assert_string_equal(profile_options.metrics, "dram__bytes.sum");
  assert_int_equal(profile_options.cache, RL_L2_FULL);
  assert_int_equal(parse_spec("{\"kind\":\"train\",\"cache\":\"empty\"}", &spec, &err), 0);
  assert_int_equal(spec.passes, 1u << RL_PASS_TIMING | 1u << RL_PASS_COUNTERS);
  assert_int_equal(parse_profile_options(&spec).cache, RL_L2_EMPTY);
  assert_int_equal(parse_spec("{\"kind\":\"train\",\"cache\":\"cold\"}", &spec, &err), -1);
  assert_string_equal(err.json_pointer, "/cache");
  /* The counters pass without profile fields collects set "basic" and the default metrics. */
  assert_int_equal(parse_spec("{\"kind\":\"train\",\"passes\":[\"counters\"]}", &spec, &err), 0);
  profile_options = parse_profile_options(&spec);
  assert_true((profile_options.sections & section_bit("Occupancy")) != 0 &&
              (profile_options.sections & section_bit("SourceCounters")) == 0);
  assert_non_null(strstr(profile_options.metrics, "smsp__inst_executed.sum"));
}

static void an_engine_that_only_the_cpu_has_selects_the_cpu(void **state) {
  (void)state;
  rl_job_spec spec;
  rl_error err;
  assert_int_equal(parse_spec("{\"kind\":\"train\",\"engine\":\"blas\"}", &spec, &err), 0);
  assert_string_equal(spec.device, "cpu");
  assert_int_equal(parse_spec("{\"kind\":\"train\",\"engine\":\"cudnn\"}", &spec, &err), 0);
  assert_string_equal(spec.device, "");
  static const char *const devices[] = {"cpu", "gpu0"}; /* both have a fused engine */
  for (int i = 0; i < 2; i++) {
    char text[80];
    snprintf(text, sizeof text, "{\"kind\":\"train\",\"engine\":\"fused\",\"device\":\"%s\"}", devices[i]);
    assert_int_equal(parse_spec(text, &spec, &err), 0);
    assert_string_equal(spec.device, devices[i]);
  }
}

static const rl_field *train_field(rl_request_fields *storage, const char *name) {
  const rl_field *field = rl_spec_workload_make_fields("train", storage);
  while (strcmp(field->name, name) != 0) field++;
  return field;
}

static void every_engine_has_a_device(void **state) {
  (void)state;
  rl_job_spec spec;
  rl_error err;
  char text[128];
  static const char *const devices[] = {"cpu", "gpu0"};
  rl_request_fields storage;
  for (const char *const *engine = train_field(&storage, "engine")->names; *engine != NULL; engine++) {
    int fits = 0;
    for (int i = 0; i < 2; i++) {
      snprintf(text, sizeof text, "{\"kind\":\"train\",\"precisions\":[\"fp16\"],\"engine\":\"%s\",\"device\":\"%s\"}", *engine,
               devices[i]);
      if (parse_spec(text, &spec, &err) == 0) fits++;
      else assert_string_equal(err.json_pointer, "/engine");
    }
    assert_true(fits > 0);
  }
}

#define ATTENTION "\"kernel\":\"attention\",\"shape\":{\"batch\":1,\"heads\":2,\"kv_heads\":2,\"sequence\":64,\"head_size\":"
#define CONV                                                                                                                     \
  "\"kernel\":\"conv\",\"shape\":{\"images\":1,\"height\":8,\"width\":8,\"channels\":8,\"filters\":8,\"kernel\":3,\"stride\":1," \
  "\"padding\":1}"

/* A kernel that a device's libraries do not support is refused before the job is queued. */
static void kernels_are_refused_on_devices_without_them(void **state) {
  (void)state;
  static const struct {
    const char *body, *pointer_on_cpu, *pointer_on_gpu; /* NULL: accepted */
  } cases[] = {
      {ATTENTION "64,\"causal\":false},\"dtype\":\"fp32\"", NULL, "/dtype"},
      {ATTENTION "64,\"causal\":false},\"dtype\":\"bf16\"", NULL, NULL},
      {ATTENTION "256,\"causal\":false},\"dtype\":\"fp16\"", NULL, NULL},
      {ATTENTION "264,\"causal\":false},\"dtype\":\"fp16\"", NULL, "/shape/head_size"},
      {ATTENTION "60,\"causal\":false},\"dtype\":\"fp16\"", NULL, "/shape/head_size"},
      {CONV ",\"dtype\":\"fp64\"", NULL, "/dtype"},
      {CONV ",\"dtype\":\"fp32\"", NULL, NULL},
      {CONV ",\"dtype\":\"fp32\",\"variant\":\"searched\"", "/variant", NULL},
      {"\"kernels\":[{" CONV "},{" CONV ",\"dtype\":\"fp64\"}]", NULL, "/kernels/1/dtype"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int gpu = 0; gpu < 2; gpu++) {
      rl_job_spec spec;
      rl_error err = {0};
      char text[512];
      snprintf(text, sizeof text, "{\"kind\":\"kernel\",%s,\"device\":\"%s\"}", cases[i].body, gpu ? "gpu0" : "cpu");
      const char *pointer = gpu ? cases[i].pointer_on_gpu : cases[i].pointer_on_cpu;
      int rc = parse_spec(text, &spec, &err);
      if (rc == 0) {
        rc = rl_job_spec_restrict_to_device(&spec, "", &err);
        rl_job_spec_clear(&spec);
      }
      if ((rc == 0) != (pointer == NULL)) fail_msg("%s: %s", text, rc == 0 ? "accepted" : err.message);
      if (pointer != NULL) assert_string_equal(err.json_pointer, pointer);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_are_refused_on_devices_without_them),
                                     cmocka_unit_test(every_engine_has_a_device),
                                     cmocka_unit_test(a_bare_request_gets_the_defaults),
                                     cmocka_unit_test(every_field_is_decoded),
                                     cmocka_unit_test(errors_name_the_field),
                                     cmocka_unit_test(a_kernel_runs_once_for_each_variant),
                                     cmocka_unit_test(profile_fields_add_the_counters_pass),
                                     cmocka_unit_test(a_profile_has_the_sections_of_its_set_and_more),
                                     cmocka_unit_test(an_engine_that_only_the_cpu_has_selects_the_cpu)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
