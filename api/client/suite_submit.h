/* Starts suite runs and makes baselines. The commands regress, baseline and bisect call this module. Not thread-safe. */
#ifndef RL_CLIENT_SUITE_SUBMIT_H
#define RL_CLIENT_SUITE_SUBMIT_H

#include <cjson/cJSON.h>

#include "api/client/cli.h"

enum { RL_SUITE_NAME_SIZE = 65 };

typedef struct rl_suite_request { /* a NULL member was not given */
  const char *suite;              /* name of the suite; NULL: `file` contains the name */
  const char *file;               /* file with the suite's definition; NULL: the daemon has the suite */
  const char *against, *device;
  const char *against_build, *against_engine,
      *against_variant; /* how the jobs that are measured as the baseline differ from the suite's jobs */
} rl_suite_request;

/* Sends POST /suites/{name}/runs. Returns the reply, which has "id", "estimated_s" and "estimate_basis"; the caller deletes it.
 * Writes the suite's name into name[RL_SUITE_NAME_SIZE]. Returns NULL with err on failure: RL_INPUT if the file or the name is
 * not valid, else an error of rl_http_send. */
cJSON *rl_suite_submit(const rl_cli *cli, const rl_suite_request *request, char *name, rl_error *err);
/* Sends POST /suites/{name}/baselines. Returns the reply, which the caller deletes; NULL with err. */
cJSON *rl_post_named_baseline(const rl_cli *cli, const char *suite, const char *baseline, long long run, rl_error *err);

#endif
