/* The table of commands. rooflinectl's help, its manual page and the completion scripts for shells are made from it. */
#include <stddef.h>

#include "api/client/cli.h"
#include "api/client/request.h"

const rl_cli_option rl_common_options[] = {{"--url", "URL", "URL of the daemon; default: http://127.0.0.1:8731"},
                                           {"--token", "TOKEN", "the daemon's access token"},
                                           {"--json", "", "print the API's response"},
                                           {"--help", "", "print help; after a command: help of that command"},
                                           {"--version", "", "print the version"},
                                           {0}};

const rl_cli_option rl_client_variables[] = {{"ROOFLINED_URL", "", "default of --url"},
                                             {"ROOFLINED_TOKEN", "", "default of --token"},
                                             {"ROOFLINED_CACERT", "", "file of a trusted certificate"},
                                             {"NO_COLOR", "", "if set and not empty, print no colours"},
                                             {0}};

const rl_cli_option rl_client_statuses[] = {
    {"0", "", "completed; regress: same or faster"},
    {"1", "", "failed; regress: slower or failed"},
    {"2", "", "wrong command or request"},
    {"3", "", "cancelled"},
    {"4", "", "no daemon answers"},
    {"5", "", "regress: inconclusive"},
    {"6", "", "regress: incomparable: no baseline, or its device, driver, clock setting or definition differs"},
    {"130", "", "interrupted; the job continues"},
    {0}};

static const rl_cli_option *show_options(void) {
  static const rl_cli_option options[] = {{"--watch", "", "print again after each change until the job ends"}, {0}};
  return options;
}

static const rl_cli_option *list_options(void) {
  static const rl_cli_option options[] = {{"--all", "", "also the jobs of suite runs"}, {0}};
  return options;
}

static const rl_cli_option *report_options(void) {
  static const rl_cli_option options[] = {{"--job", "JOB", "the only run of this job, instead of RUN"},
                                          {"--kernel", "N", "only this kernel of the run"},
                                          {"--section", "ID", "only this section with its tables, or Timeline"},
                                          {"--all", "", "all findings, and the tables of numbers"},
                                          {"--watch", "", "print again after each change until the job ends"},
                                          {"--csv", "", "in the format of ncu --csv"},
                                          {"--page", "details|raw", "the page of the CSV; default: details"},
                                          {0}};
  return options;
}

static const rl_cli_option *compare_options(void) {
  static const rl_cli_option options[] = {
      {"--kernel", "N", "only this kernel of the first run"},
      {"--kernel-b", "N", "only this kernel of the second run; with --kernel compares these two kernels"},
      {"--all", "", "all tables of numbers"},
      {0}};
  return options;
}

static const rl_cli_option *baseline_subcommands(void) {
  static const rl_cli_option options[] = {
      {"promote", "SUITE NAME", "make the last completed suite run, or --run N, the baseline NAME"},
      {"list", "SUITE", "list the suite's baselines"},
      {0}};
  return options;
}

static const rl_cli_option *token_subcommands(void) {
  static const rl_cli_option options[] = {
      {"list", "", "list the names of tokens"}, {"revoke", "NAME", "revoke every token of this name and end its sessions"}, {0}};
  return options;
}

const rl_command rl_commands[] = {
    {"run", "[FILE | - | OPTIONS]", "submit a job, follow it, print its result", rl_command_run, rl_request_options},
    {"import", "FILE [OPTIONS]", "import a trace of another profiler as a job", rl_command_import, rl_import_options},
    {"submit", "FILE | -", "submit a job and print its number", rl_command_submit},
    {"watch", "JOB", "follow a job until it ends", rl_command_watch},
    {"show", "JOB [OPTIONS]", "print a job's result so far", rl_command_show, show_options},
    {"kernels", "JOB", "print a job's kernels and their times", rl_command_kernels},
    {"report", "RUN [OPTIONS]", "print what bounds a run's kernels, and the findings", rl_command_report, report_options},
    {"export", "JOB --format F …", "write a job's trace or numbers for another tool", rl_command_export, rl_export_options},
    {"compare", "RUN RUN [OPTIONS]", "print two reports side by side", rl_command_compare, compare_options},
    {"list", "[--all]", "list jobs, newest first, with their runs", rl_command_list, list_options},
    {"label", "JOB OPTIONS", "change a job's name or tags; an empty value removes them", rl_command_label, rl_label_options},
    {"cancel", "JOB", "cancel a queued or running job", rl_command_cancel},
    {"devices", "", "list devices, and why one is unusable", rl_command_devices},
    {"ceilings", "", "list measured peak rates of devices", rl_command_ceilings},
    {"regress", "SUITE [OPTIONS]", "run a suite and compare it with its baseline", rl_command_regress, rl_regress_options},
    {"baseline", "promote|list …", "make a suite run a baseline; list baselines", rl_command_baseline, baseline_subcommands},
    {"bisect", "OPTIONS", "find the first commit that is slower", rl_command_bisect, rl_bisect_options},
    {"suites", "", "list suites and their last verdicts", rl_command_suites},
    {"backup", "[--state DIR] FILE", "copy the database, even while the daemon runs", rl_command_backup},
    {"token", "[--state DIR] [NAME]", "create an access token and print it once", rl_command_token, token_subcommands},
    {0}};
