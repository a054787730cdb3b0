/* The protocol between the daemon (supervisor/) and a worker: frames over two pipes, the worker's standard input and output. A
 * frame is a header and a payload. The header has 12 bytes, little-endian: "RLFW", version (1 byte), type (1 byte), zero (2
 * bytes), payload length (4 bytes). The payload is one of these:
 * - a JSON object, which a field table describes, or a text: at most 64 KiB
 * - an array of structs as in memory (METRIC, ROWS): at most 4 MiB
 * - posted code (SOURCE): at most 4 MiB
 * When the daemon receives an invalid frame, it ends the worker.
 *
 * From the daemon:
 * - REQUEST: rl_request, the pass to execute.
 * - SOURCE: posted code. The parameters of the next REQUEST contain its hash.
 * - CANCEL, empty: stop the current pass.
 * - RELEASE, empty, between requests: release the hardware counters that the profiler keeps for the next request.
 * - OPEN, empty: open the device. The daemon sends it only to a worker that was started with --wait, which sends HELLO
 *   afterwards.
 *
 * From the worker:
 * - HELLO: rl_hello, once, before all other frames.
 * - Answer to REQUEST: METADATA; then PROGRESS EPOCH SAMPLE MEASUREMENT KERNEL PHASE METRIC INSTRUCTION POINT NAME ROWS, each any
 *   number of times; last DONE (empty), UNAVAILABLE (rl_failure), FAILED (rl_failure) or CANCELLED (empty).
 * - LOG, at any time before that last frame: the log of the compiler of posted code or of an import, at most
 *   RL_WIRE_MAX_MESSAGE_BYTES in a pass.
 * - HEARTBEAT: rl_heartbeat, every 5 s between REQUEST and that last frame. After 30 s without any frame, or if idle_ms exceeds
 *   limit_ms, the daemon ends the worker.
 * - Answer to RELEASE: RELEASED, empty.
 *
 * A worker exits when its standard input is closed. */
#ifndef RL_WIRE_WIRE_H
#define RL_WIRE_WIRE_H

#include <stdint.h>

#include "base/fields.h"
#include "model/job.h"

enum {
  RL_WIRE_VERSION = 10,
  RL_WIRE_HEADER_BYTES = 12,
  RL_WIRE_MAX_MESSAGE_BYTES = 64 << 10, /* largest payload that is a JSON object or a text */
  RL_WIRE_MAX_BULK_BYTES = 4 << 20      /* largest payload that is an array of structs or posted code */
};

typedef enum rl_frame_type {
  RL_FRAME_HELLO = 1,
  RL_FRAME_REQUEST,
  RL_FRAME_CANCEL,
  RL_FRAME_METADATA,
  RL_FRAME_PROGRESS,
  RL_FRAME_EPOCH,
  RL_FRAME_MEASUREMENT,
  RL_FRAME_KERNEL,
  RL_FRAME_METRIC /* payload: an array of rl_kernel_metric */,
  RL_FRAME_NAME /* payload: the text of one name in the trace */,
  RL_FRAME_ROWS /* payload: an array of rl_activity_row */,
  RL_FRAME_DONE,
  RL_FRAME_UNAVAILABLE,
  RL_FRAME_FAILED,
  RL_FRAME_CANCELLED,
  RL_FRAME_SAMPLE,
  RL_FRAME_INSTRUCTION,
  RL_FRAME_POINT,
  RL_FRAME_SOURCE,
  RL_FRAME_LOG,
  RL_FRAME_PHASE,
  RL_FRAME_RELEASE,
  RL_FRAME_RELEASED,
  RL_FRAME_HEARTBEAT,
  RL_FRAME_OPEN,
  RL_FRAME_TYPE_COUNT
} rl_frame_type;

typedef struct rl_hello {
  int64_t protocol; /* RL_WIRE_VERSION */
  char program[48], commit[48];
  char device[16]; /* "cpu" "gpu0" */
  char role[16];   /* "unprofiled": the timing pass; "profiled": the other passes; "any": all passes (CPU) */
  bool usable;
  char reason[256];              /* reason why the device is not usable */
  char properties[4096];         /* JSON object of device properties (rl_device_properties) */
  char unsupported_engines[256]; /* names of the engines that this device can't run, one per line */
} rl_hello;

typedef struct rl_request {
  char workload[32], params[RL_PARAMS_SIZE];
  int pass;                      /* rl_pass */
  char profile[RL_PROFILE_SIZE]; /* JSON of an rl_profile_options; "": the default profile */
  /* Another worker of the daemon opened the device while this worker did. The used device memory then grew by both contexts, so
   * the worker cannot measure the size of its own context. */
  bool opening_overlapped;
} rl_request;

typedef struct rl_failure {
  char domain[16];
  int64_t code;
  char message[384];
  bool has_executed_source; /* the process has executed posted code (source/executed.h), in this pass or an earlier one */
} rl_failure;

typedef struct rl_heartbeat {
  char stage[16];   /* "open", or rl_progress.phase */
  int64_t idle_ms;  /* time since the worker's main thread last passed a check point: polled for a cancellation, reported progress
                       or wrote a frame */
  int64_t limit_ms; /* maximum idle_ms in this stage */
} rl_heartbeat;

extern const rl_field rl_hello_fields[], rl_request_fields[], rl_failure_fields[], rl_heartbeat_fields[];

typedef struct rl_frame {
  rl_frame_type type;
  uint32_t length;
  /* Valid until the next read. A NUL byte follows the payload. In NAME and LOG frames, rl_frame_read has replaced invalid
   * UTF-8. */
  const unsigned char *payload;
} rl_frame;

const char *rl_frame_name(rl_frame_type type); /* "EPOCH", for example */

typedef struct rl_frame_reader rl_frame_reader; /* owns a buffer, but not the descriptor */
/* Makes a reader of frames from a descriptor, which may be blocking or non-blocking. Returns NULL if memory is exhausted. */
rl_frame_reader *rl_frame_reader_new(int descriptor);
void rl_frame_reader_free(rl_frame_reader *reader);
/* Waits at most timeout_ms (-1: no limit) for the next frame and reads it. Fails with RL_WIRE_TIMEOUT if no complete frame has
 * arrived; the next call then continues with the bytes received so far. After any other error the reader is unusable. */
int rl_frame_read(rl_frame_reader *reader, int timeout_ms, rl_frame *frame, rl_error *err);
/* Decodes the frame at the start of data. Returns the frame's size in bytes; 0 if data ends inside the frame; -1 if the frame is
 * malformed. */
int64_t rl_frame_decode(const unsigned char *data, size_t size, rl_frame *frame, rl_error *err);

/* Writes one complete frame. SIGPIPE must be ignored, and no other thread may write to the descriptor at the same time. Fails
 * with RL_WIRE_TIMEOUT if the descriptor is non-blocking and the receiver does not read for 5 s. */
int rl_frame_write(int descriptor, rl_frame_type type, const void *payload, size_t length, rl_error *err);
/* Writes a frame whose payload is the struct `message` as JSON. */
int rl_frame_write_json(int descriptor, rl_frame_type type, const rl_field *table, const void *message, rl_error *err);

/* Appends the records of a frame to *records. Returns 1; 0 if frames of this type contain no records; -1 if the records are
 * malformed. The name of an activity row must have been received before the row. */
int rl_records_receive(const rl_frame *frame, rl_records *records, rl_error *err);
/* Sends all records of a pass as frames, in the order of rl_record_kind. */
int rl_records_send(int descriptor, const rl_records *records, rl_error *err);

#endif
