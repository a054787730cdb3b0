/* Implements fatbin.h. */
#include "source/fatbin.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

#include "base/cleanup.h"
#include "base/cubin.h"

enum { KIND_PTX = 1, KIND_CUBIN = 2, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, FLAG_ONLY_ARCHITECTURE = 0x100000 };
static const size_t MAX_ENTRY_BYTES = (size_t)64 << 20; /* decompressed */

typedef struct entry_head {
  uint16_t kind, version;
  uint32_t head_bytes;
  uint64_t data_bytes;       /* from the end of the head to the next entry */
  uint32_t compressed_bytes; /* of the data; 0: not compressed */
  uint32_t unused[2], architecture, unused_after[2];
  uint64_t flags;
} entry_head;

static int fail_malformed(rl_error *err) { return rl_fail_at(err, "/binary", "the fatbin is malformed"); }

static bool is_ptx_text(const unsigned char *data, size_t size) { return memmem(data, size, ".version", 8) != NULL; }

/* Checks that an entry that is not compressed begins like PTX or a cubin. */
static int check_plain(const rl_fatbin_entry *entry, rl_error *err) {
  const bool is_plain =
      entry->is_ptx ? is_ptx_text(entry->data, entry->size) : entry->size >= SELFMAG && memcmp(entry->data, ELFMAG, SELFMAG) == 0;
  return is_plain ? 0 : rl_fail_at(err, "/binary", "the fatbin has an entry whose compression is unknown");
}

int rl_fatbin_next(const unsigned char *body, size_t size, size_t *offset, rl_fatbin_entry *entry, rl_error *err) {
  entry_head head;
  const size_t rest = size - *offset;
  if (rest == 0) return 0;
  if (rest < sizeof head) return fail_malformed(err);
  memcpy(&head, body + *offset, sizeof head);
  if (head.head_bytes < sizeof head || head.head_bytes > rest || head.data_bytes > rest - head.head_bytes ||
      head.compressed_bytes > head.data_bytes)
    return fail_malformed(err);
  if (head.kind != KIND_PTX && head.kind != KIND_CUBIN)
    return rl_fail_at(err, "/binary", "the fatbin has an entry that is neither PTX nor a cubin");
  if ((head.flags & FLAG_LZ4) != 0)
    return rl_fail_at(err, "/binary", "the fatbin is compressed with LZ4: build it with --no-compress, or post the cubin");
  *entry = (rl_fatbin_entry){.is_ptx = head.kind == KIND_PTX,
                             .is_compressed = (head.flags & FLAG_ZSTD) != 0,
                             .architecture = (int)head.architecture,
                             .only_architecture = (head.flags & FLAG_ONLY_ARCHITECTURE) != 0,
                             .data = body + *offset + head.head_bytes,
                             .size = head.data_bytes};
  *offset += head.head_bytes + head.data_bytes;
  if (!entry->is_compressed) return check_plain(entry, err) < 0 ? -1 : 1;
  entry->size = head.compressed_bytes;
  return 1;
}

/* Returns whether the device executes the entry and prefers it to `best` (NULL: none). */
static bool is_better(const rl_fatbin_entry *entry, const rl_fatbin_entry *best, int architecture) {
  if (entry->architecture > architecture || (entry->only_architecture && entry->architecture != architecture)) return false;
  if (!entry->is_ptx && entry->architecture / 10 != architecture / 10) return false;
  if (best == NULL) return true;
  if (entry->is_ptx != best->is_ptx) return best->is_ptx;
  return entry->architecture > best->architecture ||
         (entry->architecture == best->architecture && entry->only_architecture && !best->only_architecture);
}

RL_DEFINE_CLEANUP(free_decompressor, ZSTD_DCtx *, (void)ZSTD_freeDCtx, NULL)

static int decompress(const rl_fatbin_entry *entry, unsigned char *data, size_t size, rl_error *err) {
  RL_CLEANUP(free_decompressor) ZSTD_DCtx *decompressor = ZSTD_createDCtx();
  if (decompressor == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a fatbin");
  if (ZSTD_decompressDCtx(decompressor, data, size, entry->data, entry->size) == size) return 0;
  return rl_fail_at(err, "/binary", "an entry of the fatbin can't be decompressed");
}

static int check_contents(const rl_fatbin_entry *entry, const unsigned char *data, size_t size, rl_error *err) {
  if (entry->is_ptx && !is_ptx_text(data, size)) return rl_fail_at(err, "/binary", "the PTX of the fatbin has no .version");
  if (!entry->is_ptx && !rl_cubin_is_complete(data, size))
    return rl_fail_at(err, "/binary", "the cubin of the fatbin is not a complete ELF image of GPU code");
  return 0;
}

/* Copies or decompresses the contents of the entry into new memory, and checks them. */
static int extract(const rl_fatbin_entry *entry, unsigned char **data, size_t *size, rl_error *err) {
  const unsigned long long bytes = entry->is_compressed ? ZSTD_getFrameContentSize(entry->data, entry->size) : entry->size;
  if (bytes > MAX_ENTRY_BYTES) /* so are the values with which zstd reports errors */
    return rl_fail_at(err, "/binary", "an entry of the fatbin can't be decompressed, or has more than %zu MiB",
                      MAX_ENTRY_BYTES >> 20);
  unsigned char *created = malloc(bytes + 1);
  if (created == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a fatbin");
  int rc = entry->is_compressed ? decompress(entry, created, bytes, err) : 0;
  if (!entry->is_compressed) memcpy(created, entry->data, bytes);
  if (rc == 0) rc = check_contents(entry, created, bytes, err);
  if (rc < 0) {
    free(created);
    return -1;
  }
  created[bytes] = '\0';
  *data = created;
  *size = bytes;
  return 0;
}

int rl_fatbin_select(const unsigned char *fatbin, size_t fatbin_size, int architecture, unsigned char **data, size_t *size,
                     rl_error *err) {
  rl_fatbin_head head;
  rl_fatbin_entry entry, best;
  bool found = false;
  size_t offset = 0;
  int rc;
  if (!rl_fatbin_read_head(fatbin, fatbin_size, &head) || !rl_fatbin_is_complete(&head, fatbin_size)) return fail_malformed(err);
  while ((rc = rl_fatbin_next(fatbin + head.head_bytes, head.body_bytes, &offset, &entry, err)) > 0) {
    if (!is_better(&entry, found ? &best : NULL, architecture)) continue;
    best = entry;
    found = true;
  }
  if (rc < 0) return -1;
  if (!found) return rl_fail_at(err, "/binary", "the fatbin has neither a cubin nor PTX for sm_%d", architecture);
  return extract(&best, data, size, err);
}
