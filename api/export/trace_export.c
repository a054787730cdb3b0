/* Implements trace_export.h. The trace writer appends rows to a buffer until the buffer has CHUNK_BYTES. If the writer's is_gzip
 * is set, the buffer is then compressed. */
#include "api/export/trace_export.h"

#include <errno.h>
#include <zlib.h>

enum { CHUNK_BYTES = 64 << 10, GZIP_LEVEL = 1, GZIP_WINDOW_BITS = 15 + 16 /* 16: with gzip's header */, GZIP_MEMORY_LEVEL = 9 };

typedef struct trace_export {
  const rl_trace_writer *writer;
  cJSON *conditions;
  void *state; /* state of the writer */
  rl_trace_reader *reader;
  rl_buffer out, compressed;
  z_stream deflater;
  bool has_deflater;
  enum { BEGIN, ROWS, DONE } stage;
} trace_export;

static void close_export(void *context) {
  trace_export *export = context;
  rl_trace_reader_close(export->reader);
  if (export->state != NULL && export->writer->clear != NULL) export->writer->clear(export->state);
  if (export->has_deflater) deflateEnd(&export->deflater);
  free(export->state);
  rl_buffer_clear(&export->out);
  rl_buffer_clear(&export->compressed);
  cJSON_Delete(export->conditions);
  free(export);
}

RL_DEFINE_CLEANUP(export_cleanup, trace_export *, close_export, NULL)

/* --- rows -------------------------------------------------------------------------------------------------------------- */

static int write_rows(trace_export *export, rl_error *err) {
  rl_trace_row row;
  while (export->out.length < CHUNK_BYTES) {
    int found = rl_trace_reader_next(export->reader, &row, err);
    if (found < 0) return -1;
    if (found == 0) {
      export->writer->end(export->state, &export->out);
      export->stage = DONE;
      return 0;
    }
    if (export->writer->write(export->state, &row, &export->out, err) < 0) return -1;
  }
  return 0;
}

/* Fills the buffer with the next bytes of the format. */
static int fill(trace_export *export, rl_error *err) {
  export->out.length = 0;
  if (export->stage == BEGIN && export->writer->begin(export->state, export->conditions, &export->out, err) < 0) return -1;
  export->stage = export->stage == BEGIN ? ROWS : export->stage;
  return write_rows(export, err) < 0 ? -1 : rl_buffer_check(&export->out, err);
}

static int next_plain(void *context, rl_chunk *chunk, rl_error *err) {
  trace_export *export = context;
  if (export->stage == DONE) return 0;
  if (fill(export, err) < 0) return -1;
  *chunk = (rl_chunk){export->out.bytes, export->out.length};
  return 1;
}

/* --- gzip -------------------------------------------------------------------------------------------------------------- */

/* Compresses the bytes of `out` and appends them to `compressed`; with Z_FINISH, also ends the gzip file. */
static int deflate_out(trace_export *export, int flush, rl_error *err) {
  unsigned char block[16 << 10];
  z_stream *deflater = &export->deflater;
  deflater->next_in = (unsigned char *)export->out.bytes;
  deflater->avail_in = (uInt) export->out.length;
  do {
    deflater->next_out = block;
    deflater->avail_out = sizeof block;
    if (deflate(deflater, flush) == Z_STREAM_ERROR) return rl_fail(err, RL_ERRNO, EINVAL, "zlib cannot compress an export");
    rl_buffer_append(&export->compressed, block, sizeof block - deflater->avail_out);
  } while (deflater->avail_out == 0);
  return rl_buffer_check(&export->compressed, err);
}

static int next_compressed(void *context, rl_chunk *chunk, rl_error *err) {
  trace_export *export = context;
  export->compressed.length = 0;
  while (export->stage != DONE && export->compressed.length < CHUNK_BYTES / 2)
    if (fill(export, err) < 0 || deflate_out(export, export->stage == DONE ? Z_FINISH : Z_NO_FLUSH, err) < 0) return -1;
  *chunk = (rl_chunk){export->compressed.bytes, export->compressed.length};
  return export->compressed.length > 0;
}

static int start_gzip(trace_export *export, rl_error *err) {
  int code = deflateInit2(&export->deflater, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEMORY_LEVEL, Z_DEFAULT_STRATEGY);
  export->has_deflater = code == Z_OK;
  return export->has_deflater ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an export");
}

int rl_trace_export_open(rl_store *store, int64_t run, const rl_trace_writer *writer, cJSON *conditions, rl_chunk_source *source,
                         rl_error *err) {
  RL_CLEANUP(export_cleanup) trace_export *export = calloc(1, sizeof *export);
  if (export == NULL) cJSON_Delete(conditions);
  else *export = (trace_export){.writer = writer, .conditions = conditions, .state = calloc(1, writer->state_size)};
  if (export == NULL || conditions == NULL || export->state == NULL)
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for an export");
  if (writer->is_gzip && start_gzip(export, err) < 0) return -1;
  if (rl_trace_reader_open(store, run, &export->reader, err) < 0) return -1;
  *source = (rl_chunk_source){writer->is_gzip ? next_compressed : next_plain, close_export, rl_take_ownership(&export)};
  return 0;
}
