/* Reads reports of Nsight Systems that were exported as SQLite (`nsys export --type sqlite`). The file is not trusted: it is
 * opened read-only, its schema executes no code, and memory and statements are limited. Reference: "SQLite Export Schema
 * Reference", NVIDIA; columns that a version of the schema lacks are read as absent. */
#ifndef RL_IMPORT_NSYS_H
#define RL_IMPORT_NSYS_H

#include "import/observer.h"
#include "import/trace.h"

/* Reads the database in an open file into the trace. Opens no other file. RL_INPUT: no database, a damaged one, one without the
 * tables of nsys, a limit, or a row with invalid times; RL_ERRNO with ECANCELED: cancelled. */
int rl_nsys_read(int descriptor, const rl_import_observer *observer, rl_trace *trace, rl_error *err);

#endif
