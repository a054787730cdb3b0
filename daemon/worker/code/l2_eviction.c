/* On GH100, an instruction that accesses global memory names a memory descriptor in two uniform registers, which contains the
 * eviction policy: LDG.E R0, desc[UR4][R2.64]. The driver stores its default descriptor in constant bank 0, from where the
 * compiler loads it: ULDC.64 UR4, c[0x0][0x208]. Code that sets another policy (createpolicy and L2::cache_hint in PTX) computes
 * the descriptor or loads it from elsewhere. The functions below track which registers contain the default descriptor. */
#include "worker/code/l2_eviction.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char DEFAULT_DESCRIPTOR[] = "c[0x0][0x208]";

enum { UNIFORM_REGISTER_COUNT = 64 };

/* Bit i: uniform registers i and i + 1 contain the default descriptor. */
typedef uint64_t descriptor_registers;
#define ALL_REGISTERS (~(descriptor_registers)0)

/* Returns whether one of the parts of the opcode, which dots separate, begins with the text. */
static bool has_part(const char *opcode, const char *text) {
  const size_t length = strlen(text);
  for (const char *part = opcode; part != NULL; part = strchr(part, '.')) {
    part += *part == '.';
    if (strncmp(part, text, length) == 0) return true;
  }
  return false;
}

static bool begins_with_one_of(const char *text, const char *const *beginnings, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (rl_begins_with(text, beginnings[i])) return true;
  return false;
}

/* Returns whether the opcode without its modifiers is one of the names. */
static bool is_one_of(const char *opcode, const char *const *names, size_t count) {
  const size_t length = strcspn(opcode, ".");
  for (size_t i = 0; i < count; i++)
    if (strlen(names[i]) == length && strncmp(opcode, names[i], length) == 0) return true;
  return false;
}

#define COUNT(ARRAY) (sizeof(ARRAY) / sizeof *(ARRAY))
#define IS_ONE_OF(OPCODE, NAMES) is_one_of(OPCODE, NAMES, COUNT(NAMES))
#define BEGINS_WITH_ONE_OF(TEXT, BEGINNINGS) begins_with_one_of(TEXT, BEGINNINGS, COUNT(BEGINNINGS))

static const char *operands_of(const rl_sass_instruction *instruction) {
  const char *opcode = strstr(instruction->text, instruction->opcode);
  return opcode != NULL ? opcode + strlen(instruction->opcode) : "";
}

/* Returns the number of the uniform register at the beginning of the text; -1: there is none. */
static int uniform_register_at(const char *text) {
  return strncmp(text, "UR", 2) == 0 && isdigit((unsigned char)text[2]) ? atoi(text + 2) : -1;
}

/* Returns the uniform register that the instruction writes first; -1: none. The destination is the first operand, or follows
 * destinations that are predicates. */
static int uniform_destination(const rl_sass_instruction *instruction) {
  const char *operand = operands_of(instruction);
  for (; operand != NULL; operand = strchr(operand, ',')) {
    operand += strspn(operand, ", ");
    if (operand[0] != 'P' && strncmp(operand, "UP", 2) != 0) return uniform_register_at(operand);
  }
  return -1;
}

/* Returns how many uniform registers the instruction may write. */
static int destination_width(const char *opcode) {
  if (strstr(opcode, "256") != NULL) return 8;
  if (strstr(opcode, "128") != NULL) return 4;
  return strstr(opcode, "64") != NULL || strstr(opcode, "WIDE") != NULL ? 2 : 1;
}

static bool loads_default_descriptor(const rl_sass_instruction *instruction) {
  const char *source = strchr(instruction->text, ',');
  return instruction->text[0] != '@' && strcmp(instruction->opcode, "ULDC.64") == 0 && source != NULL &&
         strncmp(source + strspn(source, ", "), DEFAULT_DESCRIPTOR, sizeof DEFAULT_DESCRIPTOR - 1) == 0;
}

/* Returns the registers with the default descriptor after the instruction. */
static descriptor_registers execute(const rl_sass_instruction *instruction, descriptor_registers before) {
  const int first = uniform_destination(instruction), width = destination_width(instruction->opcode);
  descriptor_registers after = before;
  for (int i = first - 1; first >= 0 && i < first + width; i++)
    if (i >= 0 && i < UNIFORM_REGISTER_COUNT) after &= ~(UINT64_C(1) << i);
  if (first >= 0 && first < UNIFORM_REGISTER_COUNT && loads_default_descriptor(instruction)) after |= UINT64_C(1) << first;
  return after;
}

/* Returns whether another instruction than the next one may be executed after this one. */
static bool may_branch(const rl_sass_instruction *instruction) {
  static const char *const opcodes[] = {"BRA", "BREAK", "BSSY", "BSYNC", "BMOV"};
  return strstr(instruction->text, "`(") != NULL || BEGINS_WITH_ONE_OF(instruction->opcode, opcodes);
}

/* Returns whether the next instruction is never executed after this one. */
static bool ends_block(const rl_sass_instruction *instruction) {
  return strcmp(instruction->text, "EXIT") == 0 || strncmp(instruction->text, "BRA `(", 6) == 0;
}

static bool begins_block(const rl_disassembly *function, size_t i) { return i > 0 && function->items[i].label[0] != '\0'; }

/* Returns the registers that contain the default descriptor at the end of every block, given those at the beginning of every
 * block but the first. Assumes, as the compiler ensures, that diverged threads of a warp do not overwrite uniform registers that
 * others read. */
static descriptor_registers registers_at_ends(const rl_disassembly *function, descriptor_registers at_beginning) {
  descriptor_registers now = 0, at_end = at_beginning;
  for (size_t i = 0; i < function->count; i++) {
    const rl_sass_instruction *instruction = &function->items[i];
    if (begins_block(function, i)) {
      at_end &= now;
      now = at_beginning;
    }
    now = execute(instruction, now);
    if (may_branch(instruction)) at_end &= now;
    if (ends_block(instruction)) now = ALL_REGISTERS;
  }
  return at_end;
}

/* Returns the memory descriptor of the instruction; NULL: none. The matrix descriptors of HGMMA, gdesc[UR8], are none. */
static const char *find_memory_descriptor(const char *text) {
  for (const char *found = text; (found = strstr(found, "desc[")) != NULL; found++)
    if (found > text && (found[-1] == ' ' || found[-1] == ',')) return found;
  return NULL;
}

/* Returns whether the instruction accesses global memory only with a descriptor in the registers, or does not access L2. */
static bool keeps_policy(const rl_sass_instruction *instruction, descriptor_registers registers) {
  static const char *const global_accesses[] = {"LDG", "STG", "ATOMG", "REDG", "LDGSTS"};
  /* Local memory has the policy evict_first; generic addresses may be local. Textures and the TMA are not analysed. */
  static const char *const other_accesses[] = {"LDL", "STL", "LD", "ST", "ATOM", "RED", "QSPC", "LDGMC", "CCTL", "CCTLL"};
  static const char *const other_families[] = {"TEX", "TLD", "TMML", "TXD", "TXQ", "TXA", "SU", "UBLK", "UTMA"};
  static const char *const policies[] = {"EF", "EL", "EU", "LU", "NA"};
  const char *opcode = instruction->opcode, *descriptor = find_memory_descriptor(instruction->text);
  if (strcmp(opcode, "CCTL.IVALL") == 0) return true;
  if (IS_ONE_OF(opcode, other_accesses) || BEGINS_WITH_ONE_OF(opcode, other_families)) return false;
  if (!IS_ONE_OF(opcode, global_accesses)) return descriptor == NULL;
  for (size_t i = 0; i < COUNT(policies); i++)
    if (has_part(opcode, policies[i])) return false;
  const int first = descriptor != NULL ? uniform_register_at(descriptor + strlen("desc[")) : -1;
  return first >= 0 && first < UNIFORM_REGISTER_COUNT && (registers & UINT64_C(1) << first) != 0;
}

bool rl_may_change_l2_eviction(const rl_disassembly *function) {
  descriptor_registers at_beginning = ALL_REGISTERS, now = 0;
  for (descriptor_registers at_end; (at_end = registers_at_ends(function, at_beginning)) != at_beginning;) at_beginning = at_end;
  for (size_t i = 0; i < function->count; i++) {
    if (begins_block(function, i)) now = at_beginning;
    if (!keeps_policy(&function->items[i], now)) return true;
    now = execute(&function->items[i], now);
  }
  return false;
}
