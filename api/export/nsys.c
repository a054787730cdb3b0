/* A chunk source (chunked_reply.h) for the format nsys. The store writes the SQLite database to a temporary file, which this
 * source reads. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/export/formats.h"

enum { CHUNK_BYTES = 64 << 10 };

typedef struct file_source {
  int descriptor;
  char bytes[CHUNK_BYTES];
} file_source;

static int next_chunk(void *context, rl_chunk *chunk, rl_error *err) {
  file_source *file = context;
  ssize_t length = read(file->descriptor, file->bytes, sizeof file->bytes);
  if (length < 0) return rl_fail_errno(err, "cannot read an export");
  *chunk = (rl_chunk){file->bytes, (size_t)length};
  return length > 0;
}

static void close_file(void *context) {
  file_source *file = context;
  close(file->descriptor);
  free(file);
}

int rl_nsys_open(rl_store *store, rl_export_target *target, rl_chunk_source *source, rl_error *err) {
  file_source *file = malloc(sizeof *file);
  if (file == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an export");
  if (rl_store_write_nsys(store, target->run, &file->descriptor, err) < 0) {
    free(file);
    return -1;
  }
  *source = (rl_chunk_source){next_chunk, close_file, file, .is_file = true};
  return 0;
}
