/* Implements trace_tracks.h. A hash table contains the groups; a group is a list of tracks. A track has a stack with the ends of
 * its open slices. */
#include "api/export/trace_tracks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { MIN_SLOTS = 64, MAX_GROUPS = 65536 };

static rl_track_group group_of(const rl_activity_row *row) {
  switch (row->kind) {
    case RL_ACTIVITY_KERNEL:
    case RL_ACTIVITY_MEMCPY:
    case RL_ACTIVITY_MEMSET: return (rl_track_group){RL_GROUP_STREAM, row->device, row->stream};
    case RL_ACTIVITY_OVERHEAD: return (rl_track_group){RL_GROUP_OVERHEAD, row->process, row->thread};
    case RL_ACTIVITY_MEMORY: return (rl_track_group){RL_GROUP_MEMORY, row->process, 0};
    case RL_ACTIVITY_PHASE: /* a phase of a launch on a device, or of a launch on the host */
      if (row->thread == 0) return (rl_track_group){RL_GROUP_STREAM, row->device, row->stream};
      break;
    default: break;
  }
  return (rl_track_group){RL_GROUP_THREAD, row->process, row->thread};
}

static bool same_group(const rl_track_group *a, const rl_track_group *b) {
  return a->kind == b->kind && a->owner == b->owner && a->id == b->id;
}

static size_t slot_of(const rl_tracks *tracks, const rl_track_group *group) {
  const uint64_t hash = (((uint64_t)group->owner << 34 ^ (uint64_t)group->kind << 32) ^ group->id) * UINT64_C(0x9e3779b97f4a7c15);
  size_t slot = (size_t)(hash >> 32) & (tracks->slot_count - 1);
  while (tracks->slots[slot] != NULL && !same_group(&tracks->slots[slot]->group, group))
    slot = (slot + 1) & (tracks->slot_count - 1);
  return slot;
}

void rl_track_name(const rl_track *track, char *name) {
  static const char *const kinds[] = {"stream", "thread", "overhead of thread", "allocations of process"};
  const uint32_t id = track->group.kind == RL_GROUP_MEMORY ? track->group.owner : track->group.id;
  char number[16] = "of unknown id", overlapping[24] = "";
  if (id != 0) snprintf(number, sizeof number, "%u", id);
  if (track->rank > 0) snprintf(overlapping, sizeof overlapping, ", overlapping %u", track->rank);
  snprintf(name, RL_TRACK_NAME_SIZE, "%s %s%s", kinds[track->group.kind], number, overlapping);
}

/* Enlarges the hash table if one more group would fill more than half of its slots. */
static int reserve_slot(rl_tracks *tracks, rl_error *err) {
  if (tracks->slot_count > 2 * tracks->group_count) return 0;
  if (tracks->group_count >= MAX_GROUPS)
    return rl_fail(err, RL_HTTP, 422, "The trace has more than %d streams and threads.", MAX_GROUPS);
  rl_tracks grown = {.slot_count = tracks->slot_count > 0 ? 2 * tracks->slot_count : MIN_SLOTS};
  grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
  if (grown.slots == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the tracks of a trace");
  for (size_t i = 0; i < tracks->slot_count; i++)
    if (tracks->slots[i] != NULL) grown.slots[slot_of(&grown, &tracks->slots[i]->group)] = tracks->slots[i];
  free(tracks->slots);
  tracks->slots = grown.slots;
  tracks->slot_count = grown.slot_count;
  return 0;
}

/* Appends a track to the list that ends at *link. */
static rl_track *add_track(rl_tracks *tracks, rl_track **link, const rl_track_group *group, uint32_t rank, rl_error *err) {
  rl_track *track = calloc(1, sizeof *track);
  if (track == NULL) {
    rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the tracks of a trace");
    return NULL;
  }
  *track = (rl_track){.group = *group, .number = ++tracks->track_count, .rank = rank, .is_new = true};
  *link = track;
  return track;
}

static void end_slices(rl_tracks *tracks, rl_track *track, int64_t time_ns) {
  for (; track->open_count > 0 && track->open_ends_ns[track->open_count - 1] <= time_ns; track->open_count--)
    if (tracks->ended != NULL) tracks->ended(tracks->context, track, track->open_ends_ns[track->open_count - 1]);
}

/* Returns whether the track can contain the row: no slice is open, or the row ends no later than the innermost open slice. */
static bool fits(const rl_track *track, const rl_activity_row *row) {
  return track->open_count == 0 || row->end_ns <= track->open_ends_ns[track->open_count - 1];
}

static int open_slice(rl_track *track, int64_t end_ns, rl_error *err) {
  if (rl_array_reserve(&track->open_ends_ns, track->open_count, &track->open_capacity, sizeof end_ns, err) < 0) return -1;
  track->open_ends_ns[track->open_count++] = end_ns;
  return 0;
}

int rl_tracks_assign(rl_tracks *tracks, const rl_activity_row *row, const rl_track **placed, rl_error *err) {
  const rl_track_group group = group_of(row);
  if (reserve_slot(tracks, err) < 0) return -1;
  rl_track **link = &tracks->slots[slot_of(tracks, &group)], *track;
  tracks->group_count += *link == NULL;
  uint32_t rank = 0;
  for (; (track = *link) != NULL; link = &track->next, rank++) {
    end_slices(tracks, track, row->start_ns);
    track->is_new = false;
    if (fits(track, row)) break;
  }
  if (track == NULL && (track = add_track(tracks, link, &group, rank, err)) == NULL) return -1;
  *placed = track;
  return open_slice(track, row->end_ns, err);
}

void rl_tracks_end_slices(rl_tracks *tracks) {
  for (size_t i = 0; i < tracks->slot_count; i++)
    for (rl_track *track = tracks->slots[i]; track != NULL; track = track->next) end_slices(tracks, track, INT64_MAX);
}

void rl_tracks_clear(rl_tracks *tracks) {
  for (size_t i = 0; i < tracks->slot_count; i++)
    for (rl_track *track = tracks->slots[i], *next; track != NULL; track = next) {
      next = track->next;
      free(track->open_ends_ns);
      free(track);
    }
  free(tracks->slots);
}
