/* Reads reports of Nsight Systems that were exported as SQLite (`nsys export --type sqlite`). The file is not trusted: it is
 * opened read-only, views and triggers of its schema are not executed, and memory and the length of statements are limited. A
 * column that the file's version of the schema does not have counts as NULL. Reference: "SQLite Export Schema Reference",
 * NVIDIA. */
#ifndef RL_IMPORT_NSYS_H
#define RL_IMPORT_NSYS_H

#include "import/observer.h"
#include "import/trace.h"

/* Reads the database in an open file into the trace, and opens no other file. Fails with RL_INPUT if the file is not a database,
 * is damaged, exceeds a limit, has none of nsys's tables, or has a row with invalid times; with RL_ERRNO (ECANCELED) if the
 * observer cancels. */
int rl_nsys_read(int descriptor, const rl_import_observer *observer, rl_trace *trace, rl_error *err);

#endif
