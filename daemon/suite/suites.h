/* Reads the suites from files NAME.json in the folders that the setting `suites` lists. A changed file is read again, so a suite
 * can be edited while the daemon runs. A malformed file is listed with its problem and does not affect the other files. HTTP
 * handlers call this module. Thread-safe. */
#ifndef RL_SUITE_SUITES_H
#define RL_SUITE_SUITES_H

#include "suite/definition.h"

enum { RL_SUITE_FILES_MAX = 64 };

typedef struct rl_suites rl_suites;

typedef struct rl_suite_problem {
  char file[256]; /* path of the file */
  int line;       /* number of the line, from 1; 0: the problem has no line */
  char pointer[sizeof((rl_error *)0)->json_pointer];
  char message[sizeof((rl_error *)0)->message];
} rl_suite_problem;

typedef struct rl_suite_entry {
  char name[RL_SUITE_NAME_SIZE]; /* the file's name without .json */
  rl_suite *suite;               /* NULL: the file is malformed, and `problem` has the reason */
  rl_suite_problem problem;
} rl_suite_entry;

/* A snapshot of the suites, sorted by name. */
typedef struct rl_suite_list {
  int references;   /* guarded by the mutex of rl_suites */
  uint64_t version; /* increases when a file changes */
  int count;
  rl_suite_entry entries[];
} rl_suite_list;

/* folders: paths, separated by colons. If several folders contain a file with the same name, the file of the first folder is
 * used. A folder that does not exist contains no suites. */
int rl_suites_open(const char *folders, const rl_job_policy *policy, rl_suites **suites, rl_error *err);
void rl_suites_close(rl_suites *suites); /* accepts NULL */

/* Returns the current list of suites, which the caller releases with rl_suites_release. Fails with NULL and RL_ERRNO if memory is
 * exhausted. */
const rl_suite_list *rl_suites_acquire(rl_suites *suites, rl_error *err);
void rl_suites_release(rl_suites *suites, const rl_suite_list *list);
/* Returns the entry with this name; NULL if there is none. */
const rl_suite_entry *rl_suite_list_find(const rl_suite_list *list, const char *name);

RL_DEFINE_CLEANUP(rl_suites_cleanup, rl_suites *, rl_suites_close, NULL)
#endif
