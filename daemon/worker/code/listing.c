#include "worker/code/listing.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MOST_INSTRUCTIONS = 1 << 16;

int rl_listing_add(rl_listing *listing, int64_t offset, const char *metric, double value, rl_error *err) {
  if (listing->count == listing->capacity) {
    size_t capacity = listing->capacity == 0 ? 256 : 2 * listing->capacity;
    rl_pc_count *grown = realloc(listing->counts, capacity * sizeof *grown);
    if (grown == NULL) return rl_fail(err, RL_SYS, ENOMEM, "no memory for counts by instruction");
    listing->counts = grown;
    listing->capacity = capacity;
  }
  listing->counts[listing->count++] = (rl_pc_count){offset, metric, value};
  return 0;
}

double rl_listing_sum(const rl_listing *listing, const char *metric) {
  double sum = 0;
  for (size_t i = 0; i < listing->count; i++)
    if (strcmp(listing->counts[i].metric, metric) == 0) sum += listing->counts[i].value;
  return sum;
}

void rl_listing_clear(rl_listing *listing) {
  free(listing->counts);
  *listing = (rl_listing){0};
}

/* --- one instruction after the other ----------------------------------------------------------------------------------- */

static int by_offset(const void *a, const void *b) {
  const rl_pc_count *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return strcmp(x->metric, y->metric);
}

/* By offset; returns where those of the function itself begin. */
static size_t sort(rl_listing *listing) {
  size_t own = 0;
  if (listing->count > 0) qsort(listing->counts, listing->count, sizeof *listing->counts, by_offset);
  while (own < listing->count && listing->counts[own].offset == RL_ELSEWHERE) own++;
  return own;
}

/* Sorted: where the counts of the instruction at `from` end. */
static size_t end_of(const rl_listing *listing, size_t from) {
  size_t at = from;
  while (at < listing->count && listing->counts[at].offset == listing->counts[from].offset) at++;
  return at;
}

/* Of one metric among the counts [from, to); false when it is not there. */
static bool find(const rl_listing *listing, size_t from, size_t to, const char *metric, double *value) {
  bool found = false;
  *value = 0;
  for (size_t i = from; i < to; i++)
    if (strcmp(listing->counts[i].metric, metric) == 0) *value += listing->counts[i].value, found = true;
  return found;
}

static double per_warp(const rl_listing *listing, size_t from, size_t to, const char *metric, double executed) {
  double value;
  (void)find(listing, from, to, metric, &value);
  return executed > 0 ? floor(value / executed) : 0;
}

rl_divergence rl_listing_divergence(rl_listing *listing) {
  enum { WARP = 32 };
  rl_divergence sums = {0};
  double before = NAN, executed;
  for (size_t from = sort(listing), to; from < listing->count; from = to) {
    to = end_of(listing, from);
    if (!find(listing, from, to, RL_EXECUTED, &executed)) continue;
    double on = per_warp(listing, from, to, RL_THREADS_ON, executed);
    sums.executed += per_warp(listing, from, to, RL_THREADS, executed);
    sums.executed_on += on;
    sums.unexecuted_on += WARP - on;
    if (!isnan(before)) sums.derivative_on += fabs(on - before);
    before = on;
  }
  return sums;
}

double rl_listing_conflicts(rl_listing *listing) {
  double sum = 0, executed;
  for (size_t from = sort(listing), to; from < listing->count; from = to) {
    to = end_of(listing, from);
    if (find(listing, from, to, RL_EXECUTED, &executed)) sum += per_warp(listing, from, to, RL_WAVEFRONTS_SHARED, executed);
  }
  return sum;
}

/* --- rows -------------------------------------------------------------------------------------------------------------- */

/* The counts [from, to) of one instruction as a JSON object. */
static void print_counts(const rl_listing *listing, size_t from, size_t to, char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size, "{");
  for (size_t at = from; at < to;) {
    const char *metric = listing->counts[at].metric;
    double value = 0;
    char entry[160];
    for (; at < to && strcmp(listing->counts[at].metric, metric) == 0; at++) value += listing->counts[at].value;
    size_t length = (size_t)snprintf(entry, sizeof entry, "%s\"%s\":%.15g", used > 1 ? "," : "", metric, value);
    if (used + length + 2 > size) break; /* there are fewer metrics than fill it */
    memcpy(text + used, entry, length);
    used += length;
  }
  memcpy(text + used, "}", 2);
}

static void put_text(const rl_listing *listing, const rl_sass *sass, rl_instruction *row) {
  if (sass != NULL) {
    snprintf(row->opcode, sizeof row->opcode, "%s", sass->opcode);
    snprintf(row->sass, sizeof row->sass, "%s", sass->text);
  } else {
    snprintf(row->reason, sizeof row->reason, "%s",
             listing->text == NULL ? listing->text_reason : "nvdisasm has no instruction here");
  }
}

int rl_listing_append(rl_listing *listing, int64_t ordinal, const rl_source_places *places, rl_records *records, rl_error *err) {
  static const rl_disassembly none;
  const rl_disassembly *text = listing->text != NULL ? listing->text : &none;
  size_t line = 0, next = sort(listing);
  for (size_t rows = 0; rows < MOST_INSTRUCTIONS && (line < text->count || next < listing->count); rows++) {
    int64_t counted = next < listing->count ? listing->counts[next].offset : INT64_MAX;
    const rl_sass *sass = line < text->count && text->items[line].offset <= counted ? &text->items[line] : NULL;
    rl_instruction row = {.ordinal = ordinal, .offset = sass != NULL ? sass->offset : counted};
    size_t end = row.offset == counted ? end_of(listing, next) : next;
    put_text(listing, sass, &row);
    print_counts(listing, next, end, row.counts, sizeof row.counts);
    if (places != NULL) places->find(places->context, row.offset, row.file, sizeof row.file, &row.line);
    if (rl_records_add(records, RL_RECORD_INSTRUCTION, &row, 1, err) < 0) return -1;
    line += sass != NULL;
    next = end;
  }
  return 0;
}

/* --- mix --------------------------------------------------------------------------------------------------------------- */

/* As NVIDIA's "CUDA Binary Utilities" sorts the instructions of Turing to Blackwell. What starts with a U and is not named is of
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
  const rl_mix_part *x = a, *y = b;
  if (x->executed != y->executed) return x->executed > y->executed ? -1 : 1;
  return strcmp(x->name, y->name);
}

static void add_part(rl_mix_part *parts, int *count, const char *name, double executed) {
  int at = 0;
  while (at < *count && strcmp(parts[at].name, name) != 0) at++;
  if (at == RL_MIX_MOST) return;
  if (at == *count) {
    parts[(*count)++] = (rl_mix_part){0};
    snprintf(parts[at].name, sizeof parts[at].name, "%s", name);
  }
  parts[at].executed += executed;
}

int rl_listing_mix(rl_listing *listing, rl_mix_key key, rl_mix_part parts[RL_MIX_MOST]) {
  int count = 0;
  for (size_t i = 0; i < listing->count; i++) {
    char opcode[32] = "unknown";
    const rl_pc_count *item = &listing->counts[i];
    if (strcmp(item->metric, RL_EXECUTED) != 0 || item->value == 0) continue;
    const rl_sass *sass = rl_disassembly_at(listing->text, item->offset);
    if (sass != NULL) snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(sass->opcode, "."), sass->opcode);
    add_part(parts, &count, key == RL_MIX_OPCODE ? opcode : category_of(opcode), item->value);
  }
  qsort(parts, (size_t)count, sizeof *parts, largest_first);
  return count;
}
