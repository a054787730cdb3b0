/* Fuzzes the parser of the body of POST /jobs. If the parser refuses a body, the spec must stay unchanged, and the error
 * must have a message and a valid JSON pointer. If it accepts a body, it must also accept the spec's canonical request and make
 * the same runs from it. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "request/spec.h"
#include "source/fatbin.h"
#include "source/source.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static const rl_job_policy policy = {RL_POSTING_ALLOWED, INT64_MAX};

static void check_refusal(const rl_error *err, const rl_job_spec *spec) {
  static const rl_job_spec untouched;
  if (memcmp(spec, &untouched, sizeof untouched) != 0) abort();
  if (err->domain != RL_INPUT || err->message[0] == '\0') abort();
  if (err->json_pointer[0] != '\0' && err->json_pointer[0] != '/') abort();
  if (!rl_utf8_is_valid(err->json_pointer, strlen(err->json_pointer)) || !rl_utf8_is_valid(err->message, strlen(err->message)))
    abort();
}

/* Selects the entry of a posted fatbin, as a worker with compute capability 9.0 does. It may have none. */
static void select_entry(const rl_source *source) {
  rl_fatbin_head head;
  rl_error err;
  unsigned char *data;
  size_t size;
  if (source->binary == NULL || !rl_fatbin_read_head(source->binary, source->binary_size, &head)) return;
  if (rl_fatbin_select(source->binary, source->binary_size, 90, &data, &size, &err) == 0) free(data);
}

/* Checks that a worker can read the source of an accepted job. */
static void check_source(rl_job_spec *spec) {
  rl_source source;
  rl_error err;
  if (rl_source_read(spec->source_json, strlen(spec->source_json), &source, &err) < 0) abort();
  select_entry(&source);
  if (source.variant_count != spec->run_count || source.buffer_bytes != spec->buffer_bytes) abort();
  rl_source_clear(&source);
  rl_job_spec_clear(spec);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  static rl_job_spec spec, reparsed;
  rl_error err;
  memset(&spec, 0, sizeof spec);
  memset(&reparsed, 0, sizeof reparsed);
  if (rl_job_spec_parse((const char *)data, size, &policy, &spec, &err) < 0) {
    check_refusal(&err, &spec);
    return 0;
  }
  if (!rl_utf8_is_valid(spec.request, strlen(spec.request))) abort();
  if (spec.run_count < 1 || spec.run_count > RL_RUNS_MAX || spec.passes == 0) abort();
  if (spec.source_json != NULL) { /* the canonical request does not contain the source text */
    check_source(&spec);
    return 0;
  }
  if (rl_job_spec_parse(spec.request, strlen(spec.request), &policy, &reparsed, &err) < 0) abort();
  if (strcmp(spec.request, reparsed.request) != 0 || spec.run_count != reparsed.run_count) abort();
  for (int i = 0; i < spec.run_count; i++)
    if (strcmp(spec.runs[i].params, reparsed.runs[i].params) != 0) abort();
  return 0;
}
