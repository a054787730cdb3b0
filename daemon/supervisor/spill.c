/* Implements spill.h. In an empty spill file the header is zeros. A write first clears the header, then writes the frames, and
 * finally writes the header with the checksum. Therefore, after an interrupted write, the file is empty or its checksum is
 * wrong. */
#include "supervisor/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"

static const char spill_magic[8] = "RLSPILL";

/* The first bytes of the file; zeros if the file is empty. */
typedef struct spill_header {
  char magic[8];
  uint32_t version; /* RL_WIRE_VERSION of the daemon that wrote the file */
  int32_t pass;     /* rl_pass */
  int64_t job_id, run_id, pass_id, first_row_index;
  int64_t length; /* bytes of the file that the header and the frames occupy; the rest of the file is unused */
  char variant[32];
  char sha256[RL_SHA256_SIZE]; /* SHA-256 of the first `length` bytes of the file, computed while this member is zeros */
} spill_header;
enum { HEADER_BYTES = 4096 };
_Static_assert(sizeof(spill_header) <= HEADER_BYTES, "the header must fit into HEADER_BYTES, where the frames begin");

struct rl_spill {
  int descriptor;
  int64_t size;
};

static int fail_damaged(rl_error *err, const char *damage) {
  return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD, "the spill file is damaged: %s", damage);
}

/* --- open -------------------------------------------------------------------------------------------------------------- */

static int open_file(const char *path, int flags, rl_spill **spill, rl_error *err) {
  RL_CLEANUP(rl_spill_cleanup) rl_spill *opened = calloc(1, sizeof *opened);
  struct stat status;
  if (opened == NULL) return rl_fail_errno(err, "can't open %s", path);
  opened->descriptor = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (opened->descriptor < 0 || fstat(opened->descriptor, &status) < 0) return rl_fail_errno(err, "can't open %s", path);
  opened->size = status.st_size;
  *spill = rl_take_ownership(&opened);
  return 0;
}

static int allocate_blocks(rl_spill *spill, int64_t size, rl_error *err) {
  if (spill->size == size) return 0;
  int code = ftruncate(spill->descriptor, 0) < 0 ? errno : posix_fallocate(spill->descriptor, 0, size);
  if (code == 0 && fsync(spill->descriptor) < 0) code = errno;
  if (code != 0) {
    if (ftruncate(spill->descriptor, 0) < 0) code = errno;
    return rl_fail(err, RL_ERRNO, code, "can't allocate %lld bytes for a spill file: %s", (long long)size, strerror(code));
  }
  spill->size = size;
  return 0;
}

int rl_spill_open(const char *folder, const char *device, int64_t size, rl_spill **spill, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *path = NULL;
  RL_CLEANUP(rl_spill_cleanup) rl_spill *opened = NULL;
  if (asprintf(&path, "%s/" RL_SPILL_PREFIX "%s", folder, device) < 0) return rl_fail_errno(err, "can't open a spill file");
  if (open_file(path, O_CREAT, &opened, err) < 0 || allocate_blocks(opened, size, err) < 0) return -1;
  *spill = rl_take_ownership(&opened);
  return 0;
}

int rl_spill_open_existing(const char *path, rl_spill **spill, rl_error *err) { return open_file(path, 0, spill, err); }

void rl_spill_close(rl_spill *spill) {
  if (spill == NULL) return;
  if (spill->descriptor >= 0) close(spill->descriptor);
  free(spill);
}

/* --- write ------------------------------------------------------------------------------------------------------------- */

int rl_spill_clear(rl_spill *spill, rl_error *err) {
  static const char zeros[HEADER_BYTES];
  if (spill->size < HEADER_BYTES) return 0;
  if (pwrite(spill->descriptor, zeros, sizeof zeros, 0) != sizeof zeros || fdatasync(spill->descriptor) < 0)
    return rl_fail_errno(err, "can't empty a spill file");
  return 0;
}

static int write_frames(const rl_spill *spill, const rl_spilled_pass *pass, rl_error *err) {
  int file = spill->descriptor;
  if (lseek(file, HEADER_BYTES, SEEK_SET) < 0) return rl_fail_errno(err, "can't write a spill file");
  if (rl_records_send(file, &pass->records, err) < 0) return -1;
  if (pass->log != NULL && rl_frame_write(file, RL_FRAME_LOG, pass->log, strlen(pass->log), err) < 0) return -1;
  if (!pass->is_unavailable) return rl_frame_write(file, RL_FRAME_DONE, NULL, 0, err);
  return rl_frame_write_json(file, RL_FRAME_UNAVAILABLE, rl_failure_fields, &pass->failure, err);
}

/* Computes the checksum of the first `length` bytes; the stored checksum counts as zeros. */
static int compute_checksum(const rl_spill *spill, int64_t length, char sha256[RL_SHA256_SIZE], rl_error *err) {
  char *content = mmap(NULL, (size_t)length, PROT_READ | PROT_WRITE, MAP_PRIVATE, spill->descriptor, 0);
  if (content == MAP_FAILED) return rl_fail_errno(err, "can't read a spill file");
  memset(content + offsetof(spill_header, sha256), 0, sizeof((spill_header *)0)->sha256);
  rl_sha256(content, (size_t)length, sha256);
  munmap(content, (size_t)length);
  return 0;
}

static int write_header(const rl_spill *spill, spill_header *header, rl_error *err) {
  if (pwrite(spill->descriptor, header, sizeof *header, 0) != sizeof *header)
    return rl_fail_errno(err, "can't write a spill file");
  return 0;
}

static int write_frames_and_header(const rl_spill *spill, const rl_spilled_pass *pass, rl_error *err) {
  spill_header header = {.version = RL_WIRE_VERSION,
                         .pass = (int32_t)pass->claim.pass,
                         .job_id = pass->claim.job_id,
                         .run_id = pass->claim.run_id,
                         .pass_id = pass->claim.pass_id,
                         .first_row_index = pass->first_row_index};
  memcpy(header.magic, spill_magic, sizeof header.magic);
  snprintf(header.variant, sizeof header.variant, "%s", pass->claim.run.variant);
  if (write_frames(spill, pass, err) < 0) return -1;
  header.length = lseek(spill->descriptor, 0, SEEK_CUR);
  if (header.length > spill->size)
    return rl_fail(err, RL_WIRE, RL_WIRE_MEMORY_LIMIT, "the results need %lld bytes, more than the spill file's %lld",
                   (long long)header.length, (long long)spill->size);
  if (write_header(spill, &header, err) < 0 || compute_checksum(spill, header.length, header.sha256, err) < 0 ||
      write_header(spill, &header, err) < 0)
    return -1;
  return fdatasync(spill->descriptor) < 0 ? rl_fail_errno(err, "can't write a spill file") : 0;
}

int rl_spill_write(rl_spill *spill, const rl_spilled_pass *pass, rl_error *err) {
  if (rl_spill_clear(spill, err) < 0) return -1;
  if (write_frames_and_header(spill, pass, err) >= 0) return 0;
  /* A write beyond the allocated size may have extended the file, so truncate it to its size. *err keeps the error of the
   * write. */
  if (ftruncate(spill->descriptor, spill->size) == 0) rl_spill_clear(spill, NULL);
  return -1;
}

/* --- read -------------------------------------------------------------------------------------------------------------- */

/* Returns 1 and fills *header if the checksum is right; returns 0 if the file is empty. Fails with RL_WIRE if the file is
 * damaged. */
static int read_header(const rl_spill *spill, spill_header *header, rl_error *err) {
  static const spill_header empty;
  char sha256[RL_SHA256_SIZE];
  if (spill->size < HEADER_BYTES) return 0;
  if (pread(spill->descriptor, header, sizeof *header, 0) != sizeof *header) return rl_fail_errno(err, "can't read a spill file");
  if (memcmp(header, &empty, sizeof *header) == 0) return 0;
  if (memcmp(header->magic, spill_magic, sizeof spill_magic) != 0) return fail_damaged(err, "it has another format");
  if (header->version != RL_WIRE_VERSION) return fail_damaged(err, "another version of rooflined has written it");
  if (header->length < HEADER_BYTES || header->length > spill->size || header->pass < 0 || header->pass >= RL_PASS_COUNT)
    return fail_damaged(err, "its header is not valid");
  if (compute_checksum(spill, header->length, sha256, err) < 0) return -1;
  if (memcmp(sha256, header->sha256, sizeof sha256) != 0) return fail_damaged(err, "its checksum is wrong");
  return 1;
}

static int copy_log(rl_spilled_pass *pass, const rl_frame *frame, rl_error *err) {
  free(pass->log);
  pass->log = strdup((const char *)frame->payload);
  return pass->log != NULL ? 0 : rl_fail_errno(err, "can't read a spill file");
}

static int read_frames(rl_spill *spill, rl_spilled_pass *pass, rl_error *err) {
  if (lseek(spill->descriptor, HEADER_BYTES, SEEK_SET) < 0) return rl_fail_errno(err, "can't read a spill file");
  rl_frame_reader *reader = rl_frame_reader_new(spill->descriptor);
  if (reader == NULL) return rl_fail_errno(err, "can't read a spill file");
  rl_frame frame = {0};
  int rc = 0;
  while (rc == 0) {
    if (rl_frame_read(reader, -1, &frame, err) < 0) rc = -1;
    else if (frame.type == RL_FRAME_DONE || frame.type == RL_FRAME_UNAVAILABLE) break;
    else if (frame.type == RL_FRAME_LOG) rc = copy_log(pass, &frame, err);
    else if (rl_records_receive(&frame, &pass->records, err) <= 0) rc = -1;
  }
  pass->is_unavailable = frame.type == RL_FRAME_UNAVAILABLE;
  if (rc == 0 && pass->is_unavailable)
    rc = rl_fields_parse(rl_failure_fields, (const char *)frame.payload, frame.length, &pass->failure, sizeof pass->failure, err);
  rl_frame_reader_free(reader);
  return rc;
}

void rl_spilled_pass_clear(rl_spilled_pass *pass) {
  rl_records_clear(&pass->records);
  free(pass->log);
  pass->log = NULL;
}

int rl_spilled_pass_remove_stored_rows(rl_spilled_pass *pass, int64_t stored_rows, rl_error *err) {
  int64_t already_stored = stored_rows - pass->first_row_index;
  if (already_stored < 0 || already_stored > (int64_t)pass->records.row_count)
    return rl_fail(err, RL_WIRE, RL_WIRE_MALFORMED_PAYLOAD,
                   "the spill file has %zu activity rows from index %lld, which do not continue the %lld rows in the database",
                   pass->records.row_count, (long long)pass->first_row_index, (long long)stored_rows);
  rl_records_drop_rows(&pass->records, (size_t)already_stored);
  pass->first_row_index = stored_rows;
  return 0;
}

int rl_spill_read(rl_spill *spill, rl_spilled_pass *pass, rl_error *err) {
  spill_header header;
  int found = read_header(spill, &header, err);
  if (found <= 0) return found;
  rl_spilled_pass loaded = {
      .claim = {.job_id = header.job_id, .run_id = header.run_id, .pass_id = header.pass_id, .pass = (rl_pass)header.pass},
      .first_row_index = header.first_row_index};
  snprintf(loaded.claim.run.variant, sizeof loaded.claim.run.variant, "%.*s", (int)sizeof header.variant, header.variant);
  if (read_frames(spill, &loaded, err) < 0) {
    rl_spilled_pass_clear(&loaded);
    return -1;
  }
  *pass = loaded;
  return 1;
}
