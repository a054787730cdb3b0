#include "worker/code/static_zero.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Classes of instructions and the counters that only instructions of the class raise. The opcodes are those of NVIDIA's "CUDA
 * Binary Utilities" for Turing to Blackwell. An instruction belongs to a class when its opcode contains one of the class's
 * opcodes after replace_dots_by_spaces has written it as " LDG E U16 ". The generic LD and ST are in the class of local memory,
 * because they may access it. "MMA" also matches HFMA2.MMA, which runs on the tensor pipe. */
static const struct {
  const char *opcodes[10];
  const char *sm_metrics[5]; /* parts of names (l1tex__, smsp__, sm__). Without pipes: a pipe also executes other classes */
  const char *reason;
  const char *l2_metrics[3]; /* parts of names of metrics that count requests from L1TEX (lts__*_srcunit_tex_*) */
} classes[] = {
    {.opcodes = {" TEX", " TLD", " TMML", " TXD", " TXQ", " TXA"},
     .sm_metrics = {"_mem_texture", "_op_texture"},
     .reason = "not counted: the code has no texture instruction"},
    {.opcodes = {" SUATOM", " SULD", " SUQ", " SURED", " SUST"},
     .sm_metrics = {"_mem_surface", "_op_surface"},
     .reason = "not counted: the code has no surface instruction"},
    {.opcodes = {"MMA"}, .sm_metrics = {"__ops_path_tensor"}, .reason = "not counted: the code has no tensor instruction"},
    {.opcodes = {" LDL", " STL", " CCTLL ", " LD ", " ST ", " ATOM ", " RED ", " QSPC "},
     .sm_metrics = {"_mem_local", "_op_local"},
     .reason = "not counted: the code has no instruction that reaches local memory"},
    {.opcodes = {" ATOM ", " ATOMG", " RED ", " REDG", " LDGMC", " SUATOM", " SURED", " UBLKRED", " UTMAREDG"},
     .sm_metrics = {"_mem_global_op_atom", "_mem_global_op_red", "_op_global_atom", "_op_global_red"},
     .l2_metrics = {"_op_atom", "_op_red"},
     .reason = "not counted: the code has no atomic instruction on global memory"},
    {.opcodes = {" UBLK", " UTMA"},
     .sm_metrics = {"_op_tma"},
     .reason = "not counted: the code has no instruction of the tensor memory accelerator"},
    {.opcodes = {" LD ", " ST ", " ATOM ", " RED ", " QSPC ", " STAS", " REDAS", " SYNCS", " UBLK", " UTMA"},
     .sm_metrics = {"_mem_dshared", "_op_dshared"},
     .reason = "not counted: the code has no instruction that reaches the shared memory of other blocks"},
};
enum { CLASSES = sizeof classes / sizeof *classes };

static bool contains_any(const char *text, const char *const *patterns, size_t capacity) {
  for (size_t i = 0; i < capacity && patterns[i] != NULL; i++)
    if (strstr(text, patterns[i]) != NULL) return true;
  return false;
}

enum { SPACED_OPCODE_SIZE = sizeof((rl_sass_instruction *)0)->opcode + 2 };

/* Writes " LDG E U16 " for "LDG.E.U16". */
static void replace_dots_by_spaces(const rl_sass_instruction *instruction, char spaced[SPACED_OPCODE_SIZE]) {
  snprintf(spaced, SPACED_OPCODE_SIZE, " %s ", instruction->opcode);
  for (char *dot = spaced; (dot = strchr(dot, '.')) != NULL;) *dot = ' ';
}

rl_instruction_classes rl_absent_classes(const rl_disassembly *function) {
  static const char *const leaves_function[] = {" CALL", " JMP", " JMX", " BRX", " RET", " RPC", " RTT", " BPT"};
  rl_instruction_classes absent = function->count > 0 ? (UINT32_C(1) << CLASSES) - 1 : 0;
  for (size_t i = 0; i < function->count && absent != 0; i++) {
    char opcode[SPACED_OPCODE_SIZE];
    replace_dots_by_spaces(&function->items[i], opcode);
    if (contains_any(opcode, leaves_function, sizeof leaves_function / sizeof *leaves_function))
      return 0; /* the code that it jumps to may contain any instruction */
    for (size_t c = 0; c < CLASSES; c++)
      if (contains_any(opcode, classes[c].opcodes, sizeof classes[c].opcodes / sizeof *classes[c].opcodes))
        absent &= ~(UINT32_C(1) << c);
  }
  return absent;
}

/* Returns true when the metric is a hardware limit: its value does not depend on the kernel. */
static bool is_hardware_limit(const char *metric) {
  const char *last = strrchr(metric, '.');
  return last != NULL && (strcmp(last, ".peak_sustained") == 0 || strcmp(last, ".max_rate") == 0);
}

rl_instruction_classes rl_instruction_classes_of_metric(const char *metric) {
  static const char *const units[] = {"l1tex__", "smsp__", "sm__"};
  rl_instruction_classes found = 0;
  bool is_sm = false, is_l2 = strncmp(metric, "lts__", 5) == 0 && strstr(metric, "_srcunit_tex_") != NULL;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) is_sm |= strncmp(metric, units[i], strlen(units[i])) == 0;
  for (size_t c = 0; c < CLASSES && !is_hardware_limit(metric); c++)
    if ((is_sm && contains_any(metric, classes[c].sm_metrics, sizeof classes[c].sm_metrics / sizeof *classes[c].sm_metrics)) ||
        (is_l2 && contains_any(metric, classes[c].l2_metrics, sizeof classes[c].l2_metrics / sizeof *classes[c].l2_metrics)))
      found |= UINT32_C(1) << c;
  return found;
}

const char *rl_static_zero_reason(rl_instruction_classes absent) {
  size_t lowest = 0;
  while (lowest + 1 < CLASSES && (absent & UINT32_C(1) << lowest) == 0) lowest++;
  return classes[lowest].reason;
}
