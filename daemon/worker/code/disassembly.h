/* Disassembles GPU machine code into SASS with nvdisasm, if that is installed. nvdisasm runs as a child process with a time limit
 * and a limit on its output. It takes about 0.5 s, so callers start it early and read its output later. */
#ifndef RL_CODE_DISASSEMBLY_H
#define RL_CODE_DISASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/process.h"

typedef struct rl_sass_instruction {
  int64_t offset;  /* bytes from the start of the function */
  char opcode[32]; /* opcode with modifiers, without predicate: "LDG.E.U16" */
  char text[224];  /* the whole instruction without the semicolon */
  char label[24];  /* last label before the instruction, to which branches refer as `(LABEL); "": none */
} rl_sass_instruction;

typedef struct rl_disassembly {
  rl_sass_instruction *items; /* sorted by offset */
  size_t count;
} rl_disassembly;

typedef struct rl_disassembler { /* an nvdisasm process for one function; zeroed: no process runs */
  rl_process process;
  int cubin_fd;
  int64_t deadline_ns;
} rl_disassembler;

/* Starts nvdisasm for the function `symbol_index` in the cubin's symbol table. nvdisasm_path NULL: searches the folders of $PATH,
 * then /usr/local/cuda/bin. Returns -1 with RL_ERRNO ENOENT when nvdisasm is not installed. */
int rl_disassembler_start(const char *nvdisasm_path, const void *cubin, size_t size, uint32_t symbol_index,
                          rl_disassembler *disassembler, rl_error *err);
/* Reads nvdisasm's output until nvdisasm exits, and parses the output. nvdisasm can't exit before this call if its output fills
 * the pipe. Returns -1 when nvdisasm fails, exceeds its time limit or prints too much. The process has ended in every case. */
int rl_disassembler_finish(rl_disassembler *disassembler, rl_disassembly *disassembly, rl_error *err);
void rl_disassembler_stop(rl_disassembler *disassembler); /* ends the process and discards its output */

/* Parses nvdisasm's output; lines without an instruction are ignored. Returns -1 with RL_INPUT when it holds several
 * functions. */
int rl_disassembly_parse(const char *text, size_t length, rl_disassembly *disassembly, rl_error *err);
/* Returns the instruction at `offset`, or NULL. */
const rl_sass_instruction *rl_disassembly_find(const rl_disassembly *disassembly, int64_t offset);
void rl_disassembly_clear(rl_disassembly *disassembly);

#endif
