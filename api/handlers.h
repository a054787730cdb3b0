/* The handlers of the routes, named after the operationIds in schema/openapi.json, and the tables of their query parameters. A
 * handler replies to the call (call.h) and returns 0, or fills err and returns -1. */
#ifndef RL_API_HANDLERS_H
#define RL_API_HANDLERS_H

#include "api/call.h"

/* jobs_handlers.c */
int rl_handle_submit_job(rl_call *call, rl_error *err);
int rl_handle_list_jobs(rl_call *call, rl_error *err);
int rl_handle_get_job(rl_call *call, rl_error *err);
int rl_handle_cancel_job(rl_call *call, rl_error *err);
int rl_handle_get_source(rl_call *call, rl_error *err);
extern const rl_field rl_list_jobs_query[];

/* event_streams.c */
int rl_handle_stream_events(rl_call *call, rl_error *err);

/* results_handlers.c */
int rl_handle_get_results(rl_call *call, rl_error *err);
int rl_handle_list_kernels(rl_call *call, rl_error *err);
int rl_handle_get_timeline(rl_call *call, rl_error *err);
int rl_handle_get_comparison(rl_call *call, rl_error *err);
int rl_handle_get_history(rl_call *call, rl_error *err);
int rl_handle_list_ceilings(rl_call *call, rl_error *err);
extern const rl_field rl_list_kernels_query[], rl_get_timeline_query[], rl_get_history_query[], rl_list_ceilings_query[];

/* report_handlers.c */
int rl_handle_get_report(rl_call *call, rl_error *err);
int rl_handle_compare_runs(rl_call *call, rl_error *err);
int rl_handle_list_sections(rl_call *call, rl_error *err);
extern const rl_field rl_get_report_query[], rl_compare_runs_query[];

/* system_handlers.c */
int rl_handle_list_workloads(rl_call *call, rl_error *err);
int rl_handle_list_devices(rl_call *call, rl_error *err);
int rl_handle_get_health(rl_call *call, rl_error *err);
int rl_handle_get_readiness(rl_call *call, rl_error *err);
int rl_handle_get_openapi(rl_call *call, rl_error *err);

/* prometheus.c */
int rl_handle_get_metrics(rl_call *call, rl_error *err);

/* auth.c */
int rl_handle_log_in(rl_call *call, rl_error *err);
int rl_handle_log_out(rl_call *call, rl_error *err);

/* static_files.c */
int rl_handle_get_file(rl_call *call, rl_error *err);

#endif
