/* Tests that values of single instructions become records, sums and a histogram. Nsight Compute computes the expected numbers
 * from the same values. */
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

static void add_value(rl_instruction_profile *profile, int64_t offset, const char *metric, double value) {
  assert_int_equal(rl_instruction_profile_add(profile, offset, metric, value, &err), 0);
}

/* threads: active threads; threads_true: active threads that are not predicated off. */
static void add_executed(rl_instruction_profile *profile, int64_t offset, double warp_instructions, double threads,
                         double threads_true) {
  add_value(profile, offset, RL_INST_EXECUTED, warp_instructions);
  add_value(profile, offset, RL_THREAD_INST_EXECUTED, threads);
  add_value(profile, offset, RL_THREAD_INST_EXECUTED_TRUE, threads_true);
}

static rl_disassembly disassemble(const char *text) {
  rl_disassembly sass = {0};
  assert_int_equal(rl_disassembly_parse(text, strlen(text), &sass, &err), 0);
  return sass;
}

static void records_join_sass_values_and_lines(void **state) {
  (void)state;
  rl_disassembly sass = disassemble("/*0000*/ LDC R1, c[0x0][0x28] ;\n/*0010*/ @!P0 LDG.E R2, [R2] ;\n/*0030*/ EXIT ;\n");
  rl_instruction_profile profile = {.sass = &sass};
  rl_records records = {0};
  add_value(&profile, 0x10, "smsp__pcsamp_sample_count", 3);
  add_value(&profile, 0x20, RL_INST_EXECUTED, 5);
  add_value(&profile, 0x10, RL_INST_EXECUTED, 64);
  add_value(&profile, RL_OFFSET_IN_CALLED_FUNCTION, RL_INST_EXECUTED, 1000);
  add_value(&profile, 0x10, "smsp__pcsamp_sample_count", 4);
  assert_int_equal(rl_instruction_profile_append(&profile, 6, NULL, &records, &err), 0);
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
  rl_instruction_profile_clear(&profile);
  rl_disassembly_clear(&sass);
}

static void find_line(void *context, int64_t offset, char *file, size_t size, int64_t *line) {
  if (offset == 0) return;
  snprintf(file, size, "%s", (const char *)context);
  *line = 100 + offset;
}

static void without_sass_there_is_a_reason(void **state) {
  (void)state;
  rl_instruction_profile profile = {.sass_reason = "nvdisasm is not installed"};
  rl_records records = {0};
  rl_line_lookup lines = {find_line, (void *)"a.cu"};
  add_value(&profile, 16, RL_INST_EXECUTED, 0);
  add_value(&profile, 0, RL_INST_EXECUTED, 1);
  assert_int_equal(rl_instruction_profile_append(&profile, 0, &lines, &records, &err), 0);
  assert_int_equal(records.instruction_count, 2);
  assert_string_equal(records.instructions[0].file, "");
  assert_string_equal(records.instructions[0].reason, "nvdisasm is not installed");
  assert_string_equal(records.instructions[1].file, "a.cu");
  assert_int_equal(records.instructions[1].line, 116);
  assert_string_equal(records.instructions[1].counts, "{\"inst_executed\":0}");
  rl_records_clear(&records);
  rl_instruction_profile_clear(&profile);
}

/* One instruction has 80 metrics with long values. */
static void many_values_stay_json(void **state) {
  (void)state;
  static char names[80][64];
  rl_instruction_profile profile = {0};
  rl_records records = {0};
  for (int i = 0; i < 80; i++) {
    snprintf(names[i], sizeof names[i], "smsp__pcsamp_warps_issue_stalled_reason_number_%02d_not_issued", i);
    add_value(&profile, 0, names[i], 1.0 / 3 * 1e15);
  }
  assert_int_equal(rl_instruction_profile_append(&profile, 0, NULL, &records, &err), 0);
  cJSON *json = rl_json_parse(records.instructions[0].counts, strlen(records.instructions[0].counts), &err);
  assert_non_null(json);
  assert_true(cJSON_GetArraySize(json) >= 30);
  cJSON_Delete(json);
  rl_records_clear(&records);
  rl_instruction_profile_clear(&profile);
}

static void dropped_samples_are_of_no_instruction(void **state) {
  (void)state;
  rl_instruction_profile profile = {0};
  rl_records records = {0};
  assert_non_null(strstr(rl_instruction_profile_no_sample_reason(&profile), "before a sample was taken"));
  assert_true(rl_instruction_profile_sum(&profile, RL_DROPPED_SAMPLES) == 0);
  add_executed(&profile, 0, 8, 256, 256);
  assert_int_equal(rl_instruction_profile_add_dropped(&profile, 700, &err), 0);
  assert_int_equal(rl_instruction_profile_add_dropped(&profile, 50, &err), 0); /* of another round */
  assert_non_null(strstr(rl_instruction_profile_no_sample_reason(&profile), "dropped all samples"));
  assert_true(rl_instruction_profile_sum(&profile, RL_DROPPED_SAMPLES) == 750);
  assert_true(rl_instruction_profile_sum(&profile, "smsp__pcsamp_sample_count") == 0);
  assert_int_equal(rl_instruction_profile_append(&profile, 0, NULL, &records, &err), 0);
  assert_int_equal(records.instruction_count, 1);
  assert_null(strstr(records.instructions[0].counts, "dropped"));
  rl_records_clear(&records);
  rl_instruction_profile_clear(&profile);
}

/* Threads per warp of four instructions, rounded down: 32; 32, of which 16 are predicated off; 0, because it was never executed;
 * 16, of which 15 are not predicated off. */
static void divergence_is_as_in_ncu(void **state) {
  (void)state;
  rl_instruction_profile profile = {0};
  add_executed(&profile, 48, 100, 1600, 1550); /* 16, 15.5 */
  add_executed(&profile, 0, 2112, 67584, 67584);
  add_executed(&profile, 16, 2112, 67584, 33792);
  add_executed(&profile, 32, 0, 0, 0);
  add_value(&profile, 64, "smsp__pcsamp_sample_count", 9); /* no inst_executed: not an instruction of the function */
  rl_divergence sums = rl_instruction_profile_divergence(&profile);
  assert_true(sums.executed == 32 + 32 + 0 + 16);
  assert_true(sums.executed_true == 32 + 16 + 0 + 15);
  assert_true(sums.unexecuted_true == 0 + 16 + 32 + 17);
  assert_true(sums.derivative_true == 16 + 16 + 15);
  rl_instruction_profile_clear(&profile);
}

static void shared_conflicts_are_as_in_ncu(void **state) {
  (void)state;
  rl_instruction_profile profile = {0};
  add_value(&profile, 0, RL_INST_EXECUTED, 8448);
  add_value(&profile, 0, RL_WAVEFRONTS_SHARED, 67584);
  for (int i = 1; i <= 5; i++) {
    add_value(&profile, 16 * i, RL_INST_EXECUTED, 1056);
    add_value(&profile, 16 * i, RL_WAVEFRONTS_SHARED, 1056);
  }
  add_value(&profile, 96, RL_INST_EXECUTED, 77);
  assert_true(rl_instruction_profile_shared_conflicts(&profile) == 13);
  assert_true(rl_instruction_profile_sum(&profile, RL_WAVEFRONTS_SHARED) == 67584 + 5 * 1056);
  add_value(&profile, RL_OFFSET_IN_CALLED_FUNCTION, RL_WAVEFRONTS_SHARED, 100);
  add_value(&profile, RL_OFFSET_IN_CALLED_FUNCTION, RL_INST_EXECUTED, 10);
  assert_true(rl_instruction_profile_shared_conflicts(&profile) == 13);
  assert_true(rl_instruction_profile_sum(&profile, RL_WAVEFRONTS_SHARED) == 67584 + 5 * 1056 + 100);
  assert_true(rl_instruction_profile_sum(&profile, RL_INST_EXECUTED) == 8448 + 5 * 1056 + 77 + 10);
  rl_instruction_profile_clear(&profile);
}

static double executed_of(const rl_opcode_count *counts, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (strcmp(counts[i].name, name) == 0) return counts[i].executed;
  return NAN;
}

static void the_histogram_is_as_in_ncu(void **state) {
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
  char sass_text[CASES * 64] = "";
  size_t used = 0;
  for (int i = 0; i < CASES; i++)
    used += (size_t)snprintf(sass_text + used, sizeof sass_text - used, "/*%04x*/ @P0 %s R0 ;\n", 16 * i, cases[i].opcode);
  rl_disassembly sass = disassemble(sass_text);
  rl_opcode_count counts[RL_MAX_OPCODE_COUNTS];
  for (int i = 0; i < CASES; i++) {
    rl_instruction_profile profile = {.sass = &sass};
    char opcode[32];
    add_value(&profile, 16 * i, RL_INST_EXECUTED, 1000 + i);
    assert_int_equal(rl_instruction_profile_histogram(&profile, RL_BY_CATEGORY, counts), 1);
    assert_string_equal(counts[0].name, cases[i].category);
    assert_int_equal(rl_instruction_profile_histogram(&profile, RL_BY_OPCODE, counts), 1);
    snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(cases[i].opcode, "."), cases[i].opcode);
    assert_string_equal(counts[0].name, opcode);
    rl_instruction_profile_clear(&profile);
  }
  rl_instruction_profile profile = {.sass = &sass};
  for (int i = 0; i < CASES; i++) add_value(&profile, 16 * i, RL_INST_EXECUTED, 10);
  add_value(&profile, 0x8000, RL_INST_EXECUTED, 3); /* without SASS */
  int count = rl_instruction_profile_histogram(&profile, RL_BY_CATEGORY, counts);
  assert_true(executed_of(counts, count, "Uniform Datapath") == 30 && executed_of(counts, count, "Floating Point") == 20);
  assert_true(executed_of(counts, count, "Miscellaneous") == 23);
  for (int i = 1; i < count; i++) assert_true(counts[i].executed <= counts[i - 1].executed);
  rl_instruction_profile_clear(&profile);
  rl_disassembly_clear(&sass);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(records_join_sass_values_and_lines),
                                     cmocka_unit_test(without_sass_there_is_a_reason),
                                     cmocka_unit_test(many_values_stay_json),
                                     cmocka_unit_test(dropped_samples_are_of_no_instruction),
                                     cmocka_unit_test(divergence_is_as_in_ncu),
                                     cmocka_unit_test(shared_conflicts_are_as_in_ncu),
                                     cmocka_unit_test(the_histogram_is_as_in_ncu)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
