/* Makes a state folder with a large database, for tests/bench/api.sh. Prints what it stored as a JSON object, and progress and
 * the bytes of each table on stderr. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "grow.h"
#include "store/db.h"

static int print_usage(void) {
  fprintf(stderr, "usage: grow_database [-j jobs] [-r activity rows] [-t rows of the longest trace] STATE_FOLDER\n");
  return 2;
}

/* Returns the integer in the first row of a query; -1 if the query fails, such as without dbstat. */
static int64_t query_integer(sqlite3 *db, const char *sql) {
  sqlite3_stmt *row = NULL;
  int64_t bytes = -1;
  if (sqlite3_prepare_v2(db, sql, -1, &row, NULL) == SQLITE_OK && sqlite3_step(row) == SQLITE_ROW)
    bytes = sqlite3_column_int64(row, 0);
  sqlite3_finalize(row);
  return bytes;
}

static int print_row(void *unused, int columns, char **values, char **names) {
  (void)unused, (void)columns, (void)names;
  return fprintf(stderr, "%12s bytes  %s\n", values[1], values[0]) < 0;
}

static int64_t activity_bytes(const char *folder) {
  char path[4096];
  sqlite3 *db = NULL;
  int64_t bytes = -1;
  snprintf(path, sizeof path, "%s/rooflined.db", folder);
  if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK) {
    sqlite3_exec(db, "SELECT name, pgsize FROM dbstat WHERE aggregate = TRUE AND pgsize > 1000000 ORDER BY pgsize DESC",
                 print_row, NULL, NULL);
    bytes =
        query_integer(db, "SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE AND (name GLOB 'activity*' OR name = 'names')");
  }
  sqlite3_close(db);
  return bytes;
}

static void print_grown(const grow_plan *plan, const grow_result *grown, int64_t bytes) {
  const struct {
    const char *name;
    int64_t value;
  } members[] = {{"jobs", plan->jobs},
                 {"activity_rows", grown->activity_rows},
                 {"trace_rows", plan->trace_rows},
                 {"trace_job", grown->trace_job},
                 {"trace_run", grown->trace_run},
                 {"trace_end_ns", grown->trace_end_ns},
                 {"train_job", grown->train_job},
                 {"train_run", grown->train_run},
                 {"train_candidate", grown->train_candidate},
                 {"kernel_job", grown->kernel_job},
                 {"kernel_run", grown->kernel_run},
                 {"full_job", grown->full_job},
                 {"full_run", grown->full_run},
                 {"source_job", grown->source_job},
                 {"rare_run", grown->rare_run}};
  printf("{");
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    printf("\"%s\":%lld,", members[i].name, (long long)members[i].value);
  printf("\"seconds\":%.1f,\"rows_per_s\":%.0f,\"trace_rows_per_s\":%.0f,\"trace_bytes_per_row\":%.1f,\"bytes_per_row\":",
         grown->total_s, (double)grown->activity_rows / grown->activity_s, (double)plan->trace_rows / grown->trace_s,
         (double)grown->trace_bytes / (double)plan->trace_rows);
  if (bytes >= 0) printf("%.1f}\n", (double)bytes / (double)grown->activity_rows);
  else printf("null}\n");
}

static bool read_number(const char *text, int64_t minimum, int64_t *number) {
  char *end;
  *number = strtoll(text, &end, 10);
  return end != text && *end == '\0' && *number >= minimum;
}

int main(int argc, char **argv) {
  grow_plan plan = {.jobs = 10000, .activity_rows = 5000000, .trace_rows = 1000000, .shows_progress = true};
  rl_store *store = NULL;
  rl_error err;
  grow_result grown;
  for (int option; (option = getopt(argc, argv, "j:r:t:")) != -1;) {
    int64_t *number = option == 'j' ? &plan.jobs : option == 'r' ? &plan.activity_rows : &plan.trace_rows;
    if (option == '?' || !read_number(optarg, 1, number)) return print_usage();
  }
  if (argc != optind + 1 || plan.trace_rows > plan.activity_rows) return print_usage();
  int rc = rl_store_open(argv[optind], &store, &err);
  if (rc >= 0) rc = grow_database(store, &plan, &grown, &err);
  rl_store_close(store);
  if (rc < 0) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }
  print_grown(&plan, &grown, activity_bytes(argv[optind]));
  return 0;
}
