/* A table lists the opcode patterns and the counter name patterns of each class. A class is absent from a function if no
 * instruction matches its opcode patterns. */
#include "worker/code/instruction_classes.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "worker/code/l2_eviction.h"

static bool may_change_l2_eviction(const rl_disassembly *function, const rl_code_environment *environment) {
  return environment->has_access_policy_window || rl_may_change_l2_eviction(function);
}

static bool may_access_other_devices(const rl_disassembly *function, const rl_code_environment *environment) {
  (void)function;
  return environment->maps_other_devices;
}

/* The classes of instructions. Only instructions of a class increment the class's counters. An instruction belongs to a class
 * when its opcode contains one of the class's patterns. A class without patterns has a function instead. The opcode LDG.E.U16 is
 * searched as " LDG E U16 ", so a space in a pattern matches the beginning or the end of a part of the opcode. The opcodes are
 * listed in NVIDIA's "CUDA Binary Utilities" for Turing to Blackwell. The generic LD and ST are in the class of local memory,
 * because they may access local memory. "MMA" also matches HFMA2.MMA, which runs on the tensor pipe, but which increments no
 * counter of tensor operations on GH100 (docs/measurements/h200-reports.md). */
static const struct {
  const char *opcode_patterns[10];
  bool (*may_contain)(const rl_disassembly *function, const rl_code_environment *environment); /* NULL: see opcode_patterns */
  /* Substrings of the names of l1tex__, smsp__ and sm__ metrics. Metrics of pipes are not listed, because a pipe also executes
   * instructions of other classes. */
  const char *sm_metric_patterns[5];
  const char *reason;
  const char *only_chip; /* CUPTI's name of the only chip on which instructions of this class are recognised; NULL: all */
  /* On exempt_chip, instructions whose opcode contains this pattern do not belong to the class. NULL: no pattern. */
  const char *exempt_opcode_pattern;
  const char *exempt_chip; /* CUPTI's name of the chip */
  /* Substrings of the names of metrics that count requests from L1TEX or, in the last class, also from the constant caches. */
  const char *l2_metric_patterns[3];
  /* If the class is absent, a metric of requests from L1TEX whose name contains `pattern` equals the metric that has
   * `replacement` in its place. NULL: there is no such metric. */
  struct {
    const char *pattern, *replacement, *reason;
  } l2_equal_metric;
} classes[] = {
    {.opcode_patterns = {" TEX", " TLD", " TMML", " TXD", " TXQ", " TXA"},
     .sm_metric_patterns = {"_mem_texture", "_op_texture"},
     .reason = "not counted: the code has no texture instruction"},
    {.opcode_patterns = {" SUATOM", " SULD", " SUQ", " SURED", " SUST"},
     .sm_metric_patterns = {"_mem_surface", "_op_surface"},
     .reason = "not counted: the code has no surface instruction"},
    {.opcode_patterns = {"MMA"},
     .sm_metric_patterns = {"__ops_path_tensor"},
     .exempt_opcode_pattern = " HFMA2 MMA",
     .exempt_chip = "GH100",
     .reason = "not counted: the code has no tensor instruction"},
    {.opcode_patterns = {" LDL", " STL", " CCTLL ", " LD ", " ST ", " ATOM ", " RED ", " QSPC "},
     .sm_metric_patterns = {"_mem_local", "_op_local"},
     .reason = "not counted: the code has no instruction that reaches local memory"},
    {.opcode_patterns = {" ATOM ", " ATOMG", " RED ", " REDG", " LDGMC", " SUATOM", " SURED", " UBLKRED", " UTMAREDG"},
     .sm_metric_patterns = {"_mem_global_op_atom", "_mem_global_op_red", "_op_global_atom", "_op_global_red"},
     .l2_metric_patterns = {"_op_atom", "_op_red"},
     .reason = "not counted: the code has no atomic instruction on global memory"},
    {.opcode_patterns = {" UBLK", " UTMA"},
     .sm_metric_patterns = {"_op_tma"},
     .reason = "not counted: the code has no instruction of the tensor memory accelerator"},
    {.opcode_patterns = {" LD ", " ST ", " ATOM ", " RED ", " QSPC ", " STAS", " REDAS", " SYNCS", " UBLK", " UTMA"},
     .sm_metric_patterns = {"_mem_dshared", "_op_dshared"},
     .reason = "not counted: the code has no instruction that reaches the shared memory of other blocks"},
    {.opcode_patterns = {" LDGSTS"},
     .sm_metric_patterns = {"_op_ldgsts"},
     .reason = "not counted: the code has no asynchronous copy from global to shared memory (LDGSTS)"},
    {.may_contain = may_change_l2_eviction,
     .only_chip = "GH100",
     .l2_metric_patterns = {"_evict_first", "_evict_last", "_evict_normal_demote"},
     .l2_equal_metric = {"_evict_normal_lookup", "_lookup",
                         "equals the counter of all eviction policies: the code uses no other L2 eviction policy"},
     .reason = "not counted: the code has no access with an L2 eviction policy other than evict_normal"},
    {.may_contain = may_access_other_devices,
     .l2_metric_patterns = {"_aperture_peer"},
     .reason = "not counted: the code has no access to another device, because the process maps no memory of another device"},
};
enum { CLASS_COUNT = sizeof classes / sizeof *classes };

static bool contains_any(const char *text, const char *const *patterns, size_t capacity) {
  for (size_t i = 0; i < capacity && patterns[i] != NULL; i++)
    if (strstr(text, patterns[i]) != NULL) return true;
  return false;
}

rl_instruction_classes rl_all_instruction_classes(const char *chip) {
  rl_instruction_classes all = 0;
  for (size_t c = 0; c < CLASS_COUNT; c++)
    if (classes[c].only_chip == NULL || strcmp(chip, classes[c].only_chip) == 0) all |= UINT32_C(1) << c;
  return all;
}

enum { SPACED_OPCODE_SIZE = sizeof((rl_sass_instruction *)0)->opcode + 2 };

/* Writes " LDG E U16 " for "LDG.E.U16". */
static void replace_dots_by_spaces(const rl_sass_instruction *instruction, char spaced[SPACED_OPCODE_SIZE]) {
  snprintf(spaced, SPACED_OPCODE_SIZE, " %s ", instruction->opcode);
  for (char *dot = spaced; (dot = strchr(dot, '.')) != NULL;) *dot = ' ';
}

/* opcode: with spaces in place of dots */
static bool is_in_class(size_t class, const char *opcode, const char *chip) {
  if (!contains_any(opcode, classes[class].opcode_patterns,
                    sizeof classes[class].opcode_patterns / sizeof *classes[class].opcode_patterns))
    return false;
  const char *exempt = classes[class].exempt_opcode_pattern;
  return exempt == NULL || strcmp(chip, classes[class].exempt_chip) != 0 || strstr(opcode, exempt) == NULL;
}

rl_instruction_classes rl_absent_instruction_classes(const rl_disassembly *function, const rl_code_environment *environment) {
  static const char *const opcodes_leaving_function[] = {" CALL", " JMP", " JMX", " BRX", " RET", " RPC", " RTT", " BPT"};
  rl_instruction_classes absent = function->count > 0 ? rl_all_instruction_classes(environment->chip) : 0;
  for (size_t i = 0; i < function->count && absent != 0; i++) {
    char opcode[SPACED_OPCODE_SIZE];
    replace_dots_by_spaces(&function->items[i], opcode);
    if (contains_any(opcode, opcodes_leaving_function, sizeof opcodes_leaving_function / sizeof *opcodes_leaving_function))
      return 0; /* the code that it jumps to may contain any instruction */
    for (size_t c = 0; c < CLASS_COUNT; c++)
      if (is_in_class(c, opcode, environment->chip)) absent &= ~(UINT32_C(1) << c);
  }
  for (size_t c = 0; c < CLASS_COUNT && absent != 0; c++)
    if (classes[c].may_contain != NULL && classes[c].may_contain(function, environment)) absent &= ~(UINT32_C(1) << c);
  return absent;
}

/* Returns true when the metric is a hardware limit: its value does not depend on the kernel. */
static bool is_hardware_limit(const char *metric) {
  return strstr(metric, ".peak_sustained") != NULL || strstr(metric, ".max_rate") != NULL;
}

/* Returns whether the metric counts requests to L2 from a unit: "_srcunit_tex_" is L1TEX. */
static bool counts_requests_of(const char *metric, const char *unit) {
  return rl_begins_with(metric, "lts__") && strstr(metric, unit) != NULL;
}

rl_instruction_classes rl_instruction_classes_of_metric(const char *metric) {
  static const char *const sm_metric_prefixes[] = {"l1tex__", "smsp__", "sm__"};
  rl_instruction_classes found = 0;
  bool is_sm = false,
       is_l2 = counts_requests_of(metric, "_srcunit_tex_") || counts_requests_of(metric, "_srcunit_gcc_aperture_peer");
  for (size_t i = 0; i < sizeof sm_metric_prefixes / sizeof *sm_metric_prefixes; i++)
    is_sm |= rl_begins_with(metric, sm_metric_prefixes[i]);
  for (size_t c = 0; c < CLASS_COUNT && !is_hardware_limit(metric); c++)
    if ((is_sm && contains_any(metric, classes[c].sm_metric_patterns,
                               sizeof classes[c].sm_metric_patterns / sizeof *classes[c].sm_metric_patterns)) ||
        (is_l2 && contains_any(metric, classes[c].l2_metric_patterns,
                               sizeof classes[c].l2_metric_patterns / sizeof *classes[c].l2_metric_patterns)))
      found |= UINT32_C(1) << c;
  return found;
}

const char *rl_equal_metric(const char *metric, rl_instruction_classes absent, char *equal, size_t size) {
  for (size_t c = 0; c < CLASS_COUNT && counts_requests_of(metric, "_srcunit_tex_"); c++) {
    const char *pattern = classes[c].l2_equal_metric.pattern,
               *found = pattern != NULL && (absent & UINT32_C(1) << c) != 0 ? strstr(metric, pattern) : NULL;
    if (found == NULL) continue;
    snprintf(equal, size, "%.*s%s%s", (int)(found - metric), metric, classes[c].l2_equal_metric.replacement,
             found + strlen(pattern));
    return classes[c].l2_equal_metric.reason;
  }
  return NULL;
}

const char *rl_absent_instruction_classes_reason(rl_instruction_classes absent) {
  size_t lowest = 0;
  while (lowest + 1 < CLASS_COUNT && (absent & UINT32_C(1) << lowest) == 0) lowest++;
  return classes[lowest].reason;
}
