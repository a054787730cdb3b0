#include "worker/code/absence.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Opcodes by what they hold, with " " for "." and at both ends, as NVIDIA's "CUDA Binary Utilities" lists them for Turing to
 * Blackwell. Generic loads and stores may reach local memory; HFMA2.MMA runs where tensor instructions do. Metrics by what they
 * hold: those of the SMs, where nothing but these instructions counts (pipes do other work as well), and those of L2 that count
 * what comes from the SMs' data caches. */
static const struct {
  const char *opcodes[10], *metrics[5], *reason, *l2[3];
} things[] = {
    {{" TEX", " TLD", " TMML", " TXD", " TXQ", " TXA"},
     {"_mem_texture", "_op_texture"},
     "not counted: the code has no texture instruction"},
    {{" SUATOM", " SULD", " SUQ", " SURED", " SUST"},
     {"_mem_surface", "_op_surface"},
     "not counted: the code has no surface instruction"},
    {{"MMA"}, {"__ops_path_tensor"}, "not counted: the code has no tensor instruction"},
    {{" LDL", " STL", " CCTLL ", " LD ", " ST ", " ATOM ", " RED ", " QSPC "},
     {"_mem_local", "_op_local"},
     "not counted: the code has no instruction that reaches local memory"},
    {{" ATOM ", " ATOMG", " RED ", " REDG", " LDGMC", " SUATOM", " SURED", " UBLKRED", " UTMAREDG"},
     {"_mem_global_op_atom", "_mem_global_op_red", "_op_global_atom", "_op_global_red"},
     "not counted: the code has no atomic instruction on global memory",
     {"_op_atom", "_op_red"}},
    {{" UBLK", " UTMA"}, {"_op_tma"}, "not counted: the code has no instruction of the tensor memory accelerator"},
    {{" LD ", " ST ", " ATOM ", " RED ", " QSPC ", " STAS", " REDAS", " SYNCS", " UBLK", " UTMA"},
     {"_mem_dshared", "_op_dshared"},
     "not counted: the code has no instruction that reaches the shared memory of other blocks"},
};
enum { THINGS = sizeof things / sizeof *things };

static bool holds_any(const char *text, const char *const *parts, size_t most) {
  for (size_t i = 0; i < most && parts[i] != NULL; i++)
    if (strstr(text, parts[i]) != NULL) return true;
  return false;
}

enum { WORDS_SIZE = sizeof((rl_sass *)0)->opcode + 2 };

/* " LDG E U16 " of "LDG.E.U16" */
static void take_words(const rl_sass *line, char words[WORDS_SIZE]) {
  snprintf(words, WORDS_SIZE, " %s ", line->opcode);
  for (char *dot = words; (dot = strchr(dot, '.')) != NULL;) *dot = ' ';
}

rl_absences rl_absences_of_code(const rl_disassembly *function) {
  static const char *const elsewhere[] = {" CALL", " JMP", " JMX", " BRX", " RET", " RPC", " RTT", " BPT"};
  rl_absences absent = function->count > 0 ? (UINT32_C(1) << THINGS) - 1 : 0;
  for (size_t i = 0; i < function->count && absent != 0; i++) {
    char words[WORDS_SIZE];
    take_words(&function->items[i], words);
    if (holds_any(words, elsewhere, sizeof elsewhere / sizeof *elsewhere)) return 0;
    for (size_t t = 0; t < THINGS; t++)
      if (holds_any(words, things[t].opcodes, sizeof things[t].opcodes / sizeof *things[t].opcodes))
        absent &= ~(UINT32_C(1) << t);
  }
  return absent;
}

/* Of what the device can do at most, whatever the code does. */
static bool is_a_limit(const char *metric) {
  const char *last = strrchr(metric, '.');
  return last != NULL && (strcmp(last, ".peak_sustained") == 0 || strcmp(last, ".max_rate") == 0);
}

rl_absences rl_absences_that_decide(const char *metric) {
  static const char *const units[] = {"l1tex__", "smsp__", "sm__"};
  rl_absences found = 0;
  bool of_processors = false, of_l2 = strncmp(metric, "lts__", 5) == 0 && strstr(metric, "_srcunit_tex_") != NULL;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) of_processors |= strncmp(metric, units[i], strlen(units[i])) == 0;
  for (size_t t = 0; t < THINGS && !is_a_limit(metric); t++)
    if ((of_processors && holds_any(metric, things[t].metrics, sizeof things[t].metrics / sizeof *things[t].metrics)) ||
        (of_l2 && holds_any(metric, things[t].l2, sizeof things[t].l2 / sizeof *things[t].l2)))
      found |= UINT32_C(1) << t;
  return found;
}

const char *rl_absence_reason(rl_absences absences) {
  size_t first = 0;
  while (first + 1 < THINGS && (absences & UINT32_C(1) << first) == 0) first++;
  return things[first].reason;
}
