/* The handlers of the routes (routes.c), and the tables of their query parameters. A handler replies to the request
 * (http_request.h) and returns 0, or fills err and returns -1. */
#ifndef RL_API_HANDLERS_H
#define RL_API_HANDLERS_H

#include "api/http_request.h"

/* jobs_handlers.c */
int rl_handle_submit_job(rl_http_request *request, rl_error *err);
int rl_handle_list_jobs(rl_http_request *request, rl_error *err);
int rl_handle_get_job(rl_http_request *request, rl_error *err);
int rl_handle_label_job(rl_http_request *request, rl_error *err);
int rl_handle_cancel_job(rl_http_request *request, rl_error *err);
int rl_handle_get_job_source(rl_http_request *request, rl_error *err);
extern const rl_field rl_list_jobs_query[];

/* import_handlers.c */
int rl_handle_import_trace(rl_http_request *request, rl_error *err);
extern const rl_field rl_import_trace_query[];

/* event_streams.c */
int rl_handle_stream_job_events(rl_http_request *request, rl_error *err);
int rl_handle_stream_suite_run_events(rl_http_request *request, rl_error *err);

/* results_handlers.c */
int rl_handle_get_job_results(rl_http_request *request, rl_error *err);
int rl_handle_list_job_kernels(rl_http_request *request, rl_error *err);
int rl_handle_get_job_timeline(rl_http_request *request, rl_error *err);
int rl_handle_get_job_comparison(rl_http_request *request, rl_error *err);
int rl_handle_get_metric_history(rl_http_request *request, rl_error *err);
int rl_handle_list_ceilings(rl_http_request *request, rl_error *err);
extern const rl_field rl_list_job_kernels_query[], rl_get_job_timeline_query[], rl_get_metric_history_query[],
    rl_list_ceilings_query[];
/* Values of rl_route.is_heavy: return true if RL_POOL_HEAVY must run the request. */
bool rl_job_kernels_are_heavy(const rl_http_request *request);
bool rl_job_timeline_is_heavy(const rl_http_request *request);
bool rl_metric_history_is_heavy(const rl_http_request *request);

/* export_handlers.c */
int rl_handle_export_job(rl_http_request *request, rl_error *err);
extern const rl_field rl_export_job_query[];

/* suite_handlers.c */
int rl_handle_list_suites(rl_http_request *request, rl_error *err);
int rl_handle_get_suite(rl_http_request *request, rl_error *err);
int rl_handle_start_suite_run(rl_http_request *request, rl_error *err);
int rl_handle_list_suite_runs(rl_http_request *request, rl_error *err);
int rl_handle_get_suite_run(rl_http_request *request, rl_error *err);
int rl_handle_cancel_suite_run(rl_http_request *request, rl_error *err);
int rl_handle_add_baseline(rl_http_request *request, rl_error *err);
int rl_handle_list_baselines(rl_http_request *request, rl_error *err);
int rl_handle_get_suite_history(rl_http_request *request, rl_error *err);
extern const rl_field rl_list_suite_runs_query[], rl_get_suite_history_query[];

/* timeline_handlers.c, timeline_lanes_handlers.c, timeline_window_handlers.c, timeline_comparison_handlers.c */
int rl_handle_get_timeline_findings(rl_http_request *request, rl_error *err);
int rl_handle_get_timeline_lanes(rl_http_request *request, rl_error *err);
int rl_handle_get_timeline_statistics(rl_http_request *request, rl_error *err);
int rl_handle_search_timeline(rl_http_request *request, rl_error *err);
int rl_handle_compare_timelines(rl_http_request *request, rl_error *err);
extern const rl_field rl_get_timeline_lanes_query[], rl_get_timeline_statistics_query[], rl_search_timeline_query[],
    rl_compare_timelines_query[];

/* report_handlers.c */
int rl_handle_get_run_report(rl_http_request *request, rl_error *err);
int rl_handle_compare_runs(rl_http_request *request, rl_error *err);
int rl_handle_list_report_sections(rl_http_request *request, rl_error *err);
extern const rl_field rl_get_run_report_query[], rl_compare_runs_query[];
bool rl_run_report_is_heavy(const rl_http_request *request);
bool rl_runs_comparison_is_heavy(const rl_http_request *request);

/* system_handlers.c */
int rl_handle_list_workloads(rl_http_request *request, rl_error *err);
int rl_handle_list_devices(rl_http_request *request, rl_error *err);
int rl_handle_get_health(rl_http_request *request, rl_error *err);
int rl_handle_get_readiness(rl_http_request *request, rl_error *err);
int rl_handle_get_openapi(rl_http_request *request, rl_error *err);

/* prometheus.c */
int rl_handle_get_prometheus_metrics(rl_http_request *request, rl_error *err);

/* auth.c */
int rl_handle_log_in(rl_http_request *request, rl_error *err);
int rl_handle_log_out(rl_http_request *request, rl_error *err);

/* static_files.c */
int rl_handle_get_web_file(rl_http_request *request, rl_error *err);

#endif
