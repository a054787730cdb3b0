/* Frames between the daemon and a worker, over a pipe. Header, 12 bytes little-endian: "RLFW", version (1 byte), type (1 byte),
 * zero (2 bytes), payload length (4 bytes). Control payloads are JSON objects with a field table each (at most 64 KiB); bulk
 * payloads (METRIC, ROWS) are packed structs (at most 4 MiB). A truncated, oversized or unknown frame ends the worker, not the
 * daemon.
 *
 * From the daemon:
 * - REQUEST: rl_request.
 * - SOURCE: posted code, to which the next REQUEST refers by its hash.
 * - CANCEL, empty.
 * - RELEASE, empty, between requests: free what is cached on the device.
 *
 * From the worker:
 * - HELLO: rl_hello; once, first.
 * - For a REQUEST: FACTS, then any of PROGRESS EPOCH SAMPLE MEASUREMENT KERNEL PHASE METRIC INSTRUCTION POINT NAME ROWS, then
 * exactly one of DONE (empty), UNAVAILABLE (rl_failure), FAILED (rl_failure), CANCELLED (empty).
 * - LOG, anywhere before that last frame: the compiler's log for posted code as text, at most RL_WIRE_CONTROL_MAX bytes in a
 * pass.
 * - RELEASED, empty: the answer to RELEASE.
 *
 * A worker exits when its standard input closes. */
#ifndef RL_WIRE_WIRE_H
#define RL_WIRE_WIRE_H

#include <stdint.h>

#include "base/fields.h"
#include "model/job.h"

enum { RL_WIRE_VERSION = 4, RL_WIRE_HEADER = 12, RL_WIRE_CONTROL_MAX = 64 << 10, RL_WIRE_BULK_MAX = 4 << 20 };

typedef enum rl_frame_type {
  RL_FRAME_HELLO = 1,
  RL_FRAME_REQUEST,
  RL_FRAME_CANCEL,
  RL_FRAME_FACTS,
  RL_FRAME_PROGRESS,
  RL_FRAME_EPOCH,
  RL_FRAME_MEASUREMENT,
  RL_FRAME_KERNEL,
  RL_FRAME_METRIC /* payload: rl_kernel_metric[] */,
  RL_FRAME_NAME /* payload: the bytes of one name */,
  RL_FRAME_ROWS /* payload: rl_activity_row[] */,
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
  RL_FRAME_TYPES
} rl_frame_type;

typedef struct rl_hello { /* also from a worker that can't serve: usable false, and the reason */
  int64_t protocol;       /* RL_WIRE_VERSION */
  char program[48], commit[48];
  char device[16]; /* "cpu" "gpu0" */
  char role[16];   /* "clean": timing; "profiled": the other passes; "any": all of them (CPU) */
  bool usable;
  char reason[256];
  char facts[4096];              /* JSON object */
  char unsupported_engines[256]; /* names, one a line, of engines that this device cannot run; "": unknown or none */
} rl_hello;

typedef struct rl_request {
  char workload[32], params[RL_PARAMS_SIZE];
  int pass;                      /* rl_pass */
  char profile[RL_PROFILE_SIZE]; /* JSON of an rl_profile; "": the default one */
} rl_request;

typedef struct rl_failure {
  char domain[16];
  int64_t code;
  char message[384];
} rl_failure;

extern const rl_field rl_hello_fields[], rl_request_fields[], rl_failure_fields[];

typedef struct rl_frame {
  rl_frame_type type;
  uint32_t length;
  const unsigned char *payload; /* valid until the next read; followed by a NUL byte. NAME and LOG: made valid UTF-8 */
} rl_frame;

const char *rl_frame_name(rl_frame_type type); /* "EPOCH" */

typedef struct rl_frame_reader rl_frame_reader;       /* owns its buffer, not the descriptor */
rl_frame_reader *rl_frame_reader_new(int descriptor); /* NULL when out of memory; blocking or not */
void rl_frame_reader_free(rl_frame_reader *reader);
/* Waits at most timeout_ms (-1: no limit) for a complete frame. Returns 0, or -1 with RL_WIRE and an rl_wire_code. After
 * RL_WIRE_TIMEOUT the next call continues with the bytes received so far; after any other error the stream is unusable. */
int rl_frame_read(rl_frame_reader *reader, int timeout_ms, rl_frame *frame, rl_error *err);
/* Decodes the frame at the front of data. Returns the bytes of the frame, 0 when data ends before it, -1 when it is malformed. */
int64_t rl_frame_decode(const unsigned char *data, size_t size, rl_frame *frame, rl_error *err);

/* Writes one complete frame, in spite of EINTR and partial writes. SIGPIPE must be ignored. One thread at a time for a
 * descriptor. On a non-blocking descriptor the whole write has 5 s: RL_WIRE_TIMEOUT. */
int rl_frame_write(int descriptor, rl_frame_type type, const void *payload, size_t length, rl_error *err);
/* Writes a frame whose payload is the JSON of a message. */
int rl_message_write(int descriptor, rl_frame_type type, const rl_field *table, const void *message, rl_error *err);

/* Appends a frame's records (FACTS EPOCH SAMPLE MEASUREMENT KERNEL PHASE METRIC INSTRUCTION POINT NAME ROWS). Returns 1, 0 for a
 * frame of another type, -1 for malformed records. Rows may refer only to names that came before. */
int rl_records_receive(const rl_frame *frame, rl_records *records, rl_error *err);
/* Sends all records of a pass as frames, in the order of the protocol. */
int rl_records_send(int descriptor, const rl_records *records, rl_error *err);

#endif
