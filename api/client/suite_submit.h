/* Starts suite runs. One thread. */
#ifndef RL_CLIENT_SUITE_SUBMIT_H
#define RL_CLIENT_SUITE_SUBMIT_H

#include <cjson/cJSON.h>

#include "api/client/cli.h"

enum { RL_SUITE_NAME_SIZE = 65 };

typedef struct rl_suite_request { /* NULL members: not given */
  const char *suite;              /* name of the suite; NULL with a file: the file has the name */
  const char *file;               /* a definition to send; NULL: the daemon has it */
  const char *against, *device;
  const char *against_build, *against_engine, *against_variant; /* differences of the measured baseline's jobs */
} rl_suite_request;

/* Sends POST /suites/{name}/runs. Returns the reply, which has "id", "estimated_s" and "estimate_basis" and which the caller
 * deletes, and the suite's name in name[RL_SUITE_NAME_SIZE]. NULL with err: RL_INPUT if the file or the name is wrong, else as
 * rl_http_send. */
cJSON *rl_suite_submit(const rl_cli *cli, const rl_suite_request *request, char *name, rl_error *err);
/* Sends POST /suites/{name}/baselines. Returns the reply, which the caller deletes; NULL with err. */
cJSON *rl_post_named_baseline(const rl_cli *cli, const char *suite, const char *baseline, long long run, rl_error *err);

#endif
