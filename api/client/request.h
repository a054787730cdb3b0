/* Makes the body of POST /jobs from a file or from options. */
#ifndef RL_CLIENT_REQUEST_H
#define RL_CLIENT_REQUEST_H

#include "api/client/cli.h"
#include "base/error.h"

/* argv: FILE, "-" for standard input, or options such as --epochs 3 --precisions fp32,fp16 (none: the daemon's defaults).
 * *body is malloc'ed. The daemon checks the values. */
int rl_request_from_arguments(int argc, char **argv, char **body, rl_error *err);
/* Makes the body of PATCH /jobs/{id} from --name and --tags, of which argv has at least one. An empty value removes the name or
 * the tags. */
int rl_request_labels_from_arguments(int argc, char **argv, char **body, rl_error *err);
/* Reads a file or standard input ("-"), at most 1 MiB. malloc'ed; NULL with err on failure. */
char *rl_request_read_file(const char *file, rl_error *err);
/* The options of `run`; ends with {0}. */
const rl_cli_option *rl_request_options(void);
/* Those of `label`. */
const rl_cli_option *rl_label_options(void);

#endif
