/* The definition of a regression suite: the jobs of one block, the metrics that are judged and how often blocks are repeated. A
 * definition is a JSON object, from a file (suites.h) or a client. schema/suite.schema.json describes it. Stateless,
 * thread-safe. */
#ifndef RL_SUITE_DEFINITION_H
#define RL_SUITE_DEFINITION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/fields.h"
#include "base/sha256.h"
#include "request/spec.h"

enum {
  RL_SUITE_NAME_SIZE = 65,
  RL_SUITE_JOBS_MAX = 32,
  RL_SUITE_METRICS_MAX = 64,
  RL_SUITE_BLOCKS_MAX = 30,
  RL_SUITE_MEASURED_BLOCKS_MAX = RL_SUITE_BLOCKS_MAX * 3 / 2, /* including replacements of dropped blocks */
  RL_SUITE_KEY_SIZE = 200,                                    /* size of a metric's key: "train/fp16/epoch_ms_median" */
  RL_SUITE_TEXT_MAX = 256 * 1024,                             /* bytes of a definition */
  RL_SUITE_ON_GPU_ONLY = -1                                   /* value of rl_suite.canary */
};

typedef struct rl_suite_job {
  char name[RL_SUITE_NAME_SIZE];
  cJSON *request;              /* the body of POST /jobs without device and fresh_worker */
  char sha256[RL_SHA256_SIZE]; /* hash of workload, variant and non-default parameters, without posted code */
  char workload[32], variant[32];
  char *nondefault_params;        /* workload, variant and parameters of the first run */
  char variants[RL_RUNS_MAX][32]; /* variants of the job's runs. A device that does not support a variant skips its run */
  int variant_count;
  uint32_t passes; /* bit mask of 1 << rl_pass */
  bool needs_gpu;
} rl_suite_job;

typedef struct rl_suite_metric {
  char job[RL_SUITE_NAME_SIZE];
  char variant[32]; /* "": the metric applies to every run of the job */
  char metric[96];  /* a column of run_summaries, or the name of a measurement */
  int direction;    /* 0: lower is better, 1: higher is better */
  double threshold_ratio;
} rl_suite_metric;

typedef struct rl_suite {
  char name[RL_SUITE_NAME_SIZE], summary[161], device[16]; /* device "": the default device */
  int64_t blocks, time_budget_s, baseline_runs;
  int64_t canary; /* 0, 1 or RL_SUITE_ON_GPU_ONLY */
  bool profile;
  rl_suite_job jobs[RL_SUITE_JOBS_MAX];
  int job_count;
  rl_suite_metric metrics[RL_SUITE_METRICS_MAX];
  int metric_count;
  char *text;                  /* JSON with all defaults of the suite's own fields filled in */
  char sha256[RL_SHA256_SIZE]; /* SHA-256 of text */
} rl_suite;

/* Decodes a definition. The caller frees *suite. Fails with RL_INPUT and a pointer that begins with `path` if the definition is
 * invalid, and with RL_HTTP 403 or 401 if the policy forbids posted code. */
int rl_suite_decode(const cJSON *object, const char *path, const rl_job_policy *policy, rl_suite **suite, rl_error *err);
/* Does the same for JSON text. Fails with RL_INPUT without a pointer if the text is not JSON; err->code is then the byte
 * offset. */
int rl_suite_parse(const char *text, size_t length, const rl_job_policy *policy, rl_suite **suite, rl_error *err);
void rl_suite_free(rl_suite *suite); /* accepts NULL */
/* Makes the suite that a run measures as its baseline: the same jobs, in whose requests the members of `request` replace those
 * of the same name. It has no metrics. The caller frees *baseline. Fails with RL_INPUT at /against_request/... if a request is
 * invalid, and with RL_HTTP like rl_suite_decode. */
int rl_suite_make_measured_baseline(const rl_suite *suite, const cJSON *request, const rl_job_policy *policy, rl_suite **baseline,
                                    rl_error *err);
/* Changes the JSON pointer of an error in a measured baseline from /jobs/0/request/engine to /against_request/engine. */
void rl_suite_move_pointer(rl_error *err);
/* Returns the job of this name; NULL: none. */
const rl_suite_job *rl_suite_find_job(const rl_suite *suite, const char *name);

/* Returns whether the text is valid as the name of a suite, a baseline or a job: [a-z0-9][a-z0-9_-]{0,63}. */
bool rl_suite_is_name(const char *text);
/* Returns the metric that applies to runs of this variant; NULL: none. A metric that names the variant has precedence over one
 * for every variant. */
const rl_suite_metric *rl_suite_find_metric(const rl_suite *suite, const char *job, const char *variant, const char *metric);
/* Writes the key of a metric, "job/variant/metric". */
void rl_suite_format_key(const char *job, const char *variant, const char *metric, char key[RL_SUITE_KEY_SIZE]);
/* Copies the job and the variant of a key. Returns false if the text is not a key. */
bool rl_suite_split_key(const char *key, char job[RL_SUITE_NAME_SIZE], char variant[32]);
const rl_suite_metric *rl_suite_find_metric_by_key(const rl_suite *suite, const char *key);
/* Returns the body of POST /jobs for a job of the suite, which the caller frees. Returns NULL if memory is exhausted. */
char *rl_suite_print_request(const rl_suite_job *job, const char *device, uint32_t passes, bool fresh_worker);

/* Returns the JSON Schema of definitions; the caller deletes it. */
cJSON *rl_suite_schema(void);

RL_DEFINE_CLEANUP(rl_suite_cleanup, rl_suite *, rl_suite_free, NULL)
#endif
