/* Tests operands.h with SASS for compute capability 9.0, in the format of nvdisasm. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "worker/code/operands.h"

typedef double (*operand_counter)(const rl_instruction_profile *profile);

/* Returns what the function counts in this code. Instruction i has the label .L_x_i. 10 warps execute each instruction, with 300
 * threads that are not predicated off. */
static double count_in(operand_counter function, const char *const lines[]) {
  rl_error err = {0};
  rl_disassembly sass = {0};
  rl_instruction_profile profile = {.sass = &sass};
  char text[4096] = "";
  for (int i = 0; lines[i]; i++) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, ".L_x_%d:\n/*%04x*/ %s ;\n", i, 16 * i, lines[i]);
    assert_int_equal(rl_instruction_profile_add(&profile, 16 * i, RL_INST_EXECUTED, 10, &err), 0);
    assert_int_equal(rl_instruction_profile_add(&profile, 16 * i, RL_THREAD_INST_EXECUTED_TRUE, 300, &err), 0);
  }
  assert_int_equal(rl_disassembly_parse(text, strlen(text), &sass, &err), 0);
  double result = function(&profile);
  rl_instruction_profile_clear(&profile);
  rl_disassembly_clear(&sass);
  return result;
}

#define COUNT(function, ...) count_in(function, (const char *const[]){__VA_ARGS__, NULL})

static void moves_are_not_fp16_arithmetic(void **state) {
  (void)state;
  assert_true(COUNT(rl_operands_hfma2_moves, "HFMA2.MMA R5, -RZ, RZ, 0, 0") == 300);
  assert_true(COUNT(rl_operands_hfma2_moves, "@!P0 HFMA2 R5, -RZ, RZ, 1.875, 0") == 300);
  assert_true(COUNT(rl_operands_hfma2_moves, "HFMA2 R5, R6, R7, -RZ") == 0);
  assert_true(COUNT(rl_operands_hfma2_moves, "HFMA2 R5, R6, RZ, R7") == 0); /* one factor may be NaN */
  assert_true(COUNT(rl_operands_hfma2_moves, "HFMA2.MMA R5, R6.H0_H0, R7, R8", "FFMA R5, RZ, RZ, R4") == 0);
  assert_true(COUNT(rl_operands_hadd2_moves, "HADD2.F32 R4, -RZ, R5.H0_H0", "HADD2 R4, R5, R6") == 300);
}

static void spills_have_the_stack_pointer_as_base(void **state) {
  (void)state;
  assert_true(COUNT(rl_operands_spilled_bytes, "STL [R1+0x10], R5", "LDL R6, [R1]") == 2 * 300 * 4);
  assert_true(COUNT(rl_operands_spilled_bytes, "LDL.LU.64 R6, [R1+0x8]") == 300 * 8);
  assert_true(COUNT(rl_operands_spilled_bytes, "STL.128 [R1+0x20], R4") == 300 * 16);
  assert_true(COUNT(rl_operands_spilled_bytes, "STL.U8 [R1], R4") == 300);
  assert_true(COUNT(rl_operands_spilled_bytes, "LDL R6, [R12]", "STL [R12+0x4], R6", "LDL R6, [R10+0x1]", "EXIT") !=
              0); /* the result is NAN, because the code accesses arrays in local memory */
  assert_true(isnan(COUNT(rl_operands_spilled_bytes, "STL [R1+0x10], R5", "LDL R6, [R12]")));
  assert_true(COUNT(rl_operands_spilled_bytes, "LDS R6, [R1]", "LDG.E R6, desc[UR4][R2.64]") == 0);
}

static void pointer_chasing_depends_on_its_own_load(void **state) {
  (void)state;
  assert_true(COUNT(rl_operands_dependent_loads, "LDG.E.64 R2, desc[UR4][R2.64]", "BRA `(.L_x_0)") == 10);
  assert_true(COUNT(rl_operands_dependent_loads, "IMAD.WIDE.U32 R2, R0, 0x4, R8", "LDG.E R4, desc[UR4][R2.64]",
                    "IADD3 R0, R4, R0, RZ", "@P0 BRA `(.L_x_0)") == 10);
  assert_true(COUNT(rl_operands_dependent_loads, "LDG.E R4, desc[UR4][R2.64]", "IMAD.WIDE R2, R4, 0x4, R8",
                    "LDG.E R5, desc[UR4][R2.64]", "IMAD.WIDE R2, R5, 0x4, R8", "@P0 BRA `(.L_x_0)") == 20); /* unrolled twice */
  assert_true(COUNT(rl_operands_dependent_loads, "IMAD R0, R6, 0x100, R7", "IMAD.WIDE R2, R0, 0x4, R8",
                    "LDG.E R4, desc[UR4][R2.64]", "IADD3 R0, R4, R0, RZ", "@P0 BRA `(.L_x_1)",
                    "STG.E desc[UR4][R2.64], R0") == 10); /* the first instruction is before the loop */
}

static void independent_loads_are_not_counted(void **state) {
  (void)state;
  assert_true(COUNT(rl_operands_dependent_loads, "IMAD.WIDE R2, R0, 0x4, R8", "LDG.E R4, desc[UR4][R2.64]",
                    "IADD3 R7, R4, R7, RZ", "IADD3 R0, R0, 0x100, RZ", "@P0 BRA `(.L_x_0)") == 0);
  /* Each round loads an index and the value at that index: the second load depends on the first, but not on an earlier round. */
  assert_true(COUNT(rl_operands_dependent_loads, "IADD3 R0, R0, 0x1, RZ", "IMAD.WIDE R2, R0, 0x4, R8",
                    "LDG.E R4, desc[UR4][R2.64]", "IMAD.WIDE R6, R4, 0x4, R10", "LDG.E R5, desc[UR4][R6.64]",
                    "@P0 BRA `(.L_x_0)") == 0);
  /* The result is overwritten before the next round. */
  assert_true(COUNT(rl_operands_dependent_loads, "LDG.E R2, desc[UR4][R2.64]", "MOV R2, 0x10", "MOV R3, RZ", "BRA `(.L_x_0)") ==
              0);
  assert_true(COUNT(rl_operands_dependent_loads, "LDG.E R2, desc[UR4][R2.64]", "@P1 MOV R2, 0x10", "BRA `(.L_x_0)") == 10);
  assert_true(COUNT(rl_operands_dependent_loads, "LDG.E R2, desc[UR4][R2.64]", "@P1 BRA `(.L_x_2)", "EXIT") == 0); /* no loop */
  assert_true(COUNT(rl_operands_dependent_loads, "STG.E desc[UR4][R2.64], R4", "LDG.E R4, desc[UR4][R2.64]") == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(moves_are_not_fp16_arithmetic),
      cmocka_unit_test(spills_have_the_stack_pointer_as_base),
      cmocka_unit_test(pointer_chasing_depends_on_its_own_load),
      cmocka_unit_test(independent_loads_are_not_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
