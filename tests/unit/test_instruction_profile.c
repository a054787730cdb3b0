/* listing: counts by instruction become rows, sums and a mix. Expected numbers are those that Nsight Compute gives for the same
 * counts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "worker/code/instruction_profile.h"

static rl_error err;

static void add(rl_instruction_profile *listing, int64_t offset, const char *metric, double value) {
  assert_int_equal(rl_instruction_profile_add(listing, offset, metric, value, &err), 0);
}

/* Executed by warps; of all their threads; of those not predicated off. */
static void add_executed(rl_instruction_profile *listing, int64_t offset, double warps, double threads, double on) {
  add(listing, offset, RL_INST_EXECUTED, warps);
  add(listing, offset, RL_THREAD_INST_EXECUTED, threads);
  add(listing, offset, RL_THREAD_INST_EXECUTED_TRUE, on);
}

static rl_disassembly disassemble(const char *text) {
  rl_disassembly made = {0};
  assert_int_equal(rl_disassembly_parse(text, strlen(text), &made, &err), 0);
  return made;
}

static void rows_join_text_counts_and_places(void **state) {
  (void)state;
  rl_disassembly text = disassemble("/*0000*/ LDC R1, c[0x0][0x28] ;\n/*0010*/ @!P0 LDG.E R2, [R2] ;\n/*0030*/ EXIT ;\n");
  rl_instruction_profile listing = {.sass = &text};
  rl_records records = {0};
  add(&listing, 0x10, "smsp__pcsamp_sample_count", 3);
  add(&listing, 0x20, RL_INST_EXECUTED, 5);
  add(&listing, 0x10, RL_INST_EXECUTED, 64);
  add(&listing, RL_OTHER_FUNCTION, RL_INST_EXECUTED, 1000);
  add(&listing, 0x10, "smsp__pcsamp_sample_count", 4);
  assert_int_equal(rl_instruction_profile_append(&listing, 6, NULL, &records, &err), 0);
  assert_int_equal(records.instruction_count, 4);
  const rl_instruction *row = records.instructions;
  for (int i = 0; i < 4; i++) assert_true(row[i].offset == 16 * i && row[i].ordinal == 6);
  assert_string_equal(row[0].counts, "{}");
  assert_string_equal(row[1].counts, "{\"inst_executed\":64,\"smsp__pcsamp_sample_count\":7}");
  assert_string_equal(row[1].opcode, "LDG.E");
  assert_string_equal(row[1].reason, "");
  assert_string_equal(row[2].sass, "");
  assert_true(row[2].reason[0] != '\0');
  assert_string_equal(row[3].sass, "EXIT");
  rl_records_clear(&records);
  rl_instruction_profile_clear(&listing);
  rl_disassembly_clear(&text);
}

static void find_line(void *context, int64_t offset, char *file, size_t size, int64_t *line) {
  if (offset == 0) return;
  snprintf(file, size, "%s", (const char *)context);
  *line = 100 + offset;
}

static void without_text_there_is_a_reason(void **state) {
  (void)state;
  rl_instruction_profile listing = {.sass_reason = "nvdisasm is not installed"};
  rl_records records = {0};
  rl_line_lookup places = {find_line, (void *)"a.cu"};
  add(&listing, 16, RL_INST_EXECUTED, 0);
  add(&listing, 0, RL_INST_EXECUTED, 1);
  assert_int_equal(rl_instruction_profile_append(&listing, 0, &places, &records, &err), 0);
  assert_int_equal(records.instruction_count, 2);
  assert_string_equal(records.instructions[0].file, "");
  assert_string_equal(records.instructions[0].reason, "nvdisasm is not installed");
  assert_string_equal(records.instructions[1].file, "a.cu");
  assert_int_equal(records.instructions[1].line, 116);
  assert_string_equal(records.instructions[1].counts, "{\"inst_executed\":0}");
  rl_records_clear(&records);
  rl_instruction_profile_clear(&listing);
}

/* Every metric there is at one instruction, with the longest numbers: still a JSON object. */
static void many_counts_stay_json(void **state) {
  (void)state;
  static char names[80][64];
  rl_instruction_profile listing = {0};
  rl_records records = {0};
  for (int i = 0; i < 80; i++) {
    snprintf(names[i], sizeof names[i], "smsp__pcsamp_warps_issue_stalled_reason_number_%02d_not_issued", i);
    add(&listing, 0, names[i], 1.0 / 3 * 1e15);
  }
  assert_int_equal(rl_instruction_profile_append(&listing, 0, NULL, &records, &err), 0);
  cJSON *counts = rl_json_parse(records.instructions[0].counts, strlen(records.instructions[0].counts), &err);
  assert_non_null(counts);
  assert_true(cJSON_GetArraySize(counts) >= 30);
  cJSON_Delete(counts);
  rl_records_clear(&records);
  rl_instruction_profile_clear(&listing);
}

/* ncu, for a kernel in whose branch half of each warp goes on: 32 + 32 + 16 + 16 threads, the second at half predicate, the third
 * never executed by anyone, and averages rounded down. */
static void divergence_is_ncus(void **state) {
  (void)state;
  rl_instruction_profile listing = {0};
  add_executed(&listing, 48, 100, 1600, 1550); /* 16, 15.5 */
  add_executed(&listing, 0, 2112, 67584, 67584);
  add_executed(&listing, 16, 2112, 67584, 33792);
  add_executed(&listing, 32, 0, 0, 0);
  add(&listing, 64, "smsp__pcsamp_sample_count", 9); /* of no function of ours: no instruction that counts */
  rl_divergence sums = rl_instruction_profile_divergence(&listing);
  assert_true(sums.executed == 32 + 32 + 0 + 16);
  assert_true(sums.executed_on == 32 + 16 + 0 + 15);
  assert_true(sums.unexecuted_on == 0 + 16 + 32 + 17);
  assert_true(sums.derivative_on == 16 + 16 + 15);
  rl_instruction_profile_clear(&listing);
}

static void conflicts_are_ncus(void **state) {
  (void)state;
  rl_instruction_profile listing = {0};
  add(&listing, 0, RL_INST_EXECUTED, 8448);
  add(&listing, 0, RL_WAVEFRONTS_SHARED, 67584);
  for (int i = 1; i <= 5; i++) {
    add(&listing, 16 * i, RL_INST_EXECUTED, 1056);
    add(&listing, 16 * i, RL_WAVEFRONTS_SHARED, 1056);
  }
  add(&listing, 96, RL_INST_EXECUTED, 77);
  assert_true(rl_instruction_profile_shared_conflicts(&listing) == 13);
  assert_true(rl_instruction_profile_sum(&listing, RL_WAVEFRONTS_SHARED) == 67584 + 5 * 1056);
  add(&listing, RL_OTHER_FUNCTION, RL_WAVEFRONTS_SHARED, 100);
  add(&listing, RL_OTHER_FUNCTION, RL_INST_EXECUTED, 10);
  assert_true(rl_instruction_profile_shared_conflicts(&listing) == 13);
  assert_true(rl_instruction_profile_sum(&listing, RL_WAVEFRONTS_SHARED) == 67584 + 5 * 1056 + 100);
  assert_true(rl_instruction_profile_sum(&listing, RL_INST_EXECUTED) == 8448 + 5 * 1056 + 77 + 10);
  rl_instruction_profile_clear(&listing);
}

static double part(const rl_opcode_count *parts, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(parts[i].name, name) == 0) return parts[i].executed;
  return NAN;
}

static void the_mix_is_ncus(void **state) {
  (void)state;
  static const struct {
    const char *opcode, *category;
  } cases[] = {{"IMAD.WIDE.U32", "Integer"},
               {"ULDC.64", "Uniform Datapath"},
               {"S2UR", "Uniform Datapath"},
               {"S2R", "Miscellaneous"},
               {"LDC", "Load/Store"},
               {"LDG.E", "Load/Store"},
               {"EXIT", "Control"},
               {"HMNMX2", "Floating Point"},
               {"FSEL", "Floating Point"},
               {"I2FP.F32.S32", "Conversion"},
               {"PLOP3.LUT", "Predicate"},
               {"MOV", "Movement"},
               {"HGMMA.64x256x16.F32", "Warpgroup"},
               {"UTMALDG.2D", "Tensor Memory Access"},
               {"UNEW", "Uniform Datapath"},
               {"NOP", "Miscellaneous"}};
  enum { CASES = sizeof cases / sizeof *cases };
  char listing_text[CASES * 64] = "";
  size_t used = 0;
  for (int i = 0; i < CASES; i++)
    used += (size_t)snprintf(listing_text + used, sizeof listing_text - used, "/*%04x*/ @P0 %s R0 ;\n", 16 * i, cases[i].opcode);
  rl_disassembly text = disassemble(listing_text);
  rl_opcode_count parts[RL_MAX_OPCODE_COUNTS];
  for (int i = 0; i < CASES; i++) {
    rl_instruction_profile listing = {.sass = &text};
    char opcode[32];
    add(&listing, 16 * i, RL_INST_EXECUTED, 1000 + i);
    assert_int_equal(rl_instruction_profile_histogram(&listing, RL_BY_CATEGORY, parts), 1);
    assert_string_equal(parts[0].name, cases[i].category);
    assert_int_equal(rl_instruction_profile_histogram(&listing, RL_BY_OPCODE, parts), 1);
    snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(cases[i].opcode, "."), cases[i].opcode);
    assert_string_equal(parts[0].name, opcode);
    rl_instruction_profile_clear(&listing);
  }
  rl_instruction_profile listing = {.sass = &text};
  for (int i = 0; i < CASES; i++) add(&listing, 16 * i, RL_INST_EXECUTED, 10);
  add(&listing, 0x8000, RL_INST_EXECUTED, 3); /* without text */
  int count = rl_instruction_profile_histogram(&listing, RL_BY_CATEGORY, parts);
  assert_true(part(parts, count, "Uniform Datapath") == 30 && part(parts, count, "Floating Point") == 20);
  assert_true(part(parts, count, "Miscellaneous") == 23);
  for (int i = 1; i < count; i++) assert_true(parts[i].executed <= parts[i - 1].executed);
  rl_instruction_profile_clear(&listing);
  rl_disassembly_clear(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_join_text_counts_and_places),
                                     cmocka_unit_test(without_text_there_is_a_reason),
                                     cmocka_unit_test(many_counts_stay_json),
                                     cmocka_unit_test(divergence_is_ncus),
                                     cmocka_unit_test(conflicts_are_ncus),
                                     cmocka_unit_test(the_mix_is_ncus)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
