/* Makes the bodies of POST /jobs and PATCH /jobs/{id} from a file or from options of the command line. */
#ifndef RL_CLIENT_REQUEST_H
#define RL_CLIENT_REQUEST_H

#include "api/client/cli.h"
#include "base/error.h"

/* Makes the body of POST /jobs and sets *body to malloc'ed memory. argv: FILE, "-" for standard input, or options such as
 * --epochs 3 --precisions fp32,fp16; without options, the daemon's defaults apply. The daemon checks the values. */
int rl_request_from_arguments(int argc, char **argv, char **body, rl_error *err);
/* Makes the body of PATCH /jobs/{id} from --name and --tags, of which argv has at least one. An empty value removes the name or
 * the tags. */
int rl_request_labels_from_arguments(int argc, char **argv, char **body, rl_error *err);
/* Reads a file, or standard input if `file` is "-", of at most 1 MiB. Returns malloc'ed text; NULL with err on failure. */
char *rl_request_read_file(const char *file, rl_error *err);
/* Returns the options of the command run; the table ends with {0}. */
const rl_cli_option *rl_request_options(void);
/* Returns the options of the command label; the table ends with {0}. */
const rl_cli_option *rl_label_options(void);

#endif
