/* Writes the cubin to a memfd, starts nvdisasm on it, reads its output from a pipe, and parses one instruction from each line. */
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

enum { MAX_OUTPUT_BYTES = 32 << 20, PIPE_BYTES = 1 << 20, TIME_LIMIT_MS = 5000, EXIT_GRACE_MS = 1000, PATH_SIZE = 4096 };

/* Copies the text. Replaces each run of spaces and unprintable bytes by one space, and removes spaces at both ends. */
static void copy_squeezed(const char *from, size_t length, char *to, size_t size) {
  size_t used = 0;
  for (size_t i = 0; i < length && used + 1 < size; i++) {
    bool space = isspace((unsigned char)from[i]) || !isprint((unsigned char)from[i]);
    if (!space) to[used++] = from[i];
    else if (used > 0 && to[used - 1] != ' ') to[used++] = ' ';
  }
  if (used > 0 && to[used - 1] == ' ') used--;
  to[used] = '\0';
}

/* Sets the opcode: the first word of the text after the predicate. */
static void set_opcode(rl_sass_instruction *instruction) {
  const char *word = instruction->text;
  if (*word == '@') word += strcspn(word, " ");
  word += strspn(word, " ");
  snprintf(instruction->opcode, sizeof instruction->opcode, "%.*s", (int)strcspn(word, " "), word);
}

/* Parses a line of nvdisasm's output, which contains a comment with the hexadecimal offset, the instruction and a semicolon.
 * Returns false when the line has no instruction. */
static bool parse_instruction(const char *line, size_t length, rl_sass_instruction *instruction) {
  char number[24];
  const char *end = line + length;
  while (line < end && isspace((unsigned char)*line)) line++;
  if (end - line < 4 || line[0] != '/' || line[1] != '*') return false;
  const char *digits = line + 2, *comment_end = memchr(digits, '*', (size_t)(end - digits));
  size_t count = comment_end == NULL ? 0 : (size_t)(comment_end - digits);
  if (count == 0 || count >= sizeof number || comment_end + 1 >= end || comment_end[1] != '/') return false;
  memcpy(number, digits, count);
  number[count] = '\0';
  char *rest = NULL;
  instruction->offset = strtoll(number, &rest, 16);
  if (*rest != '\0' || instruction->offset < 0) return false;
  const char *text = comment_end + 2;
  while (text < end && (isspace((unsigned char)*text) || *text == '{')) text++;
  const char *stop = memchr(text, ';', (size_t)(end - text));
  copy_squeezed(text, (size_t)((stop != NULL ? stop : end) - text), instruction->text, sizeof instruction->text);
  if (instruction->text[0] == '\0' || instruction->text[0] == '/') return false;
  set_opcode(instruction);
  return true;
}

/* Parses a line that defines a label inside a function, such as ".L_x_0:". Returns false when the line has no label. */
static bool parse_label(const char *line, size_t length, char *label, size_t size) {
  static const char prefix[] = ".L";
  const char *end = line + length, *colon = memchr(line, ':', length);
  while (line < end && isspace((unsigned char)*line)) line++;
  if (!colon || colon - line < (ptrdiff_t)sizeof prefix || memcmp(line, prefix, sizeof prefix - 1) != 0) return false;
  snprintf(label, size, "%.*s", (int)(colon - line), line);
  return true;
}

static int append_instruction(rl_disassembly *disassembly, const rl_sass_instruction *instruction, rl_error *err) {
  if (disassembly->count > 0 && instruction->offset <= disassembly->items[disassembly->count - 1].offset)
    return rl_fail(err, RL_INPUT, 0, "the disassembly holds several functions: offset %llx is followed by %llx",
                   (long long)disassembly->items[disassembly->count - 1].offset, (long long)instruction->offset);
  if ((disassembly->count & (disassembly->count - 1)) == 0) { /* the capacity is the next power of two */
    rl_sass_instruction *grown =
        realloc(disassembly->items, (disassembly->count == 0 ? 1 : 2 * disassembly->count) * sizeof *grown);
    if (grown == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a disassembly");
    disassembly->items = grown;
  }
  disassembly->items[disassembly->count++] = *instruction;
  return 0;
}

int rl_disassembly_parse(const char *text, size_t length, rl_disassembly *disassembly, rl_error *err) {
  rl_disassembly parsed = {0};
  char label[sizeof parsed.items->label] = "";
  for (const char *line = text, *end = text + length; line < end;) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    size_t size = (size_t)((stop != NULL ? stop : end) - line);
    rl_sass_instruction found;
    (void)parse_label(line, size, label, sizeof label);
    if (parse_instruction(line, size, &found)) {
      memcpy(found.label, label, sizeof label);
      label[0] = '\0';
      if (append_instruction(&parsed, &found, err) < 0) {
        rl_disassembly_clear(&parsed);
        return -1;
      }
    }
    line += size + 1;
  }
  *disassembly = parsed;
  return 0;
}

const rl_sass_instruction *rl_disassembly_find(const rl_disassembly *disassembly, int64_t offset) {
  const rl_sass_instruction *items = disassembly->items;
  size_t low = 0, high = disassembly->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (items[middle].offset < offset) low = middle + 1;
    else high = middle;
  }
  return low < disassembly->count && items[low].offset == offset ? &items[low] : NULL;
}

void rl_disassembly_clear(rl_disassembly *disassembly) {
  free(disassembly->items);
  *disassembly = (rl_disassembly){0};
}

static bool format_nvdisasm_path(const char *folder, size_t length, char *path) {
  return snprintf(path, PATH_SIZE, "%.*s/nvdisasm", (int)length, folder) < PATH_SIZE && access(path, X_OK) == 0;
}

static int find_nvdisasm(char *path, rl_error *err) {
  static const char default_folder[] = "/usr/local/cuda/bin";
  for (const char *folder = getenv("PATH"); folder != NULL && *folder != '\0';) {
    size_t length = strcspn(folder, ":");
    if (*folder == '/' && format_nvdisasm_path(folder, length, path)) return 0;
    folder += length + (folder[length] == ':');
  }
  if (format_nvdisasm_path(default_folder, strlen(default_folder), path)) return 0;
  return rl_fail(err, RL_ERRNO, ENOENT, "nvdisasm is not installed (it comes with the CUDA toolkit)");
}

/* Writes the cubin to a memfd, which the child opens as /proc/PID/fd/N. Returns the descriptor, or -1. */
static int write_memfd(const void *cubin, size_t size, rl_error *err) {
  int memfd = memfd_create("cubin", MFD_CLOEXEC);
  if (memfd < 0) return rl_fail_errno(err, "can't create a memfd for GPU code");
  for (size_t offset = 0; offset < size;) {
    ssize_t written = write(memfd, (const char *)cubin + offset, size - offset);
    if (written <= 0) {
      rl_fail_errno(err, "can't write %zu bytes of GPU code to a memfd", size);
      close(memfd);
      return -1;
    }
    offset += (size_t)written;
  }
  return memfd;
}

/* Reads the output until end of file. *text is malloc'ed; the caller frees it, also after a failure. */
static int read_output(const rl_disassembler *disassembler, char **text, size_t *length, rl_error *err) {
  for (size_t capacity = 0;;) {
    if (*length == capacity) {
      if (capacity == MAX_OUTPUT_BYTES)
        return rl_fail(err, RL_ERRNO, EFBIG, "nvdisasm printed more than %d bytes", MAX_OUTPUT_BYTES);
      capacity = capacity == 0 ? 64 << 10 : 2 * capacity;
      char *grown = realloc(*text, capacity);
      if (grown == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a disassembly");
      *text = grown;
    }
    ssize_t got = read(disassembler->process.output, *text + *length, capacity - *length);
    if (got == 0) return 0;
    if (got > 0) {
      *length += (size_t)got;
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return rl_fail_errno(err, "can't read from nvdisasm");
    int64_t left_ns = disassembler->deadline_ns - rl_monotonic_ns();
    if (left_ns <= 0) return rl_fail(err, RL_ERRNO, ETIMEDOUT, "nvdisasm took longer than %d ms", TIME_LIMIT_MS);
    struct pollfd entry = {.fd = disassembler->process.output, .events = POLLIN};
    (void)poll(&entry, 1, (int)(left_ns / 1000000) + 1);
  }
}

int rl_disassembler_start(const char *nvdisasm_path, const void *cubin, size_t size, uint32_t symbol_index,
                          rl_disassembler *disassembler, rl_error *err) {
  static const char *const environment[] = {NULL};
  char found_path[PATH_SIZE], cubin_path[64], symbol_index_text[16];
  if (nvdisasm_path == NULL) {
    if (find_nvdisasm(found_path, err) < 0) return -1;
    nvdisasm_path = found_path;
  }
  RL_CLEANUP(rl_close_descriptor) int cubin_fd = write_memfd(cubin, size, err);
  if (cubin_fd < 0) return -1;
  snprintf(cubin_path, sizeof cubin_path, "/proc/%d/fd/%d", (int)getpid(), cubin_fd);
  snprintf(symbol_index_text, sizeof symbol_index_text, "%u", symbol_index);
  const char *const arguments[] = {nvdisasm_path, "-c", "-ndf", "-fun", symbol_index_text, cubin_path, NULL};
  rl_process process = {0};
  if (rl_process_start(arguments, environment, -1, -1, &process, err) < 0) return -1;
  (void)fcntl(process.output, F_SETPIPE_SZ, PIPE_BYTES); /* nvdisasm then rarely blocks on a full pipe */
  *disassembler = (rl_disassembler){
      .process = process, .cubin_fd = cubin_fd, .deadline_ns = rl_monotonic_ns() + (int64_t)TIME_LIMIT_MS * 1000000};
  cubin_fd = -1;
  return 0;
}

static void end_process_and_close(rl_disassembler *disassembler, int grace_ms, char exit_status[RL_EXIT_STATUS_SIZE]) {
  rl_process_terminate(&disassembler->process, grace_ms, exit_status);
  close(disassembler->cubin_fd);
  *disassembler = (rl_disassembler){0};
}

int rl_disassembler_finish(rl_disassembler *disassembler, rl_disassembly *disassembly, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *text = NULL;
  char exit_status[RL_EXIT_STATUS_SIZE] = "";
  size_t length = 0;
  int result = read_output(disassembler, &text, &length, err);
  end_process_and_close(disassembler, result < 0 ? 0 : EXIT_GRACE_MS, exit_status);
  if (result < 0) return -1;
  if (strcmp(exit_status, "exited with 0") != 0) return rl_fail(err, RL_ERRNO, ECHILD, "nvdisasm %s", exit_status);
  return rl_disassembly_parse(text, length, disassembly, err);
}

void rl_disassembler_stop(rl_disassembler *disassembler) {
  char exit_status[RL_EXIT_STATUS_SIZE];
  if (disassembler->process.pid != 0) end_process_and_close(disassembler, 0, exit_status);
}
