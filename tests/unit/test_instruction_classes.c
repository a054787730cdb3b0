/* Tests which classes of instructions a kernel lacks, and the metrics that are 0 without them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/code/instruction_classes.h"

static rl_instruction_classes absent_classes_of_text(const char *text, const rl_code_environment *environment) {
  rl_disassembly sass = {0};
  rl_error err;
  assert_int_equal(rl_disassembly_parse(text, strlen(text), &sass, &err), 0);
  rl_instruction_classes absent = rl_absent_instruction_classes(&sass, environment);
  rl_disassembly_clear(&sass);
  return absent;
}

static bool accesses_global_memory(const char *opcode) {
  return strncmp(opcode, "LDG", 3) == 0 || strncmp(opcode, "STG", 3) == 0 || strncmp(opcode, "ATOMG", 5) == 0 ||
         strncmp(opcode, "REDG", 4) == 0;
}

static const char *operands_of(const char *opcode) {
  if (strncmp(opcode, "HGMMA", 5) == 0) return "R24, gdesc[UR8], R24";
  return accesses_global_memory(opcode) ? "R0, desc[UR4][R2.64]" : "R0";
}

/* Returns the absent classes, on a chip, of a function with these opcodes, separated by spaces. Accesses to global memory use the
 * default memory descriptor. */
static rl_instruction_classes absent_classes_on(const char *chip, const char *opcodes) {
  char text[2048] = "/*0000*/ ULDC.64 UR4, c[0x0][0x208] ;\n", word[32];
  size_t used = strlen(text);
  int64_t offset = 16;
  if (opcodes[0] == '\0') text[0] = '\0';
  for (int length; sscanf(opcodes, "%31s%n", word, &length) == 1; opcodes += length, offset += 16)
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "/*%04x*/ @P0 %s %s ;\n", (unsigned)offset, word, operands_of(word));
  return absent_classes_of_text(text, &(rl_code_environment){.chip = chip});
}

static rl_instruction_classes absent_classes_in(const char *opcodes) { return absent_classes_on("GH100", opcodes); }

#define TEXTURE rl_instruction_classes_of_metric("smsp__inst_executed_op_texture.sum")
#define SURFACE rl_instruction_classes_of_metric("l1tex__t_sectors_pipe_tex_mem_surface_op_ld.sum")
#define TENSOR rl_instruction_classes_of_metric("sm__ops_path_tensor_src_fp16.sum.per_cycle_elapsed")
#define ATOMICS rl_instruction_classes_of_metric("lts__t_sectors_srcunit_tex_aperture_device_op_red_lookup_miss.sum")
#define TMA rl_instruction_classes_of_metric("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum")
#define DISTRIBUTED_SHARED rl_instruction_classes_of_metric("l1tex__t_sectors_pipe_lsu_mem_dshared_op_ld.sum")
#define ASYNCHRONOUS_COPY rl_instruction_classes_of_metric("l1tex__t_bytes_pipe_lsu_mem_global_op_ldgsts_cache_access.sum")
#define EVICTION rl_instruction_classes_of_metric("lts__t_sectors_srcunit_tex_op_read_evict_first_lookup_hit.sum")
#define OTHER_DEVICES rl_instruction_classes_of_metric("lts__t_sectors_srcunit_tex_aperture_peer_lookup_miss.sum")
#define LOCAL rl_instruction_classes_of_metric("l1tex__t_sector_pipe_lsu_mem_local_op_ld_hit_rate.pct")

static void classes_without_an_instruction_are_absent(void **state) {
  (void)state;
  const rl_instruction_classes all =
      TEXTURE | SURFACE | TENSOR | LOCAL | ATOMICS | TMA | DISTRIBUTED_SHARED | ASYNCHRONOUS_COPY | EVICTION | OTHER_DEVICES;
  assert_int_equal(all, rl_all_instruction_classes("GH100"));
  static const char plain_code[] =
      "LDC S2R IMAD LDG.E.U16.CONSTANT HMNMX2 FADD DADD LDS STS BAR.SYNC "
      "REDUX.SUM HFMA2 ATOMS.ADD SHFL.BFLY STG.E EXIT BRA NOP";
  assert_int_equal(absent_classes_in(plain_code), all);
  const struct {
    const char *code;
    rl_instruction_classes present;
  } cases[] = {{"TEX.SCR.LL EXIT", TEXTURE | EVICTION},
               {"TLD4 EXIT", TEXTURE | EVICTION},
               {"SULD.D.BA EXIT", SURFACE | EVICTION},
               {"SUATOM EXIT", SURFACE | ATOMICS | EVICTION},
               {"HMMA.16816.F32 EXIT", TENSOR},
               {"HGMMA.64x64x16.F32 EXIT", TENSOR},
               {"DMMA.884 EXIT", TENSOR},
               {"UTCQMMA EXIT", TENSOR},
               {"HFMA2.MMA EXIT", 0},
               {"HFMA2.MMA.BF16_V2 EXIT", 0},
               {"HFMA2.MMA HMMA.16816.F32 EXIT", TENSOR},
               {"LDL.64 EXIT", LOCAL | EVICTION},
               {"STL EXIT", LOCAL | EVICTION},
               {"LD.E.64 EXIT", LOCAL | DISTRIBUTED_SHARED | EVICTION},
               {"ST.E EXIT", LOCAL | DISTRIBUTED_SHARED | EVICTION},
               {"ATOM.E.ADD EXIT", LOCAL | ATOMICS | DISTRIBUTED_SHARED | EVICTION},
               {"RED.E.ADD EXIT", LOCAL | ATOMICS | DISTRIBUTED_SHARED | EVICTION},
               {"ATOMG.E.CAS EXIT", ATOMICS},
               {"LDG.E.EF.64 EXIT", EVICTION},
               {"STG.E.EL EXIT", EVICTION},
               {"STG.E.NA EXIT", EVICTION},
               {"LDG.E.LTC128B EXIT", 0},
               {"CCTL.E.PML2 EXIT", EVICTION},
               {"CCTL.IVALL EXIT", 0},
               {"REDG.E.ADD.STRONG.GPU EXIT", ATOMICS},
               {"UTMAREDG EXIT", ATOMICS | TMA | DISTRIBUTED_SHARED | EVICTION},
               {"UTMALDG.2D EXIT", TMA | DISTRIBUTED_SHARED | EVICTION},
               {"UBLKCP.S.G EXIT", TMA | DISTRIBUTED_SHARED | EVICTION},
               {"STAS EXIT", DISTRIBUTED_SHARED},
               {"REDAS EXIT", DISTRIBUTED_SHARED},
               {"LDGSTS.E.BYPASS.128 EXIT", ASYNCHRONOUS_COPY},
               {"SYNCS.ARRIVE.TRANS64 EXIT", DISTRIBUTED_SHARED},
               {"TXQ SUST STL IMMA UTMAREDG LDGSTS", all & ~OTHER_DEVICES}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (absent_classes_in(cases[i].code) != (all & ~cases[i].present))
      fail_msg("%s: the absent classes are %x, not %x", cases[i].code, absent_classes_in(cases[i].code), all & ~cases[i].present);
}

/* Each row is a function; the result is whether all of its accesses have L2's default eviction policy. */
static void a_descriptor_that_is_not_the_default_may_change_the_eviction_policy(void **state) {
  (void)state;
#define LOAD_DEFAULT "/*0000*/ ULDC.64 UR4, c[0x0][0x208] ;\n"
#define ACCESS "/*0100*/ LDG.E R0, desc[UR4][R2.64] ;\n"
  static const struct {
    const char *text;
    bool is_default;
  } cases[] = {
      {LOAD_DEFAULT ACCESS "/*0110*/ EXIT ;\n", true},
      {ACCESS "/*0110*/ EXIT ;\n", false},
      {"/*0000*/ ULDC.64 UR4, c[0x0][0x228] ;\n" ACCESS, false},      /* a parameter of the kernel */
      {"/*0000*/ @UP0 ULDC.64 UR4, c[0x0][0x208] ;\n" ACCESS, false}, /* may not be executed */
      {"/*0000*/ ULDC UR4, c[0x0][0x208] ;\n" ACCESS, false},         /* half of the descriptor */
      {"/*0000*/ ULDC.64 UR6, c[0x0][0x208] ;\n" ACCESS, false},      /* other registers */
      {LOAD_DEFAULT "/*0010*/ LDG.E R0, [R2.64] ;\n", false},         /* no descriptor */
      {LOAD_DEFAULT "/*0010*/ R2UR UR4, R6 ;\n" ACCESS, false},       /* createpolicy */
      {LOAD_DEFAULT "/*0010*/ R2UR UR5, R7 ;\n" ACCESS, false},
      {LOAD_DEFAULT "/*0010*/ @P1 R2UR P0, UR5, R7 ;\n" ACCESS, false},
      {LOAD_DEFAULT "/*0010*/ UIMAD.WIDE UR4, UR6, UR7, URZ ;\n" ACCESS, false},
      {LOAD_DEFAULT "/*0010*/ ULDC.64 UR2, c[0x0][0x210] ;\n" ACCESS, true},
      {LOAD_DEFAULT "/*0010*/ ULDC.128 UR0, c[0x0][0x210] ;\n" ACCESS, true},
      {LOAD_DEFAULT "/*0010*/ UIADD3 UR6, UP0, UR4, UR5, URZ ;\n" ACCESS, true}, /* reads the registers */
      {"/*0000*/ R2UR UR4, R6 ;\n/*0010*/ R2UR UR5, R7 ;\n/*0020*/ ULDC.64 UR4, c[0x0][0x208] ;\n" ACCESS, true},
      {LOAD_DEFAULT "/*0010*/ HGMMA.64x8x16.F32 R24, R28, gdesc[UR8], R24, gsb0 ;\n" ACCESS, true}, /* a matrix descriptor */
      {LOAD_DEFAULT "/*0010*/ UNKNOWN R24, gdesc[UR8], desc[UR4][R2.64] ;\n" ACCESS, false},
      {LOAD_DEFAULT ".L_x_0:\n" ACCESS "/*0110*/ @P0 BRA `(.L_x_0) ;\n/*0120*/ EXIT ;\n", true},
      {LOAD_DEFAULT ".L_x_0:\n" ACCESS "/*0110*/ R2UR UR4, R6 ;\n/*0120*/ @P0 BRA `(.L_x_0) ;\n", false},
      {"/*0000*/ @P0 BRA `(.L_x_0) ;\n/*0010*/ ULDC.64 UR4, c[0x0][0x208] ;\n.L_x_0:\n" ACCESS, false},
      {"/*0000*/ @P0 EXIT ;\n/*0010*/ ULDC.64 UR4, c[0x0][0x208] ;\n/*0020*/ BSSY B0, `(.L_x_1) ;\n" ACCESS
       "/*0110*/ BSYNC B0 ;\n.L_x_1:\n/*0120*/ STG.E desc[UR4][R2.64], R0 ;\n",
       true},
      {LOAD_DEFAULT "/*0010*/ BRA `(.L_x_1) ;\n.L_x_0:\n/*0020*/ R2UR UR4, R6 ;\n/*0030*/ EXIT ;\n.L_x_1:\n" ACCESS, true},
      {LOAD_DEFAULT "/*0010*/ BRA.DIV UR6, `(.L_x_1) ;\n/*0020*/ R2UR UR4, R6 ;\n.L_x_1:\n" ACCESS, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rl_instruction_classes absent = absent_classes_of_text(cases[i].text, &(rl_code_environment){.chip = "GH100"});
    if (((absent & EVICTION) != 0) != cases[i].is_default) fail_msg("%s%d expected", cases[i].text, cases[i].is_default);
  }
  assert_int_equal(
      absent_classes_of_text(cases[0].text, &(rl_code_environment){.chip = "GH100", .has_access_policy_window = true}),
      rl_all_instruction_classes("GH100") & ~EVICTION);
  assert_int_equal(absent_classes_of_text(cases[0].text, &(rl_code_environment){.chip = "GH100", .maps_other_devices = true}),
                   rl_all_instruction_classes("GH100") & ~OTHER_DEVICES);
}

/* Whether HFMA2.MMA increments counters of tensor operations was measured on GH100 only. */
static void half_multiply_adds_are_tensor_instructions_on_other_chips(void **state) {
  (void)state;
  static const char *const chips[] = {"GA100", "GB100", ""};
  for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
    assert_int_equal(absent_classes_on("GH100", "HFMA2.MMA EXIT") & ~absent_classes_on(chips[i], "HFMA2.MMA EXIT"),
                     TENSOR | EVICTION);
}

/* A call (the slow path of a division, a device function) and a jump table leave the function, so its code need not contain every
 * instruction that is executed. */
static void code_that_leaves_the_function_has_all_classes(void **state) {
  (void)state;
  static const char *const codes[] = {
      "LDG CALL.REL.NOINC EXIT", "CALL.ABS.NOINC EXIT", "BRX EXIT", "JMX EXIT", "RET.REL.NODEC", ""};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) assert_int_equal(absent_classes_in(codes[i]), 0);
}

static void metrics_that_other_instructions_raise_are_not_zero(void **state) {
  (void)state;
  static const char *const collected[] = {/* FP16 arithmetic uses the tensor pipe, too (measured on H200). */
                                          "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                                          "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active",
                                          "l1tex__texin_sm2tex_req_cycles_active.avg.pct_of_peak_sustained_elapsed",
                                          "l1tex__f_tex2sm_cycles_active.avg.pct_of_peak_sustained_elapsed",
                                          "lts__t_sectors_srcunit_tex_op_read.sum",
                                          "lts__t_sectors_srcunit_tex_op_read_evict_normal_lookup_hit.sum",
                                          "lts__t_sectors_evict_first_lookup_hit.sum",
                                          "lts__t_sectors_aperture_peer_lookup_miss.sum",
                                          "lts__t_sectors_srcunit_ltcfabric_aperture_peer_lookup_miss.sum",
                                          "lts__t_sectors_srcunit_tex_op_red.avg.peak_sustained",
                                          "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed",
                                          "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
                                          "sm__ops_path_tensor_src_fp16.sum.peak_sustained",
                                          "smsp__sass_average_data_bytes_per_sector_mem_local_op_ld.max_rate",
                                          "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
                                          "smsp__inst_executed.sum",
                                          "lts__mem_local",
                                          "sm__pipe_tma_cycles_active.avg.pct_of_peak_sustained_elapsed",
                                          "sm__throughput.avg.pct_of_peak_sustained_elapsed"};
  for (size_t i = 0; i < sizeof collected / sizeof *collected; i++)
    if (rl_instruction_classes_of_metric(collected[i]) != 0) fail_msg("%s", collected[i]);
  const rl_instruction_classes classes[] = {TEXTURE,           SURFACE,  TENSOR,       LOCAL, ATOMICS, TMA, DISTRIBUTED_SHARED,
                                            ASYNCHRONOUS_COPY, EVICTION, OTHER_DEVICES};
  for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
    assert_true(classes[i] != 0 && (classes[i] & (classes[i] - 1)) == 0);
    assert_non_null(strstr(rl_absent_instruction_classes_reason(classes[i]), "not counted: the code has no "));
    for (size_t j = 0; j < i; j++) assert_int_not_equal(classes[i], classes[j]);
  }
  assert_int_equal(
      rl_instruction_classes_of_metric("l1tex__m_xbar2l1tex_read_sectors_mem_texture.sum.pct_of_peak_sustained_elapsed"),
      TEXTURE);
}

static void evict_normal_equals_all_policies_without_other_policies(void **state) {
  (void)state;
  char equal[128] = "";
  assert_non_null(
      rl_equal_metric("lts__t_sectors_srcunit_tex_op_read_evict_normal_lookup_hit.sum", EVICTION, equal, sizeof equal));
  assert_string_equal(equal, "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum");
  static const char *const others[] = {
      "lts__t_sectors_evict_normal_lookup_hit.sum", "lts__t_sectors_srcunit_ltcfabric_evict_normal_lookup_miss.sum",
      "lts__t_sectors_srcunit_tex_evict_normal_demote_lookup_hit.sum", "lts__t_sectors_srcunit_tex_lookup_hit.sum"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_null(rl_equal_metric(others[i], rl_all_instruction_classes("GH100"), equal, sizeof equal));
  assert_null(rl_equal_metric("lts__t_sectors_srcunit_tex_evict_normal_lookup_miss.sum",
                              rl_all_instruction_classes("GH100") & ~EVICTION, equal, sizeof equal));
}

typedef struct column {
  char kernel[32];
  bool has_values; /* false: the column compares the two profilers */
} column;

static size_t read_columns(char *line, column *columns, size_t capacity) {
  size_t count = 0;
  for (char *name = strsep(&line, ","); name != NULL && count < capacity; name = strsep(&line, ","), count++) {
    const char *end = strrchr(name, '_');
    columns[count].has_values = end != NULL && (strcmp(end, "_ours") == 0 || strcmp(end, "_ncu") == 0);
    snprintf(columns[count].kernel, sizeof columns[count].kernel, "%.*s", end != NULL ? (int)(end - name) : 0, name);
  }
  return count;
}

/* Returns the classes that a kernel of the table has. Library kernels are assumed to have all. */
static rl_instruction_classes present_classes_of_kernel(const char *kernel) {
  const struct {
    const char *kernel;
    rl_instruction_classes present;
  } known[] = {{"spilling", LOCAL | EVICTION},
               {"matrix", TENSOR},
               {"atomics", ATOMICS},
               {"reduction", ATOMICS},
               {"texture", TEXTURE | EVICTION},
               {"surface", SURFACE | EVICTION},
               {"gemm", ~(rl_instruction_classes)0},
               {"conv", ~(rl_instruction_classes)0}};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(known[i].kernel, kernel) == 0) return known[i].present;
  return 0;
}

/* Checks counters that our profiler and ncu collected from kernels on an H200. */
static void collected_counters_are_0_without_the_class(void **state) {
  (void)state;
  enum { MAX_COLUMNS = 128 };
  static char line[16 << 10];
  column columns[MAX_COLUMNS];
  size_t zeros = 0, others = 0;
  FILE *file = fopen(RL_AGREEMENT, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  line[strcspn(line, "\n")] = '\0';
  size_t count = read_columns(line, columns, MAX_COLUMNS);
  while (fgets(line, sizeof line, file) != NULL) {
    char *rest = line, *metric = strsep(&rest, ",");
    rl_instruction_classes required = rl_instruction_classes_of_metric(metric);
    for (size_t i = 1; required != 0 && i < count; i++) {
      char *field = strsep(&rest, ",\n");
      bool has_class = (present_classes_of_kernel(columns[i].kernel) & required) != 0;
      if (!columns[i].has_values || field == NULL || field[0] == '\0') continue;
      if (!has_class && strtod(field, NULL) != 0) fail_msg("%s of %s is %s", metric, columns[i].kernel, field);
      zeros += !has_class;
      others += has_class && strtod(field, NULL) != 0;
    }
  }
  fclose(file);
  print_message("%zu values are 0; %zu values of kernels with the instructions are not\n", zeros, others);
  assert_true(zeros > 2000 && others > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(classes_without_an_instruction_are_absent),
                                     cmocka_unit_test(evict_normal_equals_all_policies_without_other_policies),
                                     cmocka_unit_test(a_descriptor_that_is_not_the_default_may_change_the_eviction_policy),
                                     cmocka_unit_test(half_multiply_adds_are_tensor_instructions_on_other_chips),
                                     cmocka_unit_test(code_that_leaves_the_function_has_all_classes),
                                     cmocka_unit_test(metrics_that_other_instructions_raise_are_not_zero),
                                     cmocka_unit_test(collected_counters_are_0_without_the_class)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
