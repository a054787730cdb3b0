#include "data/idx.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE, CLASSES = 10, MOST_ITEMS = 1000000 };

RL_DEFINE_CLEANUP(close_gzip, gzFile, gzclose_r, NULL)
RL_DEFINE_CLEANUP(free_bytes, uint8_t *, free, NULL)

static uint32_t big_endian(const uint8_t *at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static size_t header_size(int dimensions) { return 4 + 4 * (size_t)dimensions; }

/* sizes: count, rows, columns. The body's size is kept within 64 bits by the limit on each factor. */
static int decode_header(const uint8_t *data, int dimensions, uint32_t sizes[3], uint64_t *body, rl_error *err) {
  uint32_t magic = big_endian(data), wanted = 0x800 | (uint32_t)dimensions;
  if (magic != wanted)
    return rl_fail(err, RL_INPUT, 0, "not an IDX file of %s: magic 0x%08x, expected 0x%08x",
                   dimensions == 3 ? "images" : "labels", magic, wanted);
  sizes[1] = sizes[2] = 1;
  for (int i = 0; i < dimensions; i++) sizes[i] = big_endian(data + 4 + 4 * i);
  if (sizes[0] == 0 || sizes[0] > MOST_ITEMS)
    return rl_fail(err, RL_INPUT, 0, "%u items; from 1 to %d are allowed", sizes[0], MOST_ITEMS);
  for (int i = 1; i < 3; i++)
    if (sizes[i] == 0 || sizes[i] > 4096)
      return rl_fail(err, RL_INPUT, 0, "items of %u×%u; sides from 1 to 4096 are allowed", sizes[1], sizes[2]);
  *body = (uint64_t)sizes[0] * sizes[1] * sizes[2];
  return 0;
}

int rl_idx_decode(const uint8_t *data, size_t size, int dimensions, uint32_t *count, uint32_t *rows, uint32_t *columns,
                  const uint8_t **items, rl_error *err) {
  if (dimensions != 1 && dimensions != 3) return rl_fail(err, RL_INPUT, 0, "IDX files here have 1 or 3 dimensions");
  size_t head = header_size(dimensions);
  if (size < head) return rl_fail(err, RL_INPUT, 0, "truncated in the header: %zu bytes of %zu", size, head);
  uint32_t sizes[3];
  uint64_t body;
  if (decode_header(data, dimensions, sizes, &body, err) != 0) return -1;
  if (size - head != body)
    return rl_fail(err, RL_INPUT, 0, "%s: %zu bytes after the header, which says %llu",
                   size - head < body ? "truncated" : "trailing bytes", size - head, (unsigned long long)body);
  *count = sizes[0];
  *rows = sizes[1];
  *columns = sizes[2];
  *items = data + head;
  return 0;
}

static int read_exactly(gzFile file, uint8_t *to, size_t size, size_t *got, rl_error *err) {
  for (*got = 0; *got < size;) {
    size_t rest = size - *got;
    int part = gzread(file, to + *got, rest < 1u << 30 ? (unsigned)rest : 1u << 30);
    int code;
    const char *why = gzerror(file, &code);
    /* A gzip stream that just ends is reported as a short read with Z_BUF_ERROR. */
    if (part < 0 || code == Z_BUF_ERROR) return rl_fail(err, RL_INPUT, 0, "broken gzip stream: %s", why);
    if (part == 0) return 0;
    *got += (size_t)part;
  }
  return 0;
}

static int check_content(int dimensions, uint32_t count, uint32_t rows, uint32_t columns, const uint8_t *items, rl_error *err) {
  if (dimensions == 3 && (rows != SIDE || columns != SIDE))
    return rl_fail(err, RL_INPUT, 0, "images of %u×%u; 28×28 is needed", rows, columns);
  for (uint32_t i = 0; dimensions == 1 && i < count; i++)
    if (items[i] >= CLASSES) return rl_fail(err, RL_INPUT, 0, "label %u of item %u is not a digit", items[i], i);
  return 0;
}

/* The header decides how much is inflated, and the header is bounded: a gzip bomb ends as trailing bytes. */
static int read_open(gzFile file, int dimensions, uint32_t *count, uint8_t **items, rl_error *err) {
  uint8_t header[16];
  size_t head = header_size(dimensions), got;
  uint32_t sizes[3] = {0};
  uint64_t body = 0;
  if (read_exactly(file, header, head, &got, err) != 0) return -1;
  if (got == head && decode_header(header, dimensions, sizes, &body, err) != 0) return -1;
  if (got == head && check_content(dimensions, 0, sizes[1], sizes[2], NULL, err) != 0) return -1;
  rl_auto(free_bytes) uint8_t *data = malloc(head + body + 1);
  if (data == NULL) return rl_fail_errno(err, "%llu bytes", (unsigned long long)body);
  memcpy(data, header, got);
  if (got == head) {
    if (read_exactly(file, data + head, body + 1, &got, err) != 0) return -1;
    got += head;
  }
  uint32_t rows, columns;
  const uint8_t *found;
  if (rl_idx_decode(data, got, dimensions, count, &rows, &columns, &found, err) != 0 ||
      check_content(dimensions, *count, rows, columns, found, err) != 0)
    return -1;
  memmove(data, found, body);
  *items = rl_steal(&data);
  return 0;
}

int rl_idx_read(const char *path, int dimensions, uint32_t *count, uint8_t **items, rl_error *err) {
  rl_auto(close_gzip) gzFile file = gzopen(path, "rb");
  if (file == NULL) return rl_fail_errno(err, "%s", path);
  gzbuffer(file, 1 << 17);
  if (read_open(file, dimensions, count, items, err) != 0) return rl_wrap(err, "%s", path);
  return 0;
}
