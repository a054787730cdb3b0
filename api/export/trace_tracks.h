/* Assigns the rows of a trace to tracks of a viewer. Slices of one track must be disjoint or nested, because viewers can't
 * show other slices. So a stream or a thread has a group of tracks: a row that partly overlaps an earlier row is assigned to
 * another track of the group. The trace writers call this module. */
#ifndef RL_API_EXPORT_TRACE_TRACKS_H
#define RL_API_EXPORT_TRACE_TRACKS_H

#include <stdbool.h>

#include "model/records.h"

typedef enum rl_track_group_kind {
  RL_GROUP_STREAM,   /* kernels, copies, memsets and phases of a stream */
  RL_GROUP_THREAD,   /* calls, NVTX ranges and launches of a thread */
  RL_GROUP_OVERHEAD, /* the profiler's overhead in a thread */
  RL_GROUP_MEMORY    /* allocations of a process */
} rl_track_group_kind;

typedef struct rl_track_group {
  rl_track_group_kind kind;
  uint32_t owner; /* STREAM: 1 + device number; other kinds: process id. 0: unknown */
  uint32_t id;    /* STREAM: stream id; THREAD and OVERHEAD: thread id, 0: unknown */
} rl_track_group;

typedef struct rl_track {
  rl_track_group group;
  uint32_t number;       /* counted from 1 over the tracks of all groups, in the order of their first rows */
  uint32_t rank;         /* index in its group, counted from 0 */
  bool is_new;           /* the row that was assigned last is the track's first */
  int64_t *open_ends_ns; /* ends of the slices that are still open, the outermost first */
  size_t open_count, open_capacity;
  struct rl_track *next; /* next track of the group */
} rl_track;

enum { RL_TRACK_NAME_SIZE = 64 };
/* Writes "stream 7", or "stream 7, overlapping 1" for the second track of its group, into name[RL_TRACK_NAME_SIZE]. */
void rl_track_name(const rl_track *track, char *name);

typedef struct rl_tracks { /* initially zeroed */
  rl_track **slots;        /* hash table of the groups' first tracks, with linear probing */
  size_t slot_count, group_count;
  uint32_t track_count;
  /* Called when a slice has ended: by rl_tracks_assign for the slices that end at or before the start of the row, and by
   * rl_tracks_end_slices for the remaining ones. Slices of one track are passed in the order of their ends. May be NULL. */
  void (*ended)(void *context, const rl_track *track, int64_t end_ns);
  void *context;
} rl_tracks;

/* Assigns a row to *track. Rows must be passed in order of start. Fails with RL_HTTP 422 if there are too many groups. */
int rl_tracks_assign(rl_tracks *tracks, const rl_activity_row *row, const rl_track **track, rl_error *err);
void rl_tracks_end_slices(rl_tracks *tracks); /* ends all slices */
void rl_tracks_clear(rl_tracks *tracks);

#endif
