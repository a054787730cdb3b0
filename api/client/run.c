/* Implements the commands run, which submits a job and follows it until it ends, and watch, which follows an existing job. */
#include <stdio.h>

#include "api/client/follow.h"
#include "api/client/http.h"
#include "api/client/cells.h"
#include "api/client/print.h"
#include "api/client/request.h"
#include "api/client/submit.h"

int rl_command_watch(rl_cli *cli, rl_error *err) {
  long long id;
  return rl_parse_job_argument(cli, &id, err) < 0 ? -1 : rl_follow_job(cli, id, false, err);
}

int rl_command_run(rl_cli *cli, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *body = NULL;
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  if (rl_request_from_arguments(cli->argc, cli->argv, &body, err) < 0 || rl_submit_job(cli, "/jobs", body, &response, err) < 0)
    return -1;
  RL_CLEANUP(rl_json_free) cJSON *job = cJSON_Parse(response.data != NULL ? response.data : "");
  double id = rl_json_number(job, "id");
  if (isnan(id)) return rl_fail(err, RL_HTTP, 0, "the daemon accepted the job but returned no id");
  if (!cli->json) fprintf(stderr, "job %.0f: %s/job.html?id=%.0f\n", id, cli->url, id);
  return rl_follow_job(cli, (long long)id, true, err);
}
