/* Implements idx.h: reads and checks IDX files, through zlib if they are compressed. */
#include "data/idx.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"

enum { IMAGE_SIDE = 28, CLASSES = 10, MAX_ITEMS = 1000000, MAX_SIDE = 4096, MAX_HEADER_BYTES = 16 };

RL_DEFINE_CLEANUP(close_gzip, gzFile, gzclose_r, NULL)
RL_DEFINE_CLEANUP(free_bytes, uint8_t *, free, NULL)

static uint32_t read_big_endian(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static size_t header_size(int dimensions) { return 4 + 4 * (size_t)dimensions; }

/* Decodes the header: sets *idx except its items, and sets *body_size to count × rows × columns, the number of bytes that must
 * follow the header. The limits of these three sizes keep body_size below 2^64. */
static int decode_header(const uint8_t *header, int dimensions, rl_idx *idx, uint64_t *body_size, rl_error *err) {
  uint32_t magic = read_big_endian(header), expected = 0x800 | (uint32_t)dimensions;
  if (magic != expected)
    return rl_fail(err, RL_INPUT, 0, "not an IDX file of %s: magic 0x%08x, expected 0x%08x",
                   dimensions == 3 ? "images" : "labels", magic, expected);
  uint32_t sizes[3] = {0, 1, 1};
  for (int i = 0; i < dimensions; i++) sizes[i] = read_big_endian(header + 4 + 4 * i);
  if (sizes[0] == 0 || sizes[0] > MAX_ITEMS)
    return rl_fail(err, RL_INPUT, 0, "%u items; from 1 to %d are allowed", sizes[0], MAX_ITEMS);
  for (int i = 1; i < 3; i++)
    if (sizes[i] == 0 || sizes[i] > MAX_SIDE)
      return rl_fail(err, RL_INPUT, 0, "items of %u×%u; sides from 1 to %d are allowed", sizes[1], sizes[2], MAX_SIDE);
  *idx = (rl_idx){.count = sizes[0], .rows = sizes[1], .columns = sizes[2]};
  *body_size = (uint64_t)sizes[0] * sizes[1] * sizes[2];
  return 0;
}

int rl_idx_decode(const uint8_t *data, size_t size, int dimensions, rl_idx *idx, rl_error *err) {
  rl_idx decoded;
  uint64_t body_size;
  if (dimensions != 1 && dimensions != 3)
    return rl_fail(err, RL_INPUT, 0, "an IDX file of labels has 1 dimension, one of images 3");
  size_t head_size = header_size(dimensions);
  if (size < head_size) return rl_fail(err, RL_INPUT, 0, "truncated in the header: %zu bytes of %zu", size, head_size);
  if (decode_header(data, dimensions, &decoded, &body_size, err) < 0) return -1;
  if (size - head_size != body_size)
    return rl_fail(err, RL_INPUT, 0, "%s: %zu bytes follow the header, which announces %llu",
                   size - head_size < body_size ? "truncated" : "trailing bytes", size - head_size,
                   (unsigned long long)body_size);
  decoded.items = data + head_size;
  *idx = decoded;
  return 0;
}

/* Reads up to size bytes and sets *count to the number of bytes read, which is less than size only at the end of the file. */
static int read_bytes(gzFile file, uint8_t *buffer, size_t size, size_t *count, rl_error *err) {
  const size_t max_read = 1u << 30; /* gzread takes an unsigned and returns an int */
  for (*count = 0; *count < size;) {
    size_t left = size - *count;
    int received = gzread(file, buffer + *count, (unsigned)(left < max_read ? left : max_read));
    int code;
    const char *reason = gzerror(file, &code);
    /* zlib reports a gzip stream that ends early as a short read with Z_BUF_ERROR. */
    if (received < 0 || code == Z_BUF_ERROR) return rl_fail(err, RL_INPUT, 0, "broken gzip stream: %s", reason);
    if (received == 0) return 0;
    *count += (size_t)received;
  }
  return 0;
}

static int check_size(int dimensions, const rl_idx *idx, rl_error *err) {
  if (dimensions == 1 || (idx->rows == IMAGE_SIDE && idx->columns == IMAGE_SIDE)) return 0;
  return rl_fail(err, RL_INPUT, 0, "images of %u×%u; 28×28 is needed", idx->rows, idx->columns);
}

static int check_labels(const rl_idx *idx, rl_error *err) {
  for (uint32_t i = 0; i < idx->count; i++)
    if (idx->items[i] >= CLASSES) return rl_fail(err, RL_INPUT, 0, "label %u of item %u is not a digit", idx->items[i], i);
  return 0;
}

/* Inflates at most one byte more than the header announces: so a gzip bomb takes little memory, and fails with "trailing
 * bytes". */
static int read_file(gzFile file, int dimensions, uint32_t *count, uint8_t **items, rl_error *err) {
  uint8_t header[MAX_HEADER_BYTES];
  size_t head_size = header_size(dimensions), size = 0;
  rl_idx idx = {0};
  uint64_t body_size = 0;
  if (read_bytes(file, header, head_size, &size, err) < 0) return -1;
  if (size < head_size) return rl_idx_decode(header, size, dimensions, &idx, err);
  if (decode_header(header, dimensions, &idx, &body_size, err) < 0 || check_size(dimensions, &idx, err) < 0) return -1;
  RL_CLEANUP(free_bytes) uint8_t *data = malloc(head_size + body_size + 1);
  if (data == NULL) return rl_fail_errno(err, "%llu bytes", (unsigned long long)body_size);
  memcpy(data, header, head_size);
  if (read_bytes(file, data + head_size, body_size + 1, &size, err) < 0) return -1;
  if (rl_idx_decode(data, head_size + size, dimensions, &idx, err) < 0) return -1;
  if (dimensions == 1 && check_labels(&idx, err) < 0) return -1;
  memmove(data, idx.items, body_size);
  *count = idx.count;
  *items = rl_take_ownership(&data);
  return 0;
}

int rl_idx_read(const char *path, int dimensions, uint32_t *count, uint8_t **items, rl_error *err) {
  RL_CLEANUP(close_gzip) gzFile file = gzopen(path, "rb");
  if (file == NULL) return rl_fail_errno(err, "%s", path);
  gzbuffer(file, 1 << 17);
  return read_file(file, dimensions, count, items, err) < 0 ? rl_wrap(err, "%s", path) : 0;
}
