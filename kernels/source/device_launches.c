/* Implements device_launches.h. */
#include "source/device_launches.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "source/fatbin.h"

enum {
  MAX_DECOMPRESSED_BYTES = 64 << 20,
  CHUNK_BYTES = 64 << 10,
  MAX_WINDOW_LOG = 23, /* of zstd: at most 8 MiB of memory */
  MAX_NAME_BYTES = 32  /* no name in runtime_names is longer */
};

static const char *const runtime_names[] = {"__cuda_syscall_cnp", "cudaCDP2", "cudaLaunchDevice"};

static bool has_runtime_name(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < sizeof runtime_names / sizeof *runtime_names; i++)
    if (memmem(bytes, size, runtime_names[i], strlen(runtime_names[i])) != NULL) return true;
  return false;
}

static int fail_launches(rl_error *err) {
  return rl_fail_at(err, "/binary", "the binary launches kernels from the device, which is not supported");
}

/* --- fatbins ----------------------------------------------------------------------------------------------------------- */

RL_DEFINE_CLEANUP(free_decompressor, ZSTD_DCtx *, (void)ZSTD_freeDCtx, NULL)

static int fail_decompression(rl_error *err) {
  return rl_fail_at(err, "/binary", "an entry of the fatbin can't be decompressed, or its entries have more than %d MiB in total",
                    MAX_DECOMPRESSED_BYTES >> 20);
}

/* Searches the decompressed data, one zstd frame, in chunks. The end of each chunk is kept, because a name may begin in one chunk
 * and end in the next. Adds the number of decompressed bytes to *total, which bounds the time for all entries of a fatbin. */
static int search_compressed(const unsigned char *data, size_t size, size_t *total, rl_error *err) {
  unsigned char text[MAX_NAME_BYTES + CHUNK_BYTES];
  size_t kept = 0, hint = 1;
  ZSTD_inBuffer in = {data, size, 0};
  RL_CLEANUP(free_decompressor) ZSTD_DCtx *decompressor = ZSTD_createDCtx();
  if (decompressor == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a fatbin");
  (void)ZSTD_DCtx_setParameter(decompressor, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
  while (hint != 0) {
    ZSTD_outBuffer out = {text + kept, CHUNK_BYTES, 0};
    hint = ZSTD_decompressStream(decompressor, &out, &in);
    *total += out.pos;
    const bool is_stuck = hint != 0 && out.pos == 0 && in.pos == in.size;
    if (ZSTD_isError(hint) || is_stuck || *total > MAX_DECOMPRESSED_BYTES) return fail_decompression(err);
    if (has_runtime_name(text, kept + out.pos)) return fail_launches(err);
    const size_t used = kept + out.pos;
    kept = used < MAX_NAME_BYTES ? used : MAX_NAME_BYTES;
    memmove(text, text + used - kept, kept);
  }
  return in.pos == in.size ? 0 : fail_decompression(err); /* a second frame would not have been searched */
}

/* Searches the compressed entries; the others were searched with the whole binary. */
static int search_entries(const unsigned char *body, size_t size, rl_error *err) {
  rl_fatbin_entry entry;
  size_t total = 0, offset = 0;
  int rc;
  while ((rc = rl_fatbin_next(body, size, &offset, &entry, err)) > 0)
    if (entry.is_compressed && search_compressed(entry.data, entry.size, &total, err) < 0) return -1;
  return rc;
}

int rl_source_refuse_device_launches(const unsigned char *binary, size_t size, rl_error *err) {
  rl_fatbin_head head;
  if (has_runtime_name(binary, size)) return fail_launches(err);
  if (!rl_fatbin_read_head(binary, size, &head)) return 0;
  if (!rl_fatbin_is_complete(&head, size) || head.body_bytes < size - head.head_bytes)
    return rl_fail_at(err, "/binary", "the fatbin is malformed, or data follows it");
  return search_entries(binary + head.head_bytes, head.body_bytes, err);
}
