/* Parses the registers of SASS operands, and tracks in which registers the results of loads end up. Instructions are processed in
 * the order of the code. The instructions of a loop are processed twice, so that values also pass from one iteration to the
 * next. */
#include "worker/code/operands.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTER_COUNT = 256, STACK_POINTER = 1, MAX_TRACKED_LOADS = 64 };

/* --- operands ---------------------------------------------------------------------------------------------------------- */

/* Returns the text of the operands, which follows the predicate and the opcode. */
static const char *operands_of(const rl_sass_instruction *instruction) {
  const char *opcode = strstr(instruction->text, instruction->opcode);
  return opcode ? opcode + strlen(instruction->opcode) : "";
}

static bool is_predicated(const rl_sass_instruction *instruction) { return instruction->text[0] == '@'; }

static bool has_opcode(const rl_sass_instruction *instruction, const char *name) {
  size_t length = strcspn(instruction->opcode, ".");
  return strlen(name) == length && strncmp(instruction->opcode, name, length) == 0;
}

static bool has_modifier(const rl_sass_instruction *instruction, const char *modifier) {
  size_t length = strlen(modifier);
  for (const char *found = strchr(instruction->opcode, '.'); found; found = strchr(found + 1, '.'))
    if (strncmp(found + 1, modifier, length) == 0 && (found[1 + length] == '.' || found[1 + length] == '\0')) return true;
  return false;
}

/* Returns whether operand `index` (from 0) is RZ, with or without a sign. */
static bool is_zero_register(const rl_sass_instruction *instruction, int index) {
  const char *operand = operands_of(instruction);
  for (; index > 0 && operand; index--) operand = strchr(operand, ',') ? strchr(operand, ',') + 1 : NULL;
  if (!operand) return false;
  operand += strspn(operand, " -");
  return strncmp(operand, "RZ", 2) == 0 && !isalnum((unsigned char)operand[2]);
}

typedef struct register_use {
  int number, count; /* consecutive registers from `number` */
} register_use;

/* Finds the next register in [text, end). Skips RZ and uniform registers. Returns the text after the register, or NULL. */
static const char *next_register(const char *text, const char *end, register_use *use) {
  for (const char *p = text; p < end; p++) {
    if (*p != 'R' || !isdigit((unsigned char)p[1]) || (p > text && isalnum((unsigned char)p[-1]))) continue;
    char *behind;
    use->number = (int)strtol(p + 1, &behind, 10);
    use->count = strncmp(behind, ".64", 3) == 0 ? 2 : 1;
    return use->number < REGISTER_COUNT - 2 ? behind : NULL;
  }
  return NULL;
}

/* --- single instructions ----------------------------------------------------------------------------------------------- */

static bool is_hfma2_move(const rl_sass_instruction *i) {
  return has_opcode(i, "HFMA2") && is_zero_register(i, 1) && is_zero_register(i, 2);
}

static bool is_hadd2_move(const rl_sass_instruction *i) {
  return has_opcode(i, "HADD2") && (is_zero_register(i, 1) || is_zero_register(i, 2));
}

static double access_bytes(const rl_sass_instruction *i) {
  static const struct {
    const char *modifier;
    double bytes;
  } widths[] = {{"128", 16}, {"64", 8}, {"U8", 1}, {"S8", 1}, {"U16", 2}, {"S16", 2}, {"8", 1}, {"16", 2}};
  for (size_t k = 0; k < sizeof widths / sizeof *widths; k++)
    if (has_modifier(i, widths[k].modifier)) return widths[k].bytes;
  return 4;
}

static bool is_local_access(const rl_sass_instruction *i) { return has_opcode(i, "LDL") || has_opcode(i, "STL"); }

static bool is_at_stack_pointer(const rl_sass_instruction *i) {
  const char *address = strchr(operands_of(i), '['), *end = address ? strchr(address, ']') : NULL;
  register_use base;
  return end && next_register(address, end, &base) && base.number == STACK_POINTER;
}

static bool is_spill(const rl_sass_instruction *i) { return is_local_access(i) && is_at_stack_pointer(i); }
static bool is_array_access(const rl_sass_instruction *i) { return is_local_access(i) && !is_at_stack_pointer(i); }

static double unit_weight(const rl_sass_instruction *i) { return (void)i, 1; }

/* Returns the sum of metric · weight over the instructions for which `matches` returns true. */
static double weighted_sum(const rl_instruction_profile *profile, const char *metric,
                           bool (*matches)(const rl_sass_instruction *), double (*weight)(const rl_sass_instruction *)) {
  double sum = 0;
  for (size_t i = 0; i < profile->count; i++) {
    const rl_pc_value *value = &profile->values[i];
    if (value->value == 0 || strcmp(value->metric, metric) != 0) continue;
    const rl_sass_instruction *sass = rl_disassembly_find(profile->sass, value->offset);
    if (sass && matches(sass)) sum += value->value * weight(sass);
  }
  return sum;
}

double rl_operands_hfma2_moves(const rl_instruction_profile *profile) {
  return weighted_sum(profile, RL_THREAD_INST_EXECUTED_TRUE, is_hfma2_move, unit_weight);
}

double rl_operands_hadd2_moves(const rl_instruction_profile *profile) {
  return weighted_sum(profile, RL_THREAD_INST_EXECUTED_TRUE, is_hadd2_move, unit_weight);
}

double rl_operands_spilled_bytes(const rl_instruction_profile *profile) {
  if (weighted_sum(profile, RL_THREAD_INST_EXECUTED_TRUE, is_array_access, unit_weight) > 0) return NAN;
  return weighted_sum(profile, RL_THREAD_INST_EXECUTED_TRUE, is_spill, access_bytes);
}

/* --- loads that depend on themselves ----------------------------------------------------------------------------------- */

typedef struct register_loads {
  uint64_t registers[REGISTER_COUNT]; /* bit i of registers[r]: register r depends on a result of load i */
} register_loads;

static uint64_t loads_of(const register_loads *state, const char *text, const char *end) {
  uint64_t loads = 0;
  register_use use;
  while (text && (text = next_register(text, end, &use)) != NULL)
    for (int k = 0; k < use.count; k++) loads |= state->registers[use.number + k];
  return loads;
}

static bool is_global_load(const rl_sass_instruction *i) { return has_opcode(i, "LDG") || has_opcode(i, "LD"); }

/* Returns whether the instruction reads its first operand instead of writing it. */
static bool has_no_result(const rl_sass_instruction *i) {
  return strncmp(i->opcode, "ST", 2) == 0 || strncmp(i->opcode, "RED", 3) == 0 || strncmp(i->opcode, "BR", 2) == 0;
}

static int result_register_count(const rl_sass_instruction *i) {
  if (has_modifier(i, "128")) return 4;
  return has_modifier(i, "64") || has_modifier(i, "WIDE") || strncmp(i->opcode, "D", 1) == 0 ? 2 : 1;
}

/* Sets the loads on which the instruction's result registers depend. load_bit: the bit of the load if the instruction is a
 * tracked load, else 0. Returns whether the address of the load depends on an earlier result of the same load. */
static bool track_loads(register_loads *state, const rl_sass_instruction *i, uint64_t load_bit) {
  const char *text = operands_of(i), *end = text + strlen(text), *comma = strchr(text, ',');
  const char *sources = comma ? comma : end;
  register_use result;
  uint64_t loads = loads_of(state, sources, end);
  bool depends = (loads & load_bit) != 0;
  text += strspn(text, " ");
  if (*text != 'R' || has_no_result(i) || !next_register(text, sources, &result)) return depends;
  for (int k = 0; k < result_register_count(i) && result.number + k < REGISTER_COUNT; k++) {
    uint64_t kept = is_predicated(i) ? state->registers[result.number + k] : 0;
    state->registers[result.number + k] = kept | loads | load_bit;
  }
  return depends;
}

static double executed_warps(const rl_instruction_profile *profile, int64_t offset) {
  double sum = 0;
  for (size_t i = 0; i < profile->count; i++)
    if (profile->values[i].offset == offset && strcmp(profile->values[i].metric, RL_INST_EXECUTED) == 0)
      sum += profile->values[i].value;
  return sum;
}

typedef struct dependency_search {
  const rl_disassembly *sass;
  register_loads state;
  bool *depends; /* depends[i]: instruction i is a load whose address depends on a value that the same load read before */
} dependency_search;

/* Tracks loads through the instructions [from, to), in the order of the code. */
static void track_loads_in_range(dependency_search *search, size_t from, size_t to) {
  int load = 0;
  for (size_t i = 0; i < from; i++) load += is_global_load(&search->sass->items[i]);
  for (size_t i = from; i < to; i++) {
    const rl_sass_instruction *instruction = &search->sass->items[i];
    bool is_tracked = is_global_load(instruction) && load < MAX_TRACKED_LOADS;
    if (track_loads(&search->state, instruction, is_tracked ? UINT64_C(1) << load : 0)) search->depends[i] = true;
    load += is_global_load(instruction);
  }
}

/* Returns the index of the target of a backward branch at index `branch`; `branch` itself if the instruction is not a backward
 * branch. */
static size_t loop_begin(const rl_disassembly *sass, size_t branch) {
  const char *label = strstr(sass->items[branch].text, "`(");
  if (!has_opcode(&sass->items[branch], "BRA") || !label) return branch;
  size_t length = strcspn(label + 2, ")");
  for (size_t i = 0; i < branch; i++)
    if (strlen(sass->items[i].label) == length && strncmp(sass->items[i].label, label + 2, length) == 0) return i;
  return branch;
}

double rl_operands_dependent_loads(const rl_instruction_profile *profile) {
  const rl_disassembly *sass = profile->sass;
  dependency_search search = {.sass = sass, .depends = calloc(sass->count + 1, sizeof(bool))};
  double sum = 0;
  if (!search.depends) return NAN;
  for (size_t i = 0; i < sass->count; i++) {
    track_loads_in_range(&search, i, i + 1);
    size_t begin = loop_begin(sass, i);
    if (begin < i) track_loads_in_range(&search, begin, i);
  }
  for (size_t i = 0; i < sass->count; i++)
    if (search.depends[i]) sum += executed_warps(profile, sass->items[i].offset);
  free(search.depends);
  return sum;
}
