/* Implements spool.h. One thread at a time, with the mutex locked, looks up which files are needed and deletes the others. It
 * first looks at the uploads in progress, then at the unfinished jobs. An upload stays in progress until its job is in the
 * database, so that its file is always found to be needed. The mutex is never locked while file contents are written. */
#include "upload/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json.h"
#include "base/json_members.h"
#include "base/log.h"

static const char FOLDER[] = "uploads";
/* Number of bytes that are written between two calls of fdatasync, so that no call takes long. */
static const int64_t SYNC_BYTES = 32 << 20;

struct rl_upload_spool {
  int folder_fd;
  rl_upload_limits limits;
  rl_store *store;
  pthread_mutex_t mutex;          /* guards the members below */
  LIST_HEAD(, rl_upload) uploads; /* in progress */
  int64_t used_bytes;             /* total size of the files in the folder */
};

struct rl_upload {
  rl_upload_spool *spool;
  LIST_ENTRY(rl_upload) link;
  char id[RL_UPLOAD_ID_SIZE];       /* the file's name */
  int descriptor;                   /* descriptor of the file; -1: not yet created */
  int64_t written_bytes;            /* size of the file, including a write in progress */
  int64_t synced_bytes;             /* the part of written_bytes that fdatasync has written to the disk */
  bool is_kept;                     /* the file stays when the upload ends, because a job needs it */
  char start[RL_TRACE_MAGIC_BYTES]; /* the first bytes of the file */
  crypto_hash_sha256_state hash;
};

/* --- the folder -------------------------------------------------------------------------------------------------------- */

typedef struct name_list {
  char (*items)[RL_UPLOAD_ID_SIZE];
  size_t count, capacity;
} name_list;

static void free_names(name_list *list) { free(list->items); }

static int add_name(name_list *list, const char *name, rl_error *err) {
  if (rl_array_reserve(&list->items, list->count, &list->capacity, sizeof *list->items, err) < 0) return -1;
  snprintf(list->items[list->count++], RL_UPLOAD_ID_SIZE, "%s", name);
  return 0;
}

static bool has_name(const name_list *list, const char *name) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i], name) == 0) return true;
  return false;
}

static int add_names_of_jobs(rl_upload_spool *spool, name_list *needed, rl_error *err) {
  RL_CLEANUP(rl_cursor_cleanup) rl_cursor *cursor = NULL;
  const char *text;
  if (rl_store_query(spool->store, RL_QUERY_UPLOADS, NULL, 0, &cursor, err) < 0 || rl_cursor_next(cursor, &text, err) < 0)
    return -1;
  RL_CLEANUP(rl_json_cleanup) cJSON *names = rl_json_parse(text, strlen(text), err);
  const cJSON *name;
  if (names == NULL) return -1;
  cJSON_ArrayForEach (name, names)
    if (cJSON_IsString(name) && add_name(needed, name->valuestring, err) < 0) return -1;
  return 0;
}

/* Lists the files that uploads in progress or unfinished jobs need. */
static int list_needed(rl_upload_spool *spool, name_list *needed, rl_error *err) {
  const rl_upload *upload;
  LIST_FOREACH (upload, &spool->uploads, link)
    if (add_name(needed, upload->id, err) < 0) return -1;
  return add_names_of_jobs(spool, needed, err);
}

/* Deletes the file unless it is needed. Returns the size of the file if it stays, else 0. */
static int64_t delete_unless_needed(const rl_upload_spool *spool, const char *name, const name_list *needed) {
  struct stat status;
  if (!has_name(needed, name)) return unlinkat(spool->folder_fd, name, 0), 0;
  return fstatat(spool->folder_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_size : 0;
}

RL_DEFINE_CLEANUP(close_folder, DIR *, closedir, NULL)

static int delete_unneeded_locked(rl_upload_spool *spool, rl_error *err) {
  RL_CLEANUP(free_names) name_list needed = {0};
  if (list_needed(spool, &needed, err) < 0) return -1;
  int descriptor = openat(spool->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  RL_CLEANUP(close_folder) DIR *folder = descriptor >= 0 ? fdopendir(descriptor) : NULL;
  if (folder == NULL) return rl_fail_errno(err, "can't list the uploads");
  int64_t used_bytes = 0;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.') used_bytes += delete_unless_needed(spool, entry->d_name, &needed);
  spool->used_bytes = used_bytes;
  return 0;
}

static int delete_unneeded(rl_upload_spool *spool, rl_error *err) {
  pthread_mutex_lock(&spool->mutex);
  int rc = delete_unneeded_locked(spool, err);
  pthread_mutex_unlock(&spool->mutex);
  return rc;
}

void rl_upload_spool_delete_unneeded(rl_upload_spool *spool) {
  rl_error err;
  if (delete_unneeded(spool, &err) < 0) rl_log(RL_LOG_WARNING, "can't delete uploads of finished jobs: %s", err.message);
}

int rl_upload_spool_open(const char *state_folder, const rl_upload_limits *limits, rl_store *store, rl_upload_spool **spool,
                         rl_error *err) {
  RL_CLEANUP(rl_free_text) char *path = NULL;
  RL_CLEANUP(rl_upload_spool_cleanup) rl_upload_spool *opened = calloc(1, sizeof *opened);
  if (opened == NULL || asprintf(&path, "%s/%s", state_folder, FOLDER) < 0)
    return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for uploads");
  pthread_mutex_init(&opened->mutex, NULL);
  LIST_INIT(&opened->uploads);
  opened->limits = *limits;
  opened->store = store;
  opened->folder_fd = -1;
  if (mkdir(path, 0700) < 0 && errno != EEXIST) return rl_fail_errno(err, "can't create %s", path);
  opened->folder_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (opened->folder_fd < 0) return rl_fail_errno(err, "can't open %s", path);
  if (delete_unneeded(opened, err) < 0) return -1;
  *spool = rl_take_ownership(&opened);
  return 0;
}

void rl_upload_spool_close(rl_upload_spool *spool) {
  if (spool == NULL) return;
  pthread_mutex_destroy(&spool->mutex);
  if (spool->folder_fd >= 0) close(spool->folder_fd);
  free(spool);
}

int rl_upload_open_file(rl_upload_spool *spool, const char *params, rl_error *err) {
  rl_imported_trace_params decoded = {0};
  if (rl_fields_parse(rl_imported_trace_fields, params, strlen(params), &decoded, sizeof decoded, err) < 0) return -1;
  if (decoded.upload[0] == '\0' || strchr(decoded.upload, '/') != NULL || decoded.upload[0] == '.')
    return rl_fail(err, RL_INPUT, 0, "the job has no uploaded file");
  int file = openat(spool->folder_fd, decoded.upload, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  return file >= 0 ? file : rl_fail_errno(err, "the uploaded trace can't be opened");
}

/* --- uploads ----------------------------------------------------------------------------------------------------------- */

static void make_id(char id[RL_UPLOAD_ID_SIZE]) {
  unsigned char bytes[(RL_UPLOAD_ID_SIZE - 1) / 2];
  randombytes_buf(bytes, sizeof bytes);
  sodium_bin2hex(id, RL_UPLOAD_ID_SIZE, bytes, sizeof bytes);
}

static void register_upload(rl_upload_spool *spool, rl_upload *upload) {
  pthread_mutex_lock(&spool->mutex);
  LIST_INSERT_HEAD(&spool->uploads, upload, link);
  pthread_mutex_unlock(&spool->mutex);
}

static void unregister_upload(rl_upload *upload) {
  rl_upload_spool *spool = upload->spool;
  pthread_mutex_lock(&spool->mutex);
  LIST_REMOVE(upload, link);
  if (!upload->is_kept) spool->used_bytes -= upload->written_bytes;
  pthread_mutex_unlock(&spool->mutex);
}

int rl_upload_begin(rl_upload_spool *spool, rl_upload **upload, rl_error *err) {
  rl_upload *new_upload = calloc(1, sizeof *new_upload);
  if (new_upload == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for an upload");
  new_upload->spool = spool;
  new_upload->descriptor = -1;
  make_id(new_upload->id);
  crypto_hash_sha256_init(&new_upload->hash);
  register_upload(spool, new_upload);
  *upload = new_upload;
  return 0;
}

static int create_file(rl_upload *upload, rl_error *err) {
  if (upload->descriptor >= 0) return 0;
  if (delete_unneeded(upload->spool, err) < 0) return -1;
  upload->descriptor = openat(upload->spool->folder_fd, upload->id, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  return upload->descriptor >= 0 ? 0 : rl_fail_errno(err, "can't create a file for an upload");
}

/* Counts the bytes towards the limits of the file and of the folder. Fails if a limit would be exceeded. */
static int reserve_bytes(rl_upload *upload, size_t size, rl_error *err) {
  rl_upload_spool *spool = upload->spool;
  if (upload->written_bytes + (int64_t)size > spool->limits.file_bytes)
    return rl_fail(err, RL_HTTP, 413, "The trace is larger than the limit, %lld bytes (import_limit_bytes).",
                   (long long)spool->limits.file_bytes);
  pthread_mutex_lock(&spool->mutex);
  bool fits = spool->used_bytes + (int64_t)size <= spool->limits.total_bytes;
  if (fits) spool->used_bytes += (int64_t)size;
  pthread_mutex_unlock(&spool->mutex);
  if (!fits)
    return rl_fail(err, RL_HTTP, 503,
                   "The traces that wait for their import fill %lld bytes (import_spool_bytes); try again later.",
                   (long long)spool->limits.total_bytes);
  upload->written_bytes += (int64_t)size;
  return 0;
}

static int write_all(int descriptor, const char *data, size_t size, rl_error *err) {
  while (size > 0) {
    ssize_t written = write(descriptor, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return rl_fail_errno(err, "can't write an upload");
    data += written;
    size -= (size_t)written;
  }
  return 0;
}

static int sync_file(rl_upload *upload, rl_error *err) {
  upload->synced_bytes = upload->written_bytes;
  return fdatasync(upload->descriptor) < 0 ? rl_fail_errno(err, "can't write an upload") : 0;
}

int rl_upload_write(rl_upload *upload, const void *data, size_t size, rl_error *err) {
  const int64_t offset = upload->written_bytes;
  if (create_file(upload, err) < 0 || reserve_bytes(upload, size, err) < 0) return -1;
  if (offset < RL_TRACE_MAGIC_BYTES) {
    size_t left = (size_t)(RL_TRACE_MAGIC_BYTES - offset);
    memcpy(upload->start + offset, data, size < left ? size : left);
  }
  crypto_hash_sha256_update(&upload->hash, data, size);
  if (write_all(upload->descriptor, data, size, err) < 0) return -1;
  return upload->written_bytes - upload->synced_bytes >= SYNC_BYTES ? sync_file(upload, err) : 0;
}

int rl_upload_finish(rl_upload *upload, rl_imported_trace_params *params, rl_error *err) {
  unsigned char digest[crypto_hash_sha256_BYTES];
  size_t start_bytes = upload->written_bytes < RL_TRACE_MAGIC_BYTES ? (size_t)upload->written_bytes : RL_TRACE_MAGIC_BYTES;
  rl_trace_format format = (rl_trace_format)params->format;
  if (rl_trace_format_detect(upload->start, start_bytes, &format, err) < 0) return -1;
  if (sync_file(upload, err) < 0) return -1;
  RL_CLEANUP(rl_close_descriptor) int folder = openat(upload->spool->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || fsync(folder) < 0) return rl_fail_errno(err, "can't write an upload");
  crypto_hash_sha256_final(&upload->hash, digest);
  params->format = (int)format;
  params->bytes = upload->written_bytes;
  sodium_bin2hex(params->sha256, sizeof params->sha256, digest, sizeof digest);
  memcpy(params->upload, upload->id, sizeof params->upload);
  return 0;
}

void rl_upload_keep_file(rl_upload *upload) { upload->is_kept = true; }

void rl_upload_end(rl_upload *upload) {
  if (upload == NULL) return;
  if (upload->descriptor >= 0) {
    close(upload->descriptor);
    if (!upload->is_kept) unlinkat(upload->spool->folder_fd, upload->id, 0);
  }
  unregister_upload(upload);
  if (upload->is_kept) rl_upload_spool_delete_unneeded(upload->spool); /* the job may already have ended */
  free(upload);
}
