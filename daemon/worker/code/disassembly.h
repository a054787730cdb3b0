/* GPU machine code as text, by nvdisasm where it is installed: it runs as a child, with a time limit and bounded output. It takes
 * about half a second to start, so it is started early and heard later. */
#ifndef RL_CODE_DISASSEMBLY_H
#define RL_CODE_DISASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/process.h"

typedef struct rl_sass {
  int64_t offset;  /* bytes from the start of the function */
  char opcode[32]; /* with modifiers, without predicate: "LDG.E.U16" */
  char text[224];  /* the whole instruction, on one line, without the semicolon */
} rl_sass;

typedef struct rl_disassembly {
  rl_sass *items; /* in order of offset */
  size_t count;
} rl_disassembly;

typedef struct rl_disassembler { /* one function being disassembled; zeroed: none */
  rl_process process;
  int image; /* descriptor of the cubin */
  int64_t deadline_ns;
} rl_disassembler;

/* Of one function of a cubin by its index in the symbol table. program: path of nvdisasm, NULL to look for it ($PATH,
 * /usr/local/cuda/bin). RL_SYS ENOENT when there is none. */
int rl_disassembler_start(const char *program, const void *cubin, size_t size, uint32_t symbol, rl_disassembler *started,
                          rl_error *err);
/* Wait for it, unless rl_process_has_exited; one that fills the pipe does not end before it is heard. -1 when it fails, takes too
 * long, or says too much; it is gone in any case. */
int rl_disassembler_finish(rl_disassembler *started, rl_disassembly *into, rl_error *err);
void rl_disassembler_stop(rl_disassembler *started); /* without hearing it */

/* What nvdisasm printed; lines that hold no instruction are left out. */
int rl_disassembly_parse(const char *text, size_t length, rl_disassembly *into, rl_error *err);
const rl_sass *rl_disassembly_at(const rl_disassembly *in, int64_t offset); /* NULL: there is no instruction */
void rl_disassembly_clear(rl_disassembly *disassembly);

#endif
