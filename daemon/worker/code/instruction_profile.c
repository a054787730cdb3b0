#include "worker/code/instruction_profile.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MAX_INSTRUCTIONS = 1 << 16;

int rl_instruction_profile_add(rl_instruction_profile *profile, int64_t offset, const char *metric, double value, rl_error *err) {
  if (profile->count == profile->capacity) {
    size_t capacity = profile->capacity == 0 ? 256 : 2 * profile->capacity;
    rl_pc_value *grown = realloc(profile->values, capacity * sizeof *grown);
    if (grown == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for values by instruction");
    profile->values = grown;
    profile->capacity = capacity;
  }
  profile->values[profile->count++] = (rl_pc_value){offset, metric, value};
  return 0;
}

double rl_instruction_profile_sum(const rl_instruction_profile *profile, const char *metric) {
  double sum = 0;
  for (size_t i = 0; i < profile->count; i++)
    if (strcmp(profile->values[i].metric, metric) == 0) sum += profile->values[i].value;
  return sum;
}

void rl_instruction_profile_clear(rl_instruction_profile *profile) {
  free(profile->values);
  *profile = (rl_instruction_profile){0};
}

static int by_offset(const void *a, const void *b) {
  const rl_pc_value *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return strcmp(x->metric, y->metric);
}

/* Sorts by offset. The values of called functions come first; returns the index of the first value of the function itself. */
static size_t sort_values(rl_instruction_profile *profile) {
  size_t own = 0;
  if (profile->count > 0) qsort(profile->values, profile->count, sizeof *profile->values, by_offset);
  while (own < profile->count && profile->values[own].offset == RL_OTHER_FUNCTION) own++;
  return own;
}

/* Returns the index after the last value of the instruction whose first value is at index `from`. Sorted. */
static size_t instruction_end(const rl_instruction_profile *profile, size_t from) {
  size_t end = from;
  while (end < profile->count && profile->values[end].offset == profile->values[from].offset) end++;
  return end;
}

/* Adds up one metric over the values [from, to); false when it has none. */
static bool sum_metric(const rl_instruction_profile *profile, size_t from, size_t to, const char *metric, double *value) {
  bool found = false;
  *value = 0;
  for (size_t i = from; i < to; i++)
    if (strcmp(profile->values[i].metric, metric) == 0) *value += profile->values[i].value, found = true;
  return found;
}

static double per_warp(const rl_instruction_profile *profile, size_t from, size_t to, const char *metric, double executed) {
  double value;
  (void)sum_metric(profile, from, to, metric, &value);
  return executed > 0 ? floor(value / executed) : 0;
}

rl_divergence rl_instruction_profile_divergence(rl_instruction_profile *profile) {
  enum { WARP_SIZE = 32 };
  rl_divergence sums = {0};
  double previous = NAN, executed;
  for (size_t from = sort_values(profile), to; from < profile->count; from = to) {
    to = instruction_end(profile, from);
    if (!sum_metric(profile, from, to, RL_INST_EXECUTED, &executed)) continue;
    double on = per_warp(profile, from, to, RL_THREAD_INST_EXECUTED_TRUE, executed);
    sums.executed += per_warp(profile, from, to, RL_THREAD_INST_EXECUTED, executed);
    sums.executed_on += on;
    sums.unexecuted_on += WARP_SIZE - on;
    if (!isnan(previous)) sums.derivative_on += fabs(on - previous);
    previous = on;
  }
  return sums;
}

double rl_instruction_profile_shared_conflicts(rl_instruction_profile *profile) {
  double sum = 0, executed;
  for (size_t from = sort_values(profile), to; from < profile->count; from = to) {
    to = instruction_end(profile, from);
    if (sum_metric(profile, from, to, RL_INST_EXECUTED, &executed))
      sum += per_warp(profile, from, to, RL_WAVEFRONTS_SHARED, executed);
  }
  return sum;
}

/* Prints the values [from, to) of one instruction as a JSON object. */
static void print_counts(const rl_instruction_profile *profile, size_t from, size_t to, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "{");
  for (size_t i = from; i < to;) {
    const char *metric = profile->values[i].metric;
    double value = 0;
    char entry[160];
    for (; i < to && strcmp(profile->values[i].metric, metric) == 0; i++) value += profile->values[i].value;
    size_t length = (size_t)snprintf(entry, sizeof entry, "%s\"%s\":%.15g", used > 1 ? "," : "", metric, value);
    if (used + length + 2 > size) break; /* the catalogue has fewer metrics than fit */
    memcpy(text + used, entry, length);
    used += length;
  }
  memcpy(text + used, "}", 2);
}

static void set_sass(const rl_instruction_profile *profile, const rl_sass_instruction *sass, rl_instruction *row) {
  if (sass != NULL) {
    snprintf(row->opcode, sizeof row->opcode, "%s", sass->opcode);
    snprintf(row->sass, sizeof row->sass, "%s", sass->text);
  } else {
    snprintf(row->reason, sizeof row->reason, "%s",
             profile->sass == NULL ? profile->sass_reason : "nvdisasm has no instruction here");
  }
}

int rl_instruction_profile_append(rl_instruction_profile *profile, int64_t ordinal, const rl_line_lookup *lines,
                                  rl_records *records, rl_error *err) {
  static const rl_disassembly none;
  const rl_disassembly *text = profile->sass != NULL ? profile->sass : &none;
  size_t line = 0, next = sort_values(profile);
  for (size_t rows = 0; rows < MAX_INSTRUCTIONS && (line < text->count || next < profile->count); rows++) {
    int64_t counted = next < profile->count ? profile->values[next].offset : INT64_MAX;
    const rl_sass_instruction *sass = line < text->count && text->items[line].offset <= counted ? &text->items[line] : NULL;
    rl_instruction row = {.ordinal = ordinal, .offset = sass != NULL ? sass->offset : counted};
    size_t end = row.offset == counted ? instruction_end(profile, next) : next;
    set_sass(profile, sass, &row);
    print_counts(profile, next, end, row.counts, sizeof row.counts);
    if (lines != NULL) lines->find(lines->context, row.offset, row.file, sizeof row.file, &row.line);
    if (rl_records_add(records, RL_RECORD_INSTRUCTION, &row, 1, err) < 0) return -1;
    line += sass != NULL;
    next = end;
  }
  return 0;
}

/* Categories of opcodes as in NVIDIA's "CUDA Binary Utilities" for Turing to Blackwell. Other opcodes that start with U belong to
 * the uniform datapath. */
static const struct {
  const char *category, *opcodes;
} categories[] = {
    {"Floating Point",
     " FADD FADD2 FADD32I FCHK FFMA FFMA2 FFMA32I FMNMX FMNMX3 FMUL FMUL2 FMUL32I FRND2 FSEL FSET FSETP FSWZADD MUFU "
     "HADD2 HADD2_32I HFMA2 HFMA2_32I HMMA HMNMX2 HMUL2 HMUL2_32I HSET2 HSETP2 OMMA QMMA DADD DFMA DMMA DMUL DSETP "},
    {"Integer",
     " BMMA BMSK BREV FLO IABS IADD IADD3 IADD32I IDP IDP4A IMAD IMMA IMNMX IMUL IMUL32I ISCADD ISCADD32I ISETP LEA LOP LOP3 "
     "LOP32I POPC SHF SHL SHR VABSDIFF VABSDIFF4 VHMNMX VIADD VIADDMNMX VIMNMX VIMNMX3 "},
    {"Conversion", " F2F F2I F2IP F2FP I2F I2FP I2I I2IP FRND "},
    {"Movement", " MOV MOV32I MOVM PRMT SEL SGXT SHFL "},
    {"Predicate", " PLOP3 PSETP P2R R2P "},
    {"Load/Store",
     " LD LDC LDG LDGDEPBAR LDGMC LDGSTS LDL LDS LDSM STSM ST STG STL STS STAS SYNCS MATCH QSPC ATOM ATOMS ATOMG REDAS REDG "
     "RED CCTL CCTLL ERRBAR MEMBAR CCTLT FENCE "},
    {"Uniform Datapath", " R2UR S2UR REDUX CREDUX CS2UR LDCU VOTEU "},
    {"Warpgroup", " BGMMA HGMMA IGMMA QGMMA WARPGROUP WARPGROUPSET "},
    {"Tensor Memory Access", " UBLKCP UBLKPF UBLKRED UTMACCTL UTMACMDFLUSH UTMALDG UTMAPF UTMAREDG UTMASTG "},
    {"Tensor Core Memory", " LDT LDTM STT STTM UTCATOMSWS UTCBAR UTCCP UTCHMMA UTCIMMA UTCOMMA UTCQMMA UTCSHIFT "},
    {"Texture", " TEX TLD TLD4 TMML TXD TXQ "},
    {"Surface", " SUATOM SULD SURED SUST "},
    {"Control",
     " ACQBULK ACQSHMINIT BMOV BPT BRA BREAK BRX BRXU BSSY BSYNC CALL CGAERRBAR ELECT ENDCOLLECTIVE EXIT JMP JMX JMXU KILL "
     "NANOSLEEP PREEXIT RET RPCMOV RTT UCGABAR_ARV UCGABAR_WAIT WARPSYNC YIELD "},
};

static const char *category_of(const char *opcode) {
  char word[40];
  snprintf(word, sizeof word, " %s ", opcode);
  for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
    if (strstr(categories[i].opcodes, word) != NULL) return categories[i].category;
  return opcode[0] == 'U' ? "Uniform Datapath" : "Miscellaneous";
}

static int largest_first(const void *a, const void *b) {
  const rl_opcode_count *x = a, *y = b;
  if (x->executed != y->executed) return x->executed > y->executed ? -1 : 1;
  return strcmp(x->name, y->name);
}

static void add_to_histogram(rl_opcode_count *counts, int *count, const char *name, double executed) {
  int i = 0;
  while (i < *count && strcmp(counts[i].name, name) != 0) i++;
  if (i == RL_MAX_OPCODE_COUNTS) return;
  if (i == *count) {
    counts[(*count)++] = (rl_opcode_count){0};
    snprintf(counts[i].name, sizeof counts[i].name, "%s", name);
  }
  counts[i].executed += executed;
}

int rl_instruction_profile_histogram(rl_instruction_profile *profile, rl_opcode_grouping grouping,
                                     rl_opcode_count counts[RL_MAX_OPCODE_COUNTS]) {
  int count = 0;
  for (size_t i = 0; i < profile->count; i++) {
    char opcode[32] = "unknown";
    const rl_pc_value *item = &profile->values[i];
    if (strcmp(item->metric, RL_INST_EXECUTED) != 0 || item->value == 0) continue;
    const rl_sass_instruction *sass = rl_disassembly_find(profile->sass, item->offset);
    if (sass != NULL) snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(sass->opcode, "."), sass->opcode);
    add_to_histogram(counts, &count, grouping == RL_BY_OPCODE ? opcode : category_of(opcode), item->value);
  }
  qsort(counts, (size_t)count, sizeof *counts, largest_first);
  return count;
}
