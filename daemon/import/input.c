/* Implements input.h. Decompresses gzip files, which can consist of several members, with zlib. */
#include "import/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK_BYTES = 64 << 10, GZIP_WINDOW_BITS = 15 + 16 };
static const uint64_t MAX_BYTES = UINT64_C(4) << 30;

struct rl_input {
  int descriptor;
  int64_t file_bytes, read_bytes;
  uint64_t output_bytes;
  bool is_compressed, is_at_end, is_member_complete;
  z_stream stream;
  unsigned char compressed[CHUNK_BYTES], output[CHUNK_BYTES];
};

/* Reads up to CHUNK_BYTES of the file. Returns the number of bytes read; 0 at the end of the file; -1 with err on failure. */
static ssize_t read_file(rl_input *input, unsigned char *data, rl_error *err) {
  ssize_t byte_count;
  do byte_count = pread(input->descriptor, data, CHUNK_BYTES, input->read_bytes);
  while (byte_count < 0 && errno == EINTR);
  if (byte_count < 0) return rl_fail_errno(err, "can't read the trace");
  input->read_bytes += byte_count;
  return byte_count;
}

int rl_input_open(int descriptor, rl_input **input, rl_error *err) {
  struct stat status;
  unsigned char magic[2] = {0};
  if (fstat(descriptor, &status) < 0) return rl_fail_errno(err, "can't read the trace");
  if (status.st_size == 0) return rl_fail(err, RL_INPUT, 0, "the file is empty");
  RL_CLEANUP(rl_input_cleanup) rl_input *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  opened->descriptor = descriptor;
  opened->file_bytes = status.st_size;
  opened->is_compressed = pread(descriptor, magic, sizeof magic, 0) == sizeof magic && magic[0] == 0x1f && magic[1] == 0x8b;
  if (opened->is_compressed && inflateInit2(&opened->stream, GZIP_WINDOW_BITS) != Z_OK)
    return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace");
  *input = rl_take_ownership(&opened);
  return 0;
}

void rl_input_close(rl_input *input) {
  if (input == NULL) return;
  if (input->is_compressed) inflateEnd(&input->stream);
  free(input);
}

/* Reads more compressed bytes if zlib has consumed all earlier ones. Sets is_at_end at the end of the file. */
static int refill(rl_input *input, rl_error *err) {
  if (input->stream.avail_in > 0) return 0;
  ssize_t byte_count = read_file(input, input->compressed, err);
  if (byte_count < 0) return -1;
  input->stream.next_in = input->compressed;
  input->stream.avail_in = (uInt)byte_count;
  input->is_at_end = byte_count == 0;
  return 0;
}

/* Calls inflate() once. When a member of the gzip file ends, starts the next one. Zero bytes after the last member are
 * allowed. */
static int inflate_once(rl_input *input, rl_error *err) {
  if (refill(input, err) < 0) return -1;
  if (input->is_at_end)
    return input->is_member_complete ? 0 : rl_fail(err, RL_INPUT, 0, "the gzip data ends early: the file is not complete");
  if (input->is_member_complete && inflateReset(&input->stream) != Z_OK)
    return rl_fail(err, RL_INPUT, 0, "the gzip data is damaged");
  int rc = inflate(&input->stream, Z_NO_FLUSH);
  input->is_member_complete = rc == Z_STREAM_END;
  if (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR) return 0;
  return rc == Z_MEM_ERROR ? rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a trace")
                           : rl_fail(err, RL_INPUT, 0, "the gzip data is damaged");
}

static int next_decompressed(rl_input *input, size_t *size, rl_error *err) {
  input->stream.next_out = input->output;
  input->stream.avail_out = CHUNK_BYTES;
  while (input->stream.avail_out == CHUNK_BYTES && !input->is_at_end)
    if (inflate_once(input, err) < 0) return -1;
  *size = CHUNK_BYTES - input->stream.avail_out;
  return 0;
}

static int next_plain(rl_input *input, size_t *size, rl_error *err) {
  ssize_t count = read_file(input, input->output, err);
  if (count < 0) return -1;
  *size = (size_t)count;
  return 0;
}

int rl_input_next(rl_input *input, const unsigned char **data, size_t *size, rl_error *err) {
  size_t count = 0;
  if ((input->is_compressed ? next_decompressed(input, &count, err) : next_plain(input, &count, err)) < 0) return -1;
  input->output_bytes += count;
  if (input->output_bytes > MAX_BYTES)
    return rl_fail(err, RL_INPUT, 0, "the trace has more than %llu bytes when decompressed", (unsigned long long)MAX_BYTES);
  *data = input->output;
  *size = count;
  return 0;
}

double rl_input_progress(const rl_input *input) { return (double)input->read_bytes / (double)input->file_bytes; }
