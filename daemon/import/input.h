/* Reads an uploaded file, and decompresses it if it is a gzip file. The decompressed size is limited. Not thread-safe. */
#ifndef RL_IMPORT_INPUT_H
#define RL_IMPORT_INPUT_H

#include "base/cleanup.h"
#include "base/error.h"

#include <stdint.h>

typedef struct rl_input rl_input;

/* Opens an input that reads a file from its start. descriptor: the open file, which the caller must not close before the input.
 * Fails with RL_INPUT if the file is empty. */
int rl_input_open(int descriptor, rl_input **input, rl_error *err);
void rl_input_close(rl_input *input);
/* Sets *data to the next bytes, which are valid until the next call, and *size to their number, which is 0 at the end. Fails with
 * RL_INPUT if the gzip data is damaged or ends early, or if the decompressed data exceeds 4 GiB; with RL_ERRNO if the file can't
 * be read. */
int rl_input_next(rl_input *input, const unsigned char **data, size_t *size, rl_error *err);
/* Returns the fraction of the file that was read, from 0 to 1. */
double rl_input_progress(const rl_input *input);

RL_DEFINE_CLEANUP(rl_input_cleanup, rl_input *, rl_input_close, NULL)
#endif
