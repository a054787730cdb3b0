/* The folder of uploaded traces. The API writes an uploaded file while the body of POST /imports arrives. The file is on disk
 * before the import job is accepted. The thread that runs the importer (supervisor/device_runner.h) opens the file. A file is
 * deleted when its job has ended, when the client disconnects before the job is accepted, or at the next start of the daemon.
 * Thread-safe, but only one thread at a time may use an rl_upload. */
#ifndef RL_UPLOAD_SPOOL_H
#define RL_UPLOAD_SPOOL_H

#include "base/cleanup.h"
#include "model/imported_trace.h"
#include "store/store.h"

typedef struct rl_upload_spool rl_upload_spool;
typedef struct rl_upload rl_upload;

typedef struct rl_upload_limits {
  int64_t file_bytes, total_bytes; /* maximum size of one file, and of all files in the folder together */
} rl_upload_limits;

/* Opens the folder of uploads in the state folder, or creates it. Deletes the files that no unfinished job needs. */
int rl_upload_spool_open(const char *state_folder, const rl_upload_limits *limits, rl_store *store, rl_upload_spool **spool,
                         rl_error *err);
void rl_upload_spool_close(rl_upload_spool *spool);
/* Deletes the files that neither an upload in progress nor an unfinished job needs. A failure is only logged. */
void rl_upload_spool_delete_unneeded(rl_upload_spool *spool);
/* Opens the file of an import. params: parameters of the import's run as JSON (rl_imported_trace_params). Returns a descriptor,
 * which the caller closes; -1 with RL_INPUT or RL_ERRNO. */
int rl_upload_open_file(rl_upload_spool *spool, const char *params, rl_error *err);

/* Begins an upload without accessing the disk. */
int rl_upload_begin(rl_upload_spool *spool, rl_upload **upload, rl_error *err);
/* Appends data to the file, which the first call creates. Fails with RL_HTTP 413 if the file becomes larger than file_bytes; with
 * RL_HTTP 503 if the folder would exceed total_bytes; with RL_ERRNO, for example ENOSPC. */
int rl_upload_write(rl_upload *upload, const void *data, size_t size, rl_error *err);
/* Waits until the file is on disk (fsync), and sets the members upload, bytes and sha256 of *params; also format if it is
 * RL_TRACE_FORMAT_AUTO. Fails with RL_INPUT if the file has no supported format. */
int rl_upload_finish(rl_upload *upload, rl_imported_trace_params *params, rl_error *err);
/* Makes rl_upload_end keep the file. Called when the job that needs the file is in the database. */
void rl_upload_keep_file(rl_upload *upload);
/* Ends an upload. Deletes the file unless rl_upload_keep_file was called. Accepts NULL. */
void rl_upload_end(rl_upload *upload);

RL_DEFINE_CLEANUP(rl_upload_spool_cleanup, rl_upload_spool *, rl_upload_spool_close, NULL)
#endif
