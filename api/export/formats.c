/* Implements formats.h with the table of formats. */
#include "api/export/formats.h"

#include "api/export/trace_export.h"
#include "api/report_stream.h"

static int open_trace(rl_store *store, rl_export_target *target, const rl_trace_writer *writer, rl_chunk_source *source,
                      rl_error *err) {
  return rl_trace_export_open(store, target->run, writer, rl_take_ownership(&target->conditions), source, err);
}

static int open_chrome(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err) {
  return open_trace(store, target, &rl_chrome_writer, source, err);
}

static int open_perfetto(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err) {
  return open_trace(store, target, &rl_perfetto_writer, source, err);
}

static int open_csv(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err) {
  return open_trace(store, target, &rl_csv_writer, source, err);
}

static int open_ncu_csv(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err) {
  return rl_report_raw_csv_open(store, target->run, source, err);
}

enum { CHROME, PERFETTO, NSYS, NCU_CSV, CSV, OPENMETRICS };
const char *const rl_export_format_names[] = {[CHROME] = "chrome",
                                              [PERFETTO] = "perfetto",
                                              [NSYS] = "nsys",
                                              [NCU_CSV] = "ncu-csv",
                                              [CSV] = "csv",
                                              [OPENMETRICS] = "openmetrics",
                                              NULL};
const rl_export_format rl_export_formats[] = {
    [CHROME] = {"application/gzip", ".pt.trace.json.gz", .needs_trace = true, .open = open_chrome},
    [PERFETTO] = {"application/x-protobuf", ".perfetto-trace", .needs_trace = true, .open = open_perfetto},
    [NSYS] = {"application/vnd.sqlite3", ".nsys.sqlite", .needs_trace = true, .open = rl_nsys_open},
    [NCU_CSV] = {"text/csv", ".ncu.csv", .open = open_ncu_csv},
    [CSV] = {"text/csv", ".csv", .needs_trace = true, .open = open_csv},
    [OPENMETRICS] = {"application/openmetrics-text; version=1.0.0; charset=utf-8", ".openmetrics.txt", .exports_all_runs = true,
                     .open = rl_openmetrics_open}};
