#include "worker/code/disassembly.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

enum { MOST_BYTES = 32 << 20, PIPE_BYTES = 1 << 20, TIME_LIMIT_MS = 5000, GRACE_MS = 1000, PATH_SIZE = 4096 };

/* --- text -------------------------------------------------------------------------------------------------------------- */

/* One space for every run of them, none at the ends. */
static void take_text(const char *from, size_t length, char *to, size_t size) {
  size_t used = 0;
  for (size_t i = 0; i < length && used + 1 < size; i++) {
    bool space = isspace((unsigned char)from[i]) || !isprint((unsigned char)from[i]);
    if (!space) to[used++] = from[i];
    else if (used > 0 && to[used - 1] != ' ') to[used++] = ' ';
  }
  if (used > 0 && to[used - 1] == ' ') used--;
  to[used] = '\0';
}

/* The word after the predicate, if there is one. */
static void take_opcode(rl_sass *line) {
  const char *word = line->text;
  if (*word == '@') word += strcspn(word, " ");
  word += strspn(word, " ");
  snprintf(line->opcode, sizeof line->opcode, "%.*s", (int)strcspn(word, " "), word);
}

/* An offset in a comment, then the instruction and a semicolon: 1, or 0 when it is another line. */
static int parse_line(const char *line, size_t length, rl_sass *into) {
  char number[24];
  const char *end = line + length;
  while (line < end && isspace((unsigned char)*line)) line++;
  if (end - line < 4 || line[0] != '/' || line[1] != '*') return 0;
  const char *digits = line + 2, *close = memchr(digits, '*', (size_t)(end - digits));
  size_t count = close == NULL ? 0 : (size_t)(close - digits);
  if (count == 0 || count >= sizeof number || close + 1 >= end || close[1] != '/') return 0;
  memcpy(number, digits, count);
  number[count] = '\0';
  char *rest = NULL;
  into->offset = strtoll(number, &rest, 16);
  if (*rest != '\0' || into->offset < 0) return 0;
  const char *text = close + 2;
  while (text < end && (isspace((unsigned char)*text) || *text == '{')) text++;
  const char *stop = memchr(text, ';', (size_t)(end - text));
  take_text(text, (size_t)((stop != NULL ? stop : end) - text), into->text, sizeof into->text);
  if (into->text[0] == '\0' || into->text[0] == '/') return 0;
  take_opcode(into);
  return 1;
}

static int append(rl_disassembly *into, const rl_sass *line, rl_error *err) {
  if (into->count > 0 && line->offset <= into->items[into->count - 1].offset)
    return rl_fail(err, RL_INPUT, 0, "the disassembly goes back from %llx to %llx: it holds several functions",
                   (long long)into->items[into->count - 1].offset, (long long)line->offset);
  if ((into->count & (into->count - 1)) == 0) { /* full at each power of two */
    rl_sass *grown = realloc(into->items, (into->count == 0 ? 1 : 2 * into->count) * sizeof *grown);
    if (grown == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for a disassembly");
    into->items = grown;
  }
  into->items[into->count++] = *line;
  return 0;
}

int rl_disassembly_parse(const char *text, size_t length, rl_disassembly *into, rl_error *err) {
  rl_disassembly made = {0};
  for (const char *line = text, *end = text + length; line < end;) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    size_t size = (size_t)((stop != NULL ? stop : end) - line);
    rl_sass found;
    if (parse_line(line, size, &found) && append(&made, &found, err) != 0) {
      rl_disassembly_clear(&made);
      return -1;
    }
    line += size + 1;
  }
  *into = made;
  return 0;
}

const rl_sass *rl_disassembly_at(const rl_disassembly *in, int64_t offset) {
  size_t low = 0, high = in->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (in->items[middle].offset < offset) low = middle + 1;
    else high = middle;
  }
  return low < in->count && in->items[low].offset == offset ? &in->items[low] : NULL;
}

void rl_disassembly_clear(rl_disassembly *disassembly) {
  free(disassembly->items);
  *disassembly = (rl_disassembly){0};
}

/* --- the program ------------------------------------------------------------------------------------------------------- */

static bool runs(const char *folder, size_t length, char *path) {
  return snprintf(path, PATH_SIZE, "%.*s/nvdisasm", (int)length, folder) < PATH_SIZE && access(path, X_OK) == 0;
}

static int find_program(char *path, rl_error *err) {
  static const char usual[] = "/usr/local/cuda/bin";
  for (const char *folder = getenv("PATH"); folder != NULL && *folder != '\0';) {
    size_t length = strcspn(folder, ":");
    if (*folder == '/' && runs(folder, length, path)) return 0;
    folder += length + (folder[length] == ':');
  }
  if (runs(usual, strlen(usual), path)) return 0;
  return rl_fail(err, RL_SYS, ENOENT, "nvdisasm is not installed (it comes with the CUDA toolkit)");
}

/* The cubin as a file without a name, that the child opens by our descriptor. */
static int put_into_memory(const void *cubin, size_t size, rl_error *err) {
  int file = memfd_create("cubin", MFD_CLOEXEC);
  if (file < 0) return rl_fail_errno(err, "a file in memory for GPU code");
  for (size_t at = 0; at < size;) {
    ssize_t wrote = write(file, (const char *)cubin + at, size - at);
    if (wrote <= 0) {
      rl_fail_errno(err, "%zu bytes of GPU code", size);
      close(file);
      return -1;
    }
    at += (size_t)wrote;
  }
  return file;
}

/* All that it prints until it ends; *text is malloc'ed and the caller's. */
static int listen_to(const rl_disassembler *started, char **text, size_t *length, rl_error *err) {
  for (size_t room = 0;;) {
    if (*length == room) {
      if (room == MOST_BYTES) return rl_fail(err, RL_SYS, EFBIG, "nvdisasm printed more than %d bytes", MOST_BYTES);
      room = room == 0 ? 64 << 10 : 2 * room;
      char *grown = realloc(*text, room);
      if (grown == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for a disassembly");
      *text = grown;
    }
    ssize_t got = read(started->process.output, *text + *length, room - *length);
    if (got == 0) return 0;
    if (got > 0) {
      *length += (size_t)got;
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return rl_fail_errno(err, "can't read from nvdisasm");
    int64_t left = started->deadline_ns - rl_monotonic_ns();
    if (left <= 0) return rl_fail(err, RL_SYS, ETIMEDOUT, "nvdisasm took longer than %d ms", TIME_LIMIT_MS);
    struct pollfd entry = {.fd = started->process.output, .events = POLLIN};
    (void)poll(&entry, 1, (int)(left / 1000000) + 1);
  }
}

int rl_disassembler_start(const char *program, const void *cubin, size_t size, uint32_t symbol, rl_disassembler *started,
                          rl_error *err) {
  static const char *const variables[] = {NULL};
  char path[PATH_SIZE], file[64], function[16];
  if (program == NULL && find_program(path, err) != 0) return -1;
  rl_auto(rl_close_descriptor) int image = put_into_memory(cubin, size, err);
  if (image < 0) return -1;
  snprintf(file, sizeof file, "/proc/%d/fd/%d", (int)getpid(), image);
  snprintf(function, sizeof function, "%u", symbol);
  const char *const arguments[] = {program != NULL ? program : path, "-c", "-ndf", "-fun", function, file, NULL};
  rl_process process = {0};
  if (rl_process_start(arguments, variables, -1, &process, err) != 0) return -1;
  (void)fcntl(process.output, F_SETPIPE_SZ, PIPE_BYTES); /* so that it seldom waits for us */
  *started =
      (rl_disassembler){.process = process, .image = image, .deadline_ns = rl_monotonic_ns() + (int64_t)TIME_LIMIT_MS * 1000000};
  image = -1;
  return 0;
}

static void end(rl_disassembler *started, int grace_ms, char ending[RL_EXIT_STATUS_SIZE]) {
  rl_process_terminate(&started->process, grace_ms, ending);
  close(started->image);
  *started = (rl_disassembler){0};
}

int rl_disassembler_finish(rl_disassembler *started, rl_disassembly *into, rl_error *err) {
  rl_auto(rl_free_text) char *text = NULL;
  char ending[RL_EXIT_STATUS_SIZE] = "";
  size_t length = 0;
  int heard = listen_to(started, &text, &length, err);
  end(started, heard == 0 ? GRACE_MS : 0, ending);
  if (heard != 0) return -1;
  if (strcmp(ending, "exited with 0") != 0) return rl_fail(err, RL_SYS, ECHILD, "nvdisasm %s", ending);
  return rl_disassembly_parse(text, length, into, err);
}

void rl_disassembler_stop(rl_disassembler *started) {
  char ending[RL_EXIT_STATUS_SIZE];
  if (started->process.pid != 0) end(started, 0, ending);
}
