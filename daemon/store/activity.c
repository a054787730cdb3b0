/* Stores the activity rows of a pass in slices, one transaction for each. Values that several rows share are stored once, as an
 * entry of the table activity_dictionary. The appender keeps the newest entries in memory, so that rows with equal values refer
 * to the same entry. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/activity_intervals.h"
#include "store/store_internal.h"

/* When MAX_ENTRIES entries are in memory, all of them are dropped from memory. If their values occur again later, they are stored
 * a second time. */
enum { MAX_ENTRIES = 32768, MIN_SLOTS = 1 << 10, SLOTS_PER_ENTRY = 3 };

/* The values of an entry, a row of activity_dictionary. */
typedef struct shared_values {
  uint64_t bytes;
  uint32_t name, stream, graph_node, grid[3], block[3], registers, static_shared_bytes, dynamic_shared_bytes;
  uint32_t process, thread, context;
  uint16_t device;
  uint8_t source_memory, destination_memory;
  uint32_t call_stream, event;
  uint64_t unknown; /* 64 bits, so that there is no padding */
} shared_values;
enum { SHARED_WORDS = sizeof(shared_values) / sizeof(uint64_t) };
_Static_assert(sizeof(shared_values) == 88, "hash_values and memcmp need values without padding");

struct rl_activity_appender {
  bool has_stored_counts; /* the numbers of stored rows, names and entries were read from the database */
  int64_t stored_rows, stored_names, stored_entries;
  int64_t first_entry; /* id (column entry) of entries[0] in the database */
  /* number of entries in memory; the first (stored_entries - first_entry) of them are also in the database */
  int64_t entry_count;
  shared_values *entries;
  uint32_t *slots;   /* hash table with linear probing: 1 + index of an entry; 0: free */
  size_t slot_count; /* a power of two, at least SLOTS_PER_ENTRY times the entries */
  int64_t entry_of_row[RL_SLICE_ROWS];
};

rl_activity_appender *rl_activity_appender_new(void) { return calloc(1, sizeof(rl_activity_appender)); }

int64_t rl_activity_appender_row_count(const rl_activity_appender *appender) {
  return appender != NULL ? appender->stored_rows : 0;
}

void rl_activity_appender_free(rl_activity_appender *appender) {
  if (appender == NULL) return;
  free(appender->entries);
  free(appender->slots);
  free(appender);
}

/* --- the dictionary ---------------------------------------------------------------------------------------------------- */

static shared_values values_of(const rl_activity_row *row) {
  return (shared_values){.bytes = row->bytes,
                         .name = row->name,
                         .stream = row->stream,
                         .graph_node = row->graph_node,
                         .grid = {row->grid[0], row->grid[1], row->grid[2]},
                         .block = {row->block[0], row->block[1], row->block[2]},
                         .registers = row->registers,
                         .static_shared_bytes = row->static_shared_bytes,
                         .dynamic_shared_bytes = row->dynamic_shared_bytes,
                         .process = row->process,
                         .thread = row->thread,
                         .context = row->context,
                         .device = row->device,
                         .source_memory = row->source_memory,
                         .destination_memory = row->destination_memory,
                         .call_stream = row->call_stream,
                         .event = row->event,
                         .unknown = row->unknown};
}

/* Returns a hash of the values. Folds the high half of each product into the low half, because the low bits of a product depend
 * only on the low bits of its factors. */
static uint64_t hash_values(const shared_values *values) {
  uint64_t words[SHARED_WORDS], hash = 0;
  memcpy(words, values, sizeof words);
  for (int i = 0; i < SHARED_WORDS; i++) {
    hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 32;
  }
  return hash;
}

/* Returns the slot of the entry with these values; if there is none, the free slot for such an entry. */
static size_t find_slot(const rl_activity_appender *appender, const shared_values *values) {
  const size_t mask = appender->slot_count - 1;
  size_t slot = hash_values(values) & mask;
  while (appender->slots[slot] != 0 && memcmp(&appender->entries[appender->slots[slot] - 1], values, sizeof *values) != 0)
    slot = (slot + 1) & mask;
  return slot;
}

/* Enlarges the arrays so that added_count more entries fit. The table starts with only MIN_SLOTS, because clearing megabytes
 * takes longer than storing a short pass. */
static int reserve_entries(rl_activity_appender *appender, size_t added_count, rl_error *err) {
  const size_t needed = (size_t)appender->entry_count + added_count;
  size_t slot_count = appender->slot_count != 0 ? appender->slot_count : MIN_SLOTS;
  if (needed * SLOTS_PER_ENTRY <= appender->slot_count) return 0;
  while (slot_count < needed * SLOTS_PER_ENTRY) slot_count *= 2;
  shared_values *entries = realloc(appender->entries, slot_count / SLOTS_PER_ENTRY * sizeof *entries);
  if (entries != NULL) appender->entries = entries;
  uint32_t *slots = entries != NULL ? calloc(slot_count, sizeof *slots) : NULL;
  if (slots == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for activity rows");
  free(appender->slots);
  appender->slots = slots;
  appender->slot_count = slot_count;
  for (int64_t i = 0; i < appender->entry_count; i++) slots[find_slot(appender, &entries[i])] = (uint32_t)i + 1;
  return 0;
}

/* Returns the id of the entry with these values; adds the entry in memory if there is none. */
static int64_t find_or_add_entry(rl_activity_appender *appender, const shared_values *values) {
  const size_t slot = find_slot(appender, values);
  if (appender->slots[slot] != 0) return appender->first_entry + appender->slots[slot] - 1;
  appender->entries[appender->entry_count++] = *values;
  appender->slots[slot] = (uint32_t)appender->entry_count;
  return appender->first_entry + appender->entry_count - 1;
}

/* Sets entry_of_row for `count` rows, at most RL_SLICE_ROWS. If the transaction fails and is repeated, the rows get the same
 * entries. */
static int find_entries(rl_activity_appender *appender, const rl_activity_row *rows, size_t count, rl_error *err) {
  bool all_stored = appender->stored_entries == appender->first_entry + appender->entry_count;
  if (appender->entry_count >= MAX_ENTRIES && all_stored) {
    appender->first_entry = appender->stored_entries;
    appender->entry_count = 0;
    memset(appender->slots, 0, appender->slot_count * sizeof *appender->slots);
  }
  if (reserve_entries(appender, count, err) < 0) return -1;
  for (size_t i = 0; i < count; i++) {
    shared_values values = values_of(&rows[i]);
    appender->entry_of_row[i] = find_or_add_entry(appender, &values);
  }
  return 0;
}

/* --- groups ------------------------------------------------------------------------------------------------------------ */

enum {
  DURATION_CLASS_COUNT = 28,
  MAX_KIND_COUNT = 16,
  MAX_GROUPS_PER_LEVEL = 512,
  GROUP_COUNT = DURATION_CLASS_COUNT * MAX_KIND_COUNT
};
_Static_assert((int)RL_ACTIVITY_KIND_COUNT < (int)MAX_KIND_COUNT, "a group's number holds the kind in its low bits");
_Static_assert((int)GROUP_COUNT <= (int)MAX_GROUPS_PER_LEVEL,
               "the group numbers of one level must not overlap those of the next level");

/* Returns the row's group within its level (table activity_groups), which is determined by the row's kind and the class of its
 * duration. Class n contains durations below 1,024 ns × 4^n that are in no lower class. An unknown kind becomes
 * RL_ACTIVITY_KIND_COUNT, which the foreign key of activity_groups refuses. */
static uint32_t group_within_level(const rl_activity_row *row) {
  uint32_t kind = row->kind < RL_ACTIVITY_KIND_COUNT ? row->kind : RL_ACTIVITY_KIND_COUNT;
  return MAX_KIND_COUNT * (uint32_t)rl_activity_lowest_level_above(row->end_ns - row->start_ns) + kind;
}

typedef struct row_slice {
  const rl_activity_row *rows;
  size_t count; /* number of rows, at most RL_SLICE_ROWS */
  int64_t row_counts[GROUP_COUNT], longest_ns[GROUP_COUNT];
  uint16_t rows_by_group[RL_SLICE_ROWS]; /* indices of the rows, sorted by group; within a group in the order of the rows */
  int first_level;                       /* the lowest level with intervals to which the rows were added; RL_NO_LEVEL: none */
} row_slice;
_Static_assert((int)RL_SLICE_ROWS <= UINT16_MAX, "rows_by_group holds indices of rows");

/* Fills the slice, except first_level. */
static void group_rows(row_slice *slice, const rl_activity_row *rows, size_t count) {
  size_t next[GROUP_COUNT + 1] = {0};
  memset(slice, 0, sizeof *slice);
  slice->rows = rows;
  slice->count = count;
  for (size_t i = 0; i < count; i++) {
    const int64_t duration_ns = rows[i].end_ns - rows[i].start_ns;
    const uint32_t group = group_within_level(&rows[i]);
    if (duration_ns > slice->longest_ns[group]) slice->longest_ns[group] = duration_ns;
    slice->row_counts[group]++;
  }
  for (int group = 0; group < GROUP_COUNT; group++) next[group + 1] = next[group] + (size_t)slice->row_counts[group];
  for (size_t i = 0; i < count; i++) slice->rows_by_group[next[group_within_level(&rows[i])]++] = (uint16_t)i;
}

/* Returns the number of the first group of the slice's level. A stored group is this number plus group_within_level. */
static int64_t first_group_of(const row_slice *slice) {
  return (int64_t)MAX_GROUPS_PER_LEVEL * (slice->first_level - RL_NO_LEVEL);
}

/* --- insertion --------------------------------------------------------------------------------------------------------- */

#define RUN_POSITIONAL(DB, STATEMENT, ERR, ...)                           \
  rl_db_run_positional((DB), (STATEMENT), (const int64_t[]){__VA_ARGS__}, \
                       (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (ERR))

static int insert_names(rl_db *db, int64_t pass, int64_t first, char *const *names, int64_t count, rl_error *err) {
  for (int64_t i = first; i < count; i++)
    if (rl_db_run(db, err, "activity_names_insert", RL_BIND_INTEGER(":pass", pass), RL_BIND_INTEGER(":ordinal", i),
                  RL_BIND_TEXT(":name", names[i])) < 0)
      return -1;
  return 0;
}

static int insert_entries(rl_db *db, int64_t pass, const rl_activity_appender *appender, rl_error *err) {
  sqlite3_stmt *statement = NULL;
  if (rl_db_prepare(db, "activity_dictionary_insert", NULL, 0, &statement, err) < 0) return -1;
  for (int64_t i = appender->stored_entries - appender->first_entry; i < appender->entry_count; i++) {
    const shared_values *values = &appender->entries[i];
    if (RUN_POSITIONAL(db, statement, err, pass, appender->first_entry + i, (int64_t)values->bytes, values->name, values->stream,
                       values->graph_node, values->grid[0], values->grid[1], values->grid[2], values->block[0], values->block[1],
                       values->block[2], values->registers, values->static_shared_bytes, values->dynamic_shared_bytes,
                       values->process, values->thread, values->device, values->context, values->source_memory,
                       values->destination_memory, values->call_stream, values->event, (int64_t)values->unknown) < 0)
      return -1;
  }
  return 0;
}

/* Inserts the rows in the order of their groups: consecutive rows then have adjacent keys and mostly go to the same page. */
static int insert_rows(rl_db *db, int64_t pass, const rl_activity_appender *appender, const row_slice *slice, rl_error *err) {
  sqlite3_stmt *statement = NULL;
  if (rl_db_prepare(db, "activity_insert", NULL, 0, &statement, err) < 0) return -1;
  for (size_t i = 0; i < slice->count; i++) {
    const int64_t index = slice->rows_by_group[i];
    const rl_activity_row *row = &slice->rows[index];
    if (RUN_POSITIONAL(db, statement, err, pass, first_group_of(slice) + group_within_level(row), row->start_ns,
                       appender->stored_rows + index, row->end_ns - row->start_ns, appender->entry_of_row[index],
                       row->correlation, row->step) < 0)
      return -1;
  }
  return 0;
}

/* Adds the slice's rows to the row count and longest duration of each group of the pass. */
static int add_groups(rl_db *db, int64_t pass, const row_slice *slice, rl_error *err) {
  const rl_binding level = {":first_level", slice->first_level != RL_NO_LEVEL ? RL_SQL_INTEGER : RL_SQL_NULL,
                            .integer = slice->first_level};
  for (int group = 0; group < GROUP_COUNT; group++)
    if (slice->row_counts[group] > 0 &&
        rl_db_run(db, err, "activity_groups_add", RL_BIND_INTEGER(":pass", pass),
                  RL_BIND_INTEGER(":group", first_group_of(slice) + group), RL_BIND_INTEGER(":kind", group % MAX_KIND_COUNT),
                  RL_BIND_INTEGER(":rows", slice->row_counts[group]), RL_BIND_INTEGER(":longest", slice->longest_ns[group]),
                  level) < 0)
      return -1;
  return 0;
}

/* Inserts a slice with the names and entries that are not stored yet. Called inside a transaction. */
static int insert_slice(rl_db *db, int64_t pass, const rl_activity_appender *appender, const rl_records *records,
                        const rl_activity_row *rows, size_t count, rl_error *err) {
  row_slice slice;
  group_rows(&slice, rows, count);
  return rl_db_run(db, err, "activity_mark_stored", RL_BIND_INTEGER(":pass", pass)) < 0 ||
                 insert_names(db, pass, appender->stored_names, records->names, (int64_t)records->name_count, err) < 0 ||
                 insert_entries(db, pass, appender, err) < 0 ||
                 rl_activity_intervals_add(db, pass, rows, count, &slice.first_level, err) < 0 ||
                 add_groups(db, pass, &slice, err) < 0 || insert_rows(db, pass, appender, &slice, err) < 0
             ? -1
             : 0;
}

/* Updates the appender's numbers. Called after the transaction of a slice was committed. */
static void count_stored_slice(rl_activity_appender *appender, const rl_records *records, size_t count) {
  appender->stored_rows += (int64_t)count;
  appender->stored_names = (int64_t)records->name_count;
  appender->stored_entries = appender->first_entry + appender->entry_count;
}

/* At the appender's first use, reads the numbers of stored rows, names and entries, so that new ones are stored after them. */
static int read_stored_counts(rl_db *db, int64_t pass, rl_activity_appender *appender, rl_error *err) {
  if (appender->has_stored_counts) return 0;
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  if (rl_db_query_row(db, err, "activity_stored_counts", &row, RL_BIND_INTEGER(":pass", pass)) < 0) return -1;
  appender->stored_rows = sqlite3_column_int64(row, 0);
  appender->stored_names = sqlite3_column_int64(row, 1);
  appender->first_entry = appender->stored_entries = sqlite3_column_int64(row, 2);
  appender->has_stored_counts = true;
  return 0;
}

int rl_store_insert_activity(rl_db *db, int64_t pass, const rl_records *records, rl_error *err) {
  if (records->name_count == 0 && records->row_count == 0) return 0;
  RL_CLEANUP(rl_activity_appender_cleanup) rl_activity_appender *appender = rl_activity_appender_new();
  if (appender == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for activity rows");
  if (read_stored_counts(db, pass, appender, err) < 0) return -1;
  size_t done = 0;
  do {
    size_t count = records->row_count - done < RL_SLICE_ROWS ? records->row_count - done : RL_SLICE_ROWS;
    if (find_entries(appender, records->rows + done, count, err) < 0 ||
        insert_slice(db, pass, appender, records, records->rows + done, count, err) < 0)
      return -1;
    count_stored_slice(appender, records, count);
    done += count;
  } while (done < records->row_count);
  return 0;
}

/* Stores the first `count` activity rows of records as a slice. Called inside a transaction. */
static int append_slice(rl_db *db, const rl_claim *claim, rl_activity_appender *appender, const rl_records *records, size_t count,
                        rl_error *err) {
  bool job_done;
  int is_running = rl_store_check_claim(db, claim, &job_done, err);
  if (is_running < 0) return -1;
  if (is_running == 0)
    return rl_fail(err, RL_HTTP, 409, "pass %lld of job %lld is committed already", (long long)claim->pass_id,
                   (long long)claim->job_id);
  if (read_stored_counts(db, claim->pass_id, appender, err) < 0 || find_entries(appender, records->rows, count, err) < 0)
    return -1;
  return insert_slice(db, claim->pass_id, appender, records, records->rows, count, err);
}

int rl_store_append_activity(rl_store *store, const rl_claim *claim, rl_activity_appender *appender, rl_records *records,
                             rl_error *err) {
  size_t count = records->row_count < RL_SLICE_ROWS ? records->row_count : RL_SLICE_ROWS;
  if (count == 0) return 0;
  if (rl_store_begin_bulk_transaction(store, err) < 0) return -1;
  int rc = append_slice(&store->writer, claim, appender, records, count, err);
  /* {0}: nothing changes for readers, because queries do not return the rows before the pass is committed. */
  if (rl_store_end_transaction_changing(store, rc, (rl_change){0}, err) < 0) return -1;
  count_stored_slice(appender, records, count);
  rl_records_drop_rows(records, count);
  return 0;
}

/* --- deletion ---------------------------------------------------------------------------------------------------------- */

int rl_store_delete_activity_batch(rl_db *db, int64_t pass, int64_t *row_count, rl_error *err) {
  static const char *const statements[] = {"activity_delete", "activity_intervals_delete", "activity_dictionary_delete",
                                           "activity_names_delete"};
  *row_count = 0;
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
    if (rl_db_run(db, err, statements[i], RL_BIND_INTEGER(":pass", pass), RL_BIND_INTEGER(":batch", RL_DELETE_ROWS)) < 0)
      return -1;
    int64_t changes = sqlite3_changes64(db->handle);
    if (i == 0) *row_count = changes;
    if (changes == RL_DELETE_ROWS) return 0;
  }
  return rl_db_run(db, err, "activity_groups_delete", RL_BIND_INTEGER(":pass", pass)) < 0 ||
                 rl_db_run(db, err, "activity_mark_deleted", RL_BIND_INTEGER(":pass", pass)) < 0
             ? -1
             : 1;
}

/* Returns 1 if the pass has activity rows that are hidden from queries, else 0. */
static int has_hidden_activity(rl_db *db, int64_t pass, rl_error *err) {
  RL_CLEANUP(rl_statement_cleanup) sqlite3_stmt *row = NULL;
  return rl_db_query_row(db, err, "activity_is_hidden", &row, RL_BIND_INTEGER(":pass", pass));
}

/* Deletes one batch of hidden rows. Returns 1 after the last batch, else 0. */
static int discard_batch(rl_db *db, int64_t pass, rl_error *err) {
  int64_t row_count;
  int is_hidden = has_hidden_activity(db, pass, err);
  if (is_hidden <= 0) return is_hidden < 0 ? -1 : 1;
  return rl_store_delete_activity_batch(db, pass, &row_count, err);
}

int rl_store_discard_activity(rl_store *store, int64_t pass_id, const atomic_bool *stop, rl_error *err) {
  int rc = 0;
  while (rc == 0 && !atomic_load(stop)) {
    if (rl_store_begin_bulk_transaction(store, err) < 0) return -1;
    rc = rl_store_end_transaction_changing(store, discard_batch(&store->writer, pass_id, err), (rl_change){0}, err);
  }
  return rc < 0 ? -1 : 0;
}
