/* Implements the commands submit, show, list, label, cancel, devices, ceilings and kernels. With --json, a command prints the
 * response of the API unchanged. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/client/http.h"
#include "api/client/cells.h"
#include "api/client/print.h"
#include "api/client/request.h"
#include "api/client/watch.h"
#include "api/client/submit.h"

/* Gets a document of the job whose number is the command's argument. */
static int get_job(rl_cli *cli, const char *subpath, cJSON **document, rl_error *err) {
  long long id;
  if (rl_parse_job_argument(cli, &id, err) < 0) return -1;
  *document = rl_http_get_job(cli, id, subpath, err);
  return *document != NULL ? 0 : -1;
}

int rl_command_submit(rl_cli *cli, rl_error *err) {
  if (cli->argc != 1) return rl_fail_usage(err, "submit needs a FILE, or - for standard input");
  RL_CLEANUP(rl_free_text) char *body = rl_request_read_file(cli->argv[0], err);
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  if (body == NULL || rl_submit_job(cli, "/jobs", body, &response, err) < 0) return -1;
  RL_CLEANUP(rl_json_free) cJSON *job = cJSON_Parse(response.data != NULL ? response.data : "");
  if (cli->json) return rl_print_json(job);
  printf("%.0f\n", rl_json_number(job, "id"));
  return RL_EXIT_COMPLETED;
}

static int print_job(rl_cli *cli, FILE *out, void *context, bool *has_ended, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *job = NULL;
  RL_CLEANUP(rl_json_free) cJSON *results = NULL;
  RL_CLEANUP(rl_json_free) cJSON *comparison = NULL;
  (void)context;
  if (get_job(cli, "", &job, err) < 0) return -1;
  if (cli->json) return rl_print_json(job);
  if (get_job(cli, "/results", &results, err) < 0 || get_job(cli, "/comparison", &comparison, err) < 0) return -1;
  rl_print_results(out, job, results, comparison);
  *has_ended = rl_job_state_has_ended(rl_json_text(job, "state"));
  return RL_EXIT_COMPLETED;
}

int rl_command_show(rl_cli *cli, rl_error *err) {
  bool watch = rl_remove_flag(cli, "--watch");
  if (watch && cli->json) return rl_fail_usage(err, "--watch prints text: omit --json");
  return rl_print_repeatedly(cli, watch, print_job, NULL, err);
}

int rl_command_label(rl_cli *cli, rl_error *err) {
  long long id;
  char path[64];
  RL_CLEANUP(rl_free_text) char *body = NULL;
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  if (rl_parse_number(cli->argc > 0 ? cli->argv[0] : NULL, 1, "a job's number", &id, err) < 0 ||
      rl_request_labels_from_arguments(cli->argc - 1, cli->argv + 1, &body, err) < 0)
    return -1;
  snprintf(path, sizeof path, "/jobs/%lld", id);
  if (rl_http_send(cli, "PATCH", path, body, &response, err) < 0) return -1;
  if (cli->json) printf("%s\n", response.data != NULL && response.length > 0 ? response.data : "{}");
  else printf("job %lld is labelled\n", id);
  return RL_EXIT_COMPLETED;
}

int rl_command_cancel(rl_cli *cli, rl_error *err) {
  long long id;
  char path[64];
  RL_CLEANUP(rl_body_free) rl_body response = {0};
  if (rl_parse_job_argument(cli, &id, err) < 0) return -1;
  snprintf(path, sizeof path, "/jobs/%lld", id);
  if (rl_http_send(cli, "DELETE", path, NULL, &response, err) < 0) return -1;
  if (cli->json) printf("%s\n", response.data != NULL && response.length > 0 ? response.data : "{}");
  else printf("job %lld is cancelled\n", id);
  return RL_EXIT_COMPLETED;
}

/* Formats a kernel's data type and sizes ("fp16 4096×1024"), or the batch size of training ("batch 64"). */
static char *format_sizes(char *cell, const cJSON *job) {
  const cJSON *size;
  const char *separator = " ";
  double batch = rl_json_number(job, "batch_size");
  int used = snprintf(cell, RL_CELL_SIZE, "%s", rl_json_text(job, "dtype"));
  cJSON_ArrayForEach (size, rl_json_at(job, "shape")) {
    if (used >= RL_CELL_SIZE || cJSON_IsFalse(size)) continue;
    size_t free_bytes = RL_CELL_SIZE - (size_t)used;
    used += cJSON_IsTrue(size) ? snprintf(cell + used, free_bytes, " %s", size->string)
                               : snprintf(cell + used, free_bytes, "%s%.0f", separator, size->valuedouble);
    separator = "×";
  }
  if (used == 0) snprintf(cell, RL_CELL_SIZE, batch > 0 ? "batch %.0f" : "—", batch);
  return cell;
}

/* Prints the job's name and its workload; for posted code, the kernel's name instead of the workload: " adds.cu · add: ". */
static void print_subject(const cJSON *job) {
  const char *name = rl_json_text(job, "name"), *entry = rl_json_text(job, "entry");
  putchar(' ');
  if (name[0] != '\0') rl_print_name(stdout, name), fputs(" · ", stdout);
  printf("%s: ", entry[0] != '\0' ? entry : rl_json_text(job, "workload"));
}

int rl_command_list(rl_cli *cli, rl_error *err) {
  const cJSON *job;
  char cell[RL_CELL_SIZE];
  const bool all = cli->argc == 1 && strcmp(cli->argv[0], "--all") == 0;
  if (cli->argc != 0 && !all) return rl_fail_argument(err, "list", cli->argv[0]);
  RL_CLEANUP(rl_json_free) cJSON *jobs = rl_http_get(cli, all ? "/jobs" : "/jobs?in_suite=false", err);
  if (jobs == NULL) return -1;
  if (cli->json) return rl_print_json(jobs);
  printf("%6s  %-8s %-11s %-6s %-6s %-16s %-19s %s\n", "job", "kind", "state", "device", "passes", "created (UTC)", "sizes",
         "runs");
  cJSON_ArrayForEach (job, rl_json_at(jobs, "items")) {
    double done = rl_json_number(job, "passes.completed") + rl_json_number(job, "passes.unavailable");
    snprintf(cell, sizeof cell, "%.0f/%.0f", done, rl_json_number(job, "passes.total"));
    printf("%6.0f  %-8s %-11s %-6s %-6s %-16.16s ", rl_json_number(job, "id"), rl_json_text(job, "kind"),
           rl_json_text(job, "state"), rl_json_text(job, "device"), cell, rl_json_text(job, "created_at"));
    rl_print_cell(stdout, format_sizes(cell, job), -19);
    print_subject(job);
    rl_print_runs(stdout, rl_json_at(job, "runs"));
    putchar('\n');
  }
  if (cJSON_GetArraySize(rl_json_at(jobs, "items")) == 0)
    puts(all ? "no jobs yet; rooflinectl run --help describes them"
             : "no jobs outside of suite runs; rooflinectl run --help describes jobs, and list --all shows those of suite runs");
  if (cJSON_IsString(rl_json_at(jobs, "next_cursor"))) printf("older jobs are not listed; the page has them: %s\n", cli->url);
  return RL_EXIT_COMPLETED;
}

int rl_command_devices(rl_cli *cli, rl_error *err) {
  const cJSON *device;
  if (cli->argc != 0) return rl_fail_usage(err, "devices takes no arguments");
  RL_CLEANUP(rl_json_free) cJSON *devices = rl_http_get(cli, "/devices", err);
  if (devices == NULL) return -1;
  if (cli->json) return rl_print_json(devices);
  printf("%-7s %-6s %-9s %-7s %s\n", "device", "kind", "state", "job", "name or reason");
  cJSON_ArrayForEach (device, rl_json_at(devices, "items")) {
    char job[24];
    double id = rl_json_number(device, "job");
    const char *reason = rl_json_text(device, "reason"), *name = rl_json_text(device, "properties.name");
    snprintf(job, sizeof job, id > 0 ? "%.0f" : "—", id);
    printf("%-7s %-6s %-9s ", rl_json_text(device, "id"), rl_json_text(device, "kind"), rl_json_text(device, "state"));
    rl_print_cell(stdout, job, -7);
    printf(" %s\n", reason[0] != '\0' ? reason : name);
  }
  return RL_EXIT_COMPLETED;
}

int rl_command_ceilings(rl_cli *cli, rl_error *err) {
  const cJSON *ceiling;
  if (cli->argc != 0) return rl_fail_usage(err, "ceilings takes no arguments");
  RL_CLEANUP(rl_json_free) cJSON *ceilings = rl_http_get(cli, "/ceilings", err);
  if (ceilings == NULL) return -1;
  if (cli->json) return rl_print_json(ceilings);
  cJSON_ArrayForEach (ceiling, rl_json_at(ceilings, "items")) {
    rl_print_ceilings(stdout, ceiling);
    if (ceiling->next != NULL) putchar('\n');
  }
  if (cJSON_GetArraySize(rl_json_at(ceilings, "items")) == 0)
    puts("no ceilings yet; measure them with: rooflinectl run --kind ceilings");
  return RL_EXIT_COMPLETED;
}

static bool has_same_text(const cJSON *a, const cJSON *b, const char *name) {
  return strcmp(rl_json_text(a, name), rl_json_text(b, name)) == 0;
}

/* Prints the name of a kernel's launch, or the kernel's name if it has none. If the pass has several kernels with this launch,
 * also prints the kernel's name and grid. */
static void print_kernel_name(const cJSON *kernel, const cJSON *kernels) {
  const cJSON *other, *extent;
  const char *launch = rl_json_text(kernel, "launch"), *separator = " · grid ";
  bool is_shared = false;
  cJSON_ArrayForEach (other, kernels)
    is_shared |= other != kernel && has_same_text(other, kernel, "variant") && has_same_text(other, kernel, "pass") &&
                 has_same_text(other, kernel, "launch");
  if (launch[0] != '\0') fputs(launch, stdout);
  if (launch[0] != '\0' && is_shared) fputs(" · ", stdout);
  if (launch[0] == '\0' || is_shared) rl_print_name(stdout, rl_json_text(kernel, "name"));
  cJSON_ArrayForEach (extent, rl_json_at(is_shared ? kernel : NULL, "grid")) {
    printf("%s%.0f", separator, extent->valuedouble);
    separator = "×";
  }
  putchar('\n');
}

int rl_command_kernels(rl_cli *cli, rl_error *err) {
  const cJSON *kernel;
  char share[RL_CELL_SIZE], total[RL_CELL_SIZE], median[RL_CELL_SIZE], count[RL_CELL_SIZE];
  RL_CLEANUP(rl_json_free) cJSON *kernels = NULL;
  if (get_job(cli, "/kernels?limit=1000", &kernels, err) < 0) return -1;
  if (cli->json) return rl_print_json(kernels);
  printf("%-8s %-9s %9s %11s %11s %8s  %s\n", "run", "pass", "launches", "total", "median", "share", "kernel");
  cJSON_ArrayForEach (kernel, rl_json_at(kernels, "items")) {
    printf("%-8s %-9s ", rl_json_text(kernel, "variant"), rl_json_text(kernel, "pass"));
    rl_print_cell(stdout, rl_format_count(count, rl_json_number(kernel, "launches")), 9);
    putchar(' ');
    rl_print_cell(stdout, rl_format_us(total, rl_json_number(kernel, "total_us")), 11);
    putchar(' ');
    rl_print_cell(stdout, rl_format_us(median, rl_json_number(kernel, "median_us")), 11);
    putchar(' ');
    rl_print_cell(stdout, rl_format_percent(share, rl_json_number(kernel, "share_ratio")), 8);
    fputs("  ", stdout);
    print_kernel_name(kernel, rl_json_at(kernels, "items"));
  }
  if (cJSON_GetArraySize(rl_json_at(kernels, "items")) == 0)
    puts("no kernels: no pass of the job has recorded one; rooflinectl show prints the job's state");
  return RL_EXIT_COMPLETED;
}
