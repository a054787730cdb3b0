/* Decodes the definition of a regression suite: the jobs of one block, the metrics that are judged, and the number of blocks. A
 * definition is a JSON object, from a file (suites.h) or from a client (the suite handlers of the API); schema/suite.schema.json
 * describes it. Stateless, thread-safe. */
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
  RL_SUITE_MEASURED_BLOCKS_MAX = RL_SUITE_BLOCKS_MAX * 3 / 2, /* including the blocks that replace dropped blocks */
  RL_SUITE_KEY_SIZE = 200,                                    /* size of a metric's key, such as "train/fp16/epoch_ms_median" */
  RL_SUITE_TEXT_MAX = 256 * 1024,                             /* maximum size of a definition in bytes */
  RL_SUITE_CANARY_ON_GPU_ONLY = -1 /* value of rl_suite.canary: the suite has a canary if the device is a GPU */
};

typedef struct rl_suite_job {
  char name[RL_SUITE_NAME_SIZE];
  cJSON *request; /* the body of POST /jobs, without device and fresh_worker */
  /* SHA-256 of the workloads, variants and non-default parameters of the job's runs. The text of posted code is not hashed. */
  char sha256[RL_SHA256_SIZE];
  /* Workload, variant and non-default parameters (JSON) of the job's first run. */
  char workload[32], variant[32];
  char *nondefault_params;
  /* The variants of the job's runs. A device executes only the runs whose variant it supports. */
  char variants[RL_RUNS_MAX][32];
  int variant_count;
  uint32_t passes; /* bit mask of 1 << rl_pass */
  bool needs_gpu;
} rl_suite_job;

typedef struct rl_suite_metric {
  char job[RL_SUITE_NAME_SIZE];
  char variant[32]; /* "": every run of the job has this metric */
  char metric[96];  /* name of a column of run_summaries or of a measurement */
  int direction;    /* 0: lower is better, 1: higher is better */
  double threshold_ratio;
} rl_suite_metric;

typedef struct rl_suite {
  char name[RL_SUITE_NAME_SIZE], summary[161], device[16]; /* device "": the default device */
  int64_t blocks, time_budget_s;                           /* blocks: number of planned blocks */
  int64_t baseline_runs;                                   /* number of runs that form the rolling baseline */
  int64_t canary; /* 0: the suite has no canary, 1: it has one; or RL_SUITE_CANARY_ON_GPU_ONLY */
  bool profile;
  rl_suite_job jobs[RL_SUITE_JOBS_MAX];
  int job_count;
  rl_suite_metric metrics[RL_SUITE_METRICS_MAX];
  int metric_count;
  char *text;                  /* the definition as JSON, in which defaults are filled in, except in the jobs' requests */
  char sha256[RL_SHA256_SIZE]; /* SHA-256 of text */
} rl_suite;

/* Decodes a definition. The caller frees *suite. Fails with RL_INPUT and a JSON pointer that begins with `path` if the definition
 * is invalid, and with RL_HTTP 403 or 401 if it posts code and the policy forbids that. */
int rl_suite_decode(const cJSON *object, const char *path, const rl_job_policy *policy, rl_suite **suite, rl_error *err);
/* Decodes a definition from JSON text. If the text is not JSON, fails with RL_INPUT without a pointer, and err->code is the
 * offset of the error in bytes. */
int rl_suite_parse(const char *text, size_t length, const rl_job_policy *policy, rl_suite **suite, rl_error *err);
void rl_suite_free(rl_suite *suite); /* accepts NULL */
/* Makes the suite whose jobs a suite run measures as its baseline. It has the jobs of `suite`, but in their requests the members
 * of `request` replace the members with the same name. The baseline has no metrics. The caller frees *baseline. Fails with
 * RL_INPUT at /against_request/... if a request becomes invalid, and with RL_HTTP like rl_suite_decode. */
int rl_suite_make_measured_baseline(const rl_suite *suite, const cJSON *request, const rl_job_policy *policy, rl_suite **baseline,
                                    rl_error *err);
/* Changes the JSON pointer of an error in a measured baseline from /jobs/0/request/engine to /against_request/engine. */
void rl_suite_move_pointer_to_against_request(rl_error *err);
/* Returns the job with this name; NULL if there is none. */
const rl_suite_job *rl_suite_find_job(const rl_suite *suite, const char *name);

/* Returns whether the text is valid as the name of a suite, a baseline or a job: [a-z0-9][a-z0-9_-]{0,63}. */
bool rl_suite_is_name(const char *text);
/* Returns the metric that applies to the job's run with this variant; NULL if there is none. A metric that names the variant has
 * precedence over a metric for every run of the job. */
const rl_suite_metric *rl_suite_find_metric(const rl_suite *suite, const char *job, const char *variant, const char *metric);
/* Writes the key of a metric, "job/variant/metric". */
void rl_suite_format_key(const char *job, const char *variant, const char *metric, char key[RL_SUITE_KEY_SIZE]);
/* Returns the number of different keys: a run on a device that supports every variant judges so many metrics. */
size_t rl_suite_count_keys(const rl_suite *suite);
/* Copies the job's name and the variant from a key. Returns false if the text is not a key. */
bool rl_suite_split_key(const char *key, char job[RL_SUITE_NAME_SIZE], char variant[32]);
const rl_suite_metric *rl_suite_find_metric_by_key(const rl_suite *suite, const char *key);
/* Returns the body of POST /jobs for a job of the suite, which the caller frees. Returns NULL if memory is exhausted. */
char *rl_suite_print_request(const rl_suite_job *job, const char *device, uint32_t passes, bool fresh_worker);

/* Returns the JSON Schema of definitions; the caller deletes it. */
cJSON *rl_suite_schema(void);

RL_DEFINE_CLEANUP(rl_suite_cleanup, rl_suite *, rl_suite_free, NULL)
#endif
