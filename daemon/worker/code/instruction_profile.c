/* A profile is an array of (offset, metric, value). Functions that need all values of one instruction first sort the array by
 * offset. */
#include "worker/code/instruction_profile.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const size_t MAX_INSTRUCTIONS = 1 << 16;

int rl_instruction_profile_add(rl_instruction_profile *profile, int64_t offset, const char *metric, double value, rl_error *err) {
  if (rl_array_reserve(&profile->values, profile->count, &profile->capacity, sizeof *profile->values, err) < 0) return -1;
  profile->values[profile->count++] = (rl_pc_value){offset, metric, value};
  return 0;
}

double rl_instruction_profile_sum(const rl_instruction_profile *profile, const char *metric) {
  double sum = 0;
  for (size_t i = 0; i < profile->count; i++)
    if (strcmp(profile->values[i].metric, metric) == 0) sum += profile->values[i].value;
  return sum;
}

int rl_instruction_profile_add_dropped(rl_instruction_profile *profile, double samples, rl_error *err) {
  return rl_instruction_profile_add(profile, RL_OFFSET_IN_CALLED_FUNCTION, RL_DROPPED_SAMPLES, samples, err);
}

const char *rl_instruction_profile_no_sample_reason(const rl_instruction_profile *profile) {
  return rl_instruction_profile_sum(profile, RL_DROPPED_SAMPLES) > 0 ? "the hardware dropped all samples of the launch"
                                                                     : "the kernel ended before a sample was taken";
}

void rl_instruction_profile_clear(rl_instruction_profile *profile) {
  free(profile->values);
  *profile = (rl_instruction_profile){0};
}

static int compare_offset(const void *a, const void *b) {
  const rl_pc_value *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return strcmp(x->metric, y->metric);
}

/* Sorts by offset. The values of called functions then come first, because their offset is RL_OFFSET_IN_CALLED_FUNCTION. Returns
 * the index of the first value of the kernel's own code. */
static size_t sort_values(rl_instruction_profile *profile) {
  size_t first_of_kernel = 0;
  if (profile->count > 0) qsort(profile->values, profile->count, sizeof *profile->values, compare_offset);
  while (first_of_kernel < profile->count && profile->values[first_of_kernel].offset == RL_OFFSET_IN_CALLED_FUNCTION)
    first_of_kernel++;
  return first_of_kernel;
}

/* Returns the index after the last value of the instruction whose first value has index `from`. The values must be sorted. */
static size_t instruction_end(const rl_instruction_profile *profile, size_t from) {
  size_t end = from;
  while (end < profile->count && profile->values[end].offset == profile->values[from].offset) end++;
  return end;
}

/* Adds up the values of one metric in [from, to). Returns false if the metric has no value there. */
static bool sum_metric(const rl_instruction_profile *profile, size_t from, size_t to, const char *metric, double *value) {
  bool found = false;
  *value = 0;
  for (size_t i = from; i < to; i++)
    if (strcmp(profile->values[i].metric, metric) == 0) *value += profile->values[i].value, found = true;
  return found;
}

/* Returns the sum of the metric in [from, to) per executed warp, rounded down; 0 if no warp executed the instruction. */
static double average_per_warp(const rl_instruction_profile *profile, size_t from, size_t to, const char *metric,
                               double executed_warps) {
  double value;
  (void)sum_metric(profile, from, to, metric, &value);
  return executed_warps > 0 ? floor(value / executed_warps) : 0;
}

rl_divergence rl_instruction_profile_divergence(rl_instruction_profile *profile) {
  enum { WARP_SIZE = 32 };
  rl_divergence sums = {0};
  double previous = NAN, executed;
  for (size_t from = sort_values(profile), to; from < profile->count; from = to) {
    to = instruction_end(profile, from);
    if (!sum_metric(profile, from, to, RL_INST_EXECUTED, &executed)) continue;
    double threads_true = average_per_warp(profile, from, to, RL_THREAD_INST_EXECUTED_TRUE, executed);
    sums.executed += average_per_warp(profile, from, to, RL_THREAD_INST_EXECUTED, executed);
    sums.executed_true += threads_true;
    sums.unexecuted_true += WARP_SIZE - threads_true;
    if (!isnan(previous)) sums.derivative_true += fabs(threads_true - previous);
    previous = threads_true;
  }
  return sums;
}

double rl_instruction_profile_shared_conflicts(rl_instruction_profile *profile) {
  double sum = 0, executed;
  for (size_t from = sort_values(profile), to; from < profile->count; from = to) {
    to = instruction_end(profile, from);
    if (sum_metric(profile, from, to, RL_INST_EXECUTED, &executed))
      sum += average_per_warp(profile, from, to, RL_WAVEFRONTS_SHARED, executed);
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
    if (used + length + 2 > size) break; /* cannot happen: the values of all metrics of the catalogue fit */
    memcpy(text + used, entry, length);
    used += length;
  }
  memcpy(text + used, "}", 2);
}

static void set_sass(const rl_instruction_profile *profile, const rl_sass_instruction *sass, rl_instruction *record) {
  if (sass != NULL) {
    snprintf(record->opcode, sizeof record->opcode, "%s", sass->opcode);
    snprintf(record->sass, sizeof record->sass, "%s", sass->text);
  } else {
    snprintf(record->reason, sizeof record->reason, "%s",
             profile->sass == NULL ? profile->sass_reason : "nvdisasm has no instruction here");
  }
}

int rl_instruction_profile_append(rl_instruction_profile *profile, int64_t ordinal, const rl_line_lookup *lines,
                                  rl_records *records, rl_error *err) {
  static const rl_disassembly no_sass;
  const rl_disassembly *disassembly = profile->sass != NULL ? profile->sass : &no_sass;
  size_t sass_index = 0, value_index = sort_values(profile);
  for (size_t record_count = 0;
       record_count < MAX_INSTRUCTIONS && (sass_index < disassembly->count || value_index < profile->count); record_count++) {
    int64_t value_offset = value_index < profile->count ? profile->values[value_index].offset : INT64_MAX;
    const rl_sass_instruction *sass = sass_index < disassembly->count && disassembly->items[sass_index].offset <= value_offset
                                          ? &disassembly->items[sass_index]
                                          : NULL;
    rl_instruction record = {.ordinal = ordinal, .offset = sass != NULL ? sass->offset : value_offset};
    size_t end = record.offset == value_offset ? instruction_end(profile, value_index) : value_index;
    set_sass(profile, sass, &record);
    print_counts(profile, value_index, end, record.counts, sizeof record.counts);
    if (lines != NULL) lines->find(lines->context, record.offset, record.file, sizeof record.file, &record.line);
    if (rl_records_add(records, RL_RECORD_INSTRUCTION, &record, 1, err) < 0) return -1;
    sass_index += sass != NULL;
    value_index = end;
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

static int compare_executed_descending(const void *a, const void *b) {
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
  qsort(counts, (size_t)count, sizeof *counts, compare_executed_descending);
  return count;
}
