/* Implements suites.h. A list of suites is immutable and reference-counted, so that a caller can use its list while a refresh
 * replaces the current list. A refresh lists the folders, and parses the files only if their names, modification times, sizes or
 * inodes have changed. */
#include "suite/suites.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_line.h"
#include "base/log.h"

/* A suite's file and its metadata, by which a change of the file is detected. */
typedef struct suite_file {
  char path[sizeof((rl_suite_problem *)0)->file];
  char name[RL_SUITE_NAME_SIZE];
  int64_t modified_ns, bytes;
  ino_t inode;
} suite_file;

typedef struct suite_files {
  suite_file items[RL_SUITE_FILES_MAX];
  int count;
} suite_files;

struct rl_suites {
  char *folders; /* paths, separated by ":" */
  rl_job_policy policy;
  pthread_mutex_t mutex; /* guards the members below */
  suite_files files;     /* the files from which `list` was loaded */
  rl_suite_list *list;   /* NULL: the folders were not read yet */
};

/* --- files ------------------------------------------------------------------------------------------------------------- */

static bool has_name(const suite_files *files, const char *name) {
  for (int i = 0; i < files->count; i++)
    if (strcmp(files->items[i].name, name) == 0) return true;
  return false;
}

/* Returns the length of the name before ".json"; 0: the file is not a suite. */
static size_t stem_length(const char *name) {
  static const char allowed_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  size_t length = strlen(name), suffix = strlen(".json");
  if (length <= suffix || name[0] == '.' || strspn(name, allowed_characters) != length) return 0;
  if (strcmp(name + length - suffix, ".json") != 0) return 0;
  return length - suffix < RL_SUITE_NAME_SIZE ? length - suffix : 0;
}

static void add_file(const char *folder, int folder_fd, const char *name, suite_files *files) {
  struct stat status;
  size_t length = stem_length(name);
  suite_file *file = &files->items[files->count];
  if (length == 0 || files->count == RL_SUITE_FILES_MAX) return;
  memset(file, 0, sizeof *file); /* clears the padding too, because memcmp compares it */
  memcpy(file->name, name, length);
  if (has_name(files, file->name) || fstatat(folder_fd, name, &status, 0) < 0) return;
  if ((size_t)snprintf(file->path, sizeof file->path, "%s/%s", folder, name) >= sizeof file->path) return;
  file->modified_ns = (int64_t)status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec;
  file->bytes = status.st_size;
  file->inode = status.st_ino;
  files->count++;
}

static void list_folder(const char *folder, suite_files *files) {
  DIR *stream = opendir(folder);
  if (stream == NULL) return;
  for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) add_file(folder, dirfd(stream), entry->d_name, files);
  closedir(stream);
}

static int compare_files(const void *a, const void *b) {
  return strcmp(((const suite_file *)a)->name, ((const suite_file *)b)->name);
}

/* Lists the files of all folders. Sorts the list by name, so that memcmp can compare two lists. */
static void list_files(const char *folders, suite_files *files) {
  char folder[sizeof files->items[0].path];
  memset(files, 0, sizeof *files);
  for (const char *next = folders; *next != '\0'; next += strcspn(next, ":"), next += *next == ':')
    if ((size_t)snprintf(folder, sizeof folder, "%.*s", (int)strcspn(next, ":"), next) < sizeof folder && folder[0] != '\0')
      list_folder(folder, files);
  qsort(files->items, (size_t)files->count, sizeof files->items[0], compare_files);
}

/* Reads a whole file into malloc'ed text. Opens the file with O_NONBLOCK, because opening a FIFO would otherwise block the
 * daemon. */
static int read_file(const char *path, char **text, size_t *length, rl_error *err) {
  struct stat status;
  RL_CLEANUP(rl_close_descriptor) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &status) < 0) return rl_fail_errno(err, "can't read the file");
  if (!S_ISREG(status.st_mode) || status.st_size > RL_SUITE_TEXT_MAX)
    return rl_fail(err, RL_INPUT, 0, "not a regular file of at most %d bytes", RL_SUITE_TEXT_MAX);
  RL_CLEANUP(rl_free_text) char *buffer = malloc((size_t)status.st_size + 1);
  if (buffer == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a suite");
  size_t used = 0;
  for (ssize_t byte_count = 1; byte_count > 0 && used < (size_t)status.st_size; used += (size_t)byte_count) {
    byte_count = read(fd, buffer + used, (size_t)status.st_size - used);
    if (byte_count < 0) return rl_fail_errno(err, "can't read the file");
  }
  buffer[used] = '\0';
  *length = used;
  *text = rl_take_ownership(&buffer);
  return 0;
}

/* --- entries ----------------------------------------------------------------------------------------------------------- */

static int line_of_error(const char *text, size_t length, const rl_error *err) {
  if (text == NULL || err->domain != RL_INPUT) return 0;
  if (err->json_pointer[0] == '\0' && err->code > 0) return rl_json_line_of_byte(text, length, (size_t)err->code);
  return rl_json_line_of_pointer(text, length, err->json_pointer);
}

static int parse_file(const suite_file *file, const char *text, size_t length, const rl_job_policy *policy, rl_suite **suite,
                      rl_error *err) {
  RL_CLEANUP(rl_suite_cleanup) rl_suite *parsed = NULL;
  if (rl_suite_parse(text, length, policy, &parsed, err) < 0) return -1;
  if (strcmp(parsed->name, file->name) != 0)
    return rl_fail_at(err, "/name", "the name must be the name of the file, %s", file->name);
  *suite = rl_take_ownership(&parsed);
  return 0;
}

static void load_entry(const suite_file *file, const rl_job_policy *policy, rl_suite_entry *entry) {
  RL_CLEANUP(rl_free_text) char *text = NULL;
  size_t length = 0;
  rl_error err = {0};
  memcpy(entry->name, file->name, sizeof entry->name);
  if (read_file(file->path, &text, &length, &err) >= 0 && parse_file(file, text, length, policy, &entry->suite, &err) >= 0)
    return;
  rl_suite_problem *problem = &entry->problem;
  memcpy(problem->file, file->path, sizeof problem->file);
  problem->line = line_of_error(text, length, &err);
  memcpy(problem->pointer, err.json_pointer, sizeof problem->pointer);
  memcpy(problem->message, err.message, sizeof problem->message);
}

static void free_list(rl_suite_list *list) {
  for (int i = 0; list != NULL && i < list->count; i++) rl_suite_free(list->entries[i].suite);
  free(list);
}

static bool is_known_problem(const rl_suite_list *list, const rl_suite_problem *problem) {
  for (int i = 0; list != NULL && i < list->count; i++) {
    const rl_suite_problem *known = &list->entries[i].problem;
    if (strcmp(known->file, problem->file) == 0 && strcmp(known->message, problem->message) == 0 && known->line == problem->line)
      return true;
  }
  return false;
}

static void log_problems(const rl_suite_list *before, const rl_suite_list *list) {
  for (int i = 0; i < list->count; i++) {
    const rl_suite_problem *problem = &list->entries[i].problem;
    if (problem->message[0] != '\0' && !is_known_problem(before, problem))
      rl_log(RL_LOG_WARNING, "%s:%d: %s%s%s", problem->file, problem->line, problem->pointer,
             problem->pointer[0] != '\0' ? " " : "", problem->message);
  }
}

static rl_suite_list *load(const suite_files *files, const rl_job_policy *policy) {
  rl_suite_list *list = calloc(1, sizeof *list + (size_t)files->count * sizeof list->entries[0]);
  if (list == NULL) return NULL;
  list->references = 1;
  list->count = files->count;
  for (int i = 0; i < files->count; i++) load_entry(&files->items[i], policy, &list->entries[i]);
  return list;
}

/* --- all suites -------------------------------------------------------------------------------------------------------- */

int rl_suites_open(const char *folders, const rl_job_policy *policy, rl_suites **suites, rl_error *err) {
  rl_suites *opened = calloc(1, sizeof *opened);
  if (opened == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the suites");
  pthread_mutex_init(&opened->mutex, NULL);
  opened->policy = *policy;
  opened->folders = strdup(folders);
  if (opened->folders == NULL) {
    rl_suites_close(opened);
    return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the suites");
  }
  *suites = opened;
  return 0;
}

void rl_suites_close(rl_suites *suites) {
  if (suites == NULL) return;
  free_list(suites->list);
  pthread_mutex_destroy(&suites->mutex);
  free(suites->folders);
  free(suites);
}

static void drop_reference(rl_suite_list *list) {
  if (list != NULL && --list->references == 0) free_list(list);
}

/* Loads the files again if they have changed. The caller holds the mutex. */
static int refresh(rl_suites *suites, rl_error *err) {
  suite_files *files = malloc(sizeof *files);
  if (files == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the suites");
  list_files(suites->folders, files);
  if (suites->list == NULL || memcmp(files, &suites->files, sizeof *files) != 0) {
    rl_suite_list *list = load(files, &suites->policy);
    if (list != NULL) {
      log_problems(suites->list, list);
      list->version = suites->list != NULL ? suites->list->version + 1 : 1;
      drop_reference(suites->list);
      suites->list = list;
      suites->files = *files;
    }
  }
  free(files);
  return suites->list != NULL ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "no memory for the suites");
}

const rl_suite_list *rl_suites_acquire(rl_suites *suites, rl_error *err) {
  pthread_mutex_lock(&suites->mutex);
  int rc = refresh(suites, err);
  if (rc == 0) suites->list->references++;
  const rl_suite_list *list = rc == 0 ? suites->list : NULL;
  pthread_mutex_unlock(&suites->mutex);
  return list;
}

void rl_suites_release(rl_suites *suites, const rl_suite_list *list) {
  pthread_mutex_lock(&suites->mutex);
  drop_reference((rl_suite_list *)list);
  pthread_mutex_unlock(&suites->mutex);
}

const rl_suite_entry *rl_suite_list_find(const rl_suite_list *list, const char *name) {
  for (int i = 0; i < list->count; i++)
    if (strcmp(list->entries[i].name, name) == 0) return &list->entries[i];
  return NULL;
}
