/* The body of POST /jobs: the text of a file, or put together from options. */
#ifndef RL_CLIENT_REQUEST_H
#define RL_CLIENT_REQUEST_H

#include "base/error.h"

/* argv: FILE, "-" for standard input, or options such as --epochs 3 --precisions fp32,fp16 (none: the daemon's defaults).
 * *body is malloc'ed. The daemon checks the values. */
int rl_request_from_arguments(int argc, char **argv, char **body, rl_error *err);
/* The whole of a file or of standard input; malloc'ed, NULL and err when it can't be read. At most 1 MiB. */
char *rl_request_read(const char *file, rl_error *err);
/* One line for each option, for the help. */
void rl_request_help(void);

#endif
