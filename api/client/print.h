/* Text for people: cells of tables that fit 80 columns, and numbers read from the API's documents. What is null prints as
 * "—" and never as zero. */
#ifndef RL_CLIENT_PRINT_H
#define RL_CLIENT_PRINT_H

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { RL_CELL_SIZE = 64 };

/* Members of an object; "" and NAN for what is absent, null or of another type. path names nested ones: "passes.total". */
const cJSON *rl_json_at(const cJSON *object, const char *path);
const char *rl_json_text(const cJSON *object, const char *path);
double rl_json_number(const cJSON *object, const char *path);

/* A number into cell[RL_CELL_SIZE], "—" for NAN; returns cell. */
typedef char *(*rl_cell_format)(char *cell, double value);
char *rl_cell_ms(char *cell, double ms); /* "263.9 ms", "18.4 s" */
char *rl_cell_us(char *cell, double us);
char *rl_cell_count(char *cell, double value); /* "227 300": digits in groups of three */
char *rl_cell_bytes(char *cell, double bytes); /* "98.2 MiB" */
char *rl_cell_percent(char *cell, double ratio);
char *rl_cell_points(char *cell, double ratio_difference);     /* "+0.12 pt" */
char *rl_cell_times(char *cell, double ratio);                 /* "1.29×" */
char *rl_cell_rate(char *cell, double bytes_per_s);            /* "3911.2 GB/s" */
char *rl_cell_error(char *cell, double relative);              /* "2.1e-04" */
char *rl_cell_operations(char *cell, double operations_per_s); /* "60.62 TFLOP/s", "94.7 GFLOP/s" */
char *rl_cell_age(char *cell, double seconds);                 /* "12 s", "3 h", "40 days" */

/* Print text padded to width columns (negative: to the left), counting characters and not bytes; of longer text … stands for
 * its end. */
void rl_print_cell(FILE *out, const char *text, int width);
/* `count` times the same character. */
void rl_print_line(FILE *out, int count);

/* The comparison table of a finished job, from its three documents. */
void rl_print_results(FILE *out, const cJSON *job, const cJSON *results, const cJSON *comparison);
/* The part of it that a kernel job has instead of the comparison: print_kernel.c. */
void rl_print_kernel_runs(FILE *out, const cJSON *runs);
/* A ceilings job's run, and an item of /ceilings: print_ceilings.c. */
void rl_print_ceilings_run(FILE *out, const cJSON *run);
void rl_print_ceilings(FILE *out, const cJSON *ceilings);
/* A run's report, of one section with all of its tables or of every section's header (NULL), and two side by side:
 * print_report.c. */
void rl_print_report(FILE *out, const cJSON *report, const char *section);
void rl_print_run_comparison(FILE *out, const cJSON *comparison);
/* A document as the API answered it; returns RL_EXIT_COMPLETED. */
int rl_print_json(const cJSON *document);
/* What went wrong with a failed job; "" when nothing did. */
const char *rl_job_problem(const cJSON *job);

#endif
