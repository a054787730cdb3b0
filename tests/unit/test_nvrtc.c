/* Tests compilation without a GPU, logs of compile errors, the cache, and the sandbox: no code makes the compiler read a file of
 * the host. Skipped without libnvrtc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cubin.h"
#include "nvrtc/nvrtc.h"
#include "temporary_folder.h"

static char folder[] = "/tmp/rooflined-nvrtc-XXXXXX", cache_folder_path[64], secret_path[64]; /* the latter two are in `folder` */
static const char secret[] = "the secret of the host";

static int compile_with_cache(const char *cache_folder, const char *code, const char *entry, const char *const *options,
                              rl_nvrtc_result *result, rl_error *err) {
  rl_nvrtc_request request = {.code = code,
                              .length = strlen(code),
                              .entry = entry,
                              .arch = "sm_90a",
                              .options = options,
                              .cache_dir = cache_folder,
                              .compiler_path = RL_COMPILER};
  while (options != NULL && options[request.option_count] != NULL) request.option_count++;
  return rl_nvrtc_compile(&request, result, err);
}

static int compile_code(const char *code, const char *entry, rl_nvrtc_result *result, rl_error *err) {
  return compile_with_cache(NULL, code, entry, NULL, result, err);
}

static const char valid_code[] = "extern \"C\" __global__ void add(float *x) { x[threadIdx.x] += 1; }\n";

static void entries_have_symbols(void **state) {
  (void)state;
  static const struct {
    const char *code, *entry, *symbol;
  } cases[] = {
      {valid_code, "add", "add"},
      {"__global__ void add(float *x) { *x += 1; }", "add", "_Z3addPf"},
      {"template <class T, int N> __global__ void add(T *x) { *x += N; }", "add<double, 4>", "_Z3addIdLi4EEvPT_"},
      {"namespace a { __global__ void add(float *x) { *x += 1; } }", "a::add", "_ZN1a3addEPf"},
      {"#include <cuda_fp16.h>\n#include <cuda/std/limits>\nextern \"C\" __global__ void h(__half *x) { *x = __hadd(*x, *x); }",
       "h", "h"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_nvrtc_result result;
    rl_error err = {0};
    if (compile_code(cases[i].code, cases[i].entry, &result, &err) != 0) fail_msg("%s: %s", cases[i].entry, err.message);
    assert_string_equal(result.symbol, cases[i].symbol);
    assert_memory_equal(result.image, "\177ELF", 4);
    assert_true(result.compile_ms > 0 && !result.cached && result.spill_store_bytes == 0 && result.spill_load_bytes == 0);
    rl_nvrtc_clear(&result);
  }
}

static void spills_are_counted(void **state) {
  (void)state;
  static const char code[] =
      "extern \"C\" __global__ void spill(float *x) { float v[96];\n"
      "#pragma unroll\nfor (int i = 0; i < 96; i++) v[i] = x[i * 7];\n"
      "__syncthreads();\n#pragma unroll\nfor (int i = 0; i < 96; i++) x[i * 5] = v[95 - i] * v[i]; }";
  static const char *const options[] = {"--maxrregcount=32", NULL};
  rl_nvrtc_result result;
  rl_error err = {0};
  assert_int_equal(compile_with_cache(NULL, code, "spill", options, &result, &err), 0);
  assert_true(result.spill_store_bytes > 0 && result.spill_load_bytes > 0);
  rl_nvrtc_clear(&result);
}

/* Variables of every linkage are listed, so that their values can be restored. Constants are not listed, because kernels cannot
 * write them. */
static void variables_of_a_cubin_are_listed(void **state) {
  (void)state;
  static const char code[] =
      "__device__ int counter; static __device__ float cache[1000]; namespace { __device__ int hidden = 7; }\n"
      "__constant__ float factors[4];\n"
      "extern \"C\" __global__ void k(float *x) { static __device__ double inner; inner += 1;\n"
      "  x[threadIdx.x] = counter++ + cache[threadIdx.x] + hidden++ + factors[1] + inner; cache[threadIdx.x] = x[0]; }\n";
  rl_nvrtc_result result;
  rl_cubin_variable variables[8];
  rl_error err = {0};
  uint64_t bytes = 0;
  int named = 0;
  assert_int_equal(compile_code(code, "k", &result, &err), 0);
  assert_int_equal(rl_cubin_list_variables(result.image, result.image_bytes, variables, 8, &err), 4);
  for (int i = 0; i < 4; i++) {
    bytes += variables[i].size;
    named += strcmp(variables[i].name, "counter") == 0 || strcmp(variables[i].name, "cache") == 0;
  }
  assert_true(bytes == 4 + 4000 + 4 + 8 && named == 2);
  assert_int_equal(rl_cubin_list_variables(result.image, result.image_bytes, variables, 1, &err), 4);
  rl_nvrtc_clear(&result);
  assert_int_equal(compile_code(valid_code, "add", &result, &err), 0);
  assert_int_equal(rl_cubin_list_variables(result.image, result.image_bytes, variables, 8, &err), 0);
  rl_nvrtc_clear(&result);
  assert_int_equal(rl_cubin_list_variables(".version 8.0\n", 13, variables, 8, &err), -1);
}

static void errors_have_their_line(void **state) {
  (void)state;
  rl_nvrtc_result result;
  rl_error err = {0};
  assert_int_equal(compile_code("// one\n// two\n__global__ void k() { three = 3; }\n", "k", &result, &err), -1);
  assert_int_equal(err.domain, RL_INPUT);
  assert_string_equal(err.json_pointer, "/code");
  assert_string_equal(err.message, "code.cu(3): error: identifier \"three\" is undefined");
  assert_non_null(strstr(result.log, "1 error detected"));
  rl_nvrtc_clear(&result);
  assert_int_equal(compile_code(valid_code, "subtract", &result, &err), -1);
  assert_string_equal(err.json_pointer, "/entry");
  assert_string_equal(err.message, "the code has no such kernel: error: identifier \"subtract\" is undefined");
  rl_nvrtc_clear(&result);
}

static void dynamic_parallelism_is_refused_with_its_reason(void **state) {
  (void)state;
  static const char code[] =
      "__global__ void child(float *x) { *x = 1; }\n"
      "__global__ void k(float *x) {\n  child<<<1, 1>>>(x);\n}\n";
  rl_nvrtc_result result;
  rl_error err = {0};
  assert_int_equal(compile_code(code, "k", &result, &err), -1);
  assert_non_null(strstr(err.message, "code.cu(3): error: "));
  assert_non_null(strstr(err.message, "dynamic parallelism is refused"));
  rl_nvrtc_clear(&result);
}

static void logs_are_bounded(void **state) {
  (void)state;
  char *code = malloc(400 << 10), *end = code;
  rl_nvrtc_result result;
  rl_error err = {0};
  for (int i = 0; i < 5000; i++) end += sprintf(end, "int x%d = undefined_%d;\n", i, i);
  assert_int_equal(compile_code(code, "k", &result, &err), -1);
  assert_true(strlen(result.log) > 1000 && strlen(result.log) <= RL_NVRTC_LOG_MAX_BYTES);
  rl_nvrtc_clear(&result);
  free(code);
}

/* --- headers ----------------------------------------------------------------------------------------------------------- */

static const char uses_cpp_headers[] =
    "#include <algorithm>\n#include <array>\n#include <cfloat>\n#include <climits>\n#include <cmath>\n#include <cstdint>\n"
    "#include <cstdlib>\n#include <cstring>\n#include <limits>\n#include <new>\n#include <numeric>\n#include <tuple>\n"
    "#include <type_traits>\n#include <utility>\n#include <cuda_runtime.h>\n"
    "template <class T> __global__ void k(T *x, std::uint8_t *bytes, int64_t n) {\n"
    "  static_assert(std::is_same<T, float>::value && std::numeric_limits<T>::max() == FLT_MAX && CHAR_BIT == 8);\n"
    "  std::array<T, 2> pair = {std::max(x[0], x[1]), std::min(x[2], T(M_PI))};\n"
    "  std::swap(pair[0], pair[1]);\n"
    "  auto both = std::make_tuple(std::sqrt(pair[0]), std::abs(pair[1]));\n"
    "  std::memcpy(bytes, x, 4);\n"
    "  x[0] = std::get<0>(both) + std::get<1>(both) + std::move(x[3]) + (std::isnan(x[4]) ? INFINITY : T(n % INT64_MAX));\n"
    "}\n";

static const char uses_c_headers[] =
    "#include <assert.h>\n#include <float.h>\n#include <limits.h>\n#include <math.h>\n#include <stddef.h>\n#include <stdint.h>\n"
    "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
    "extern \"C\" __global__ void k(double *x, uint32_t *words, size_t n) {\n"
    "  assert(x != NULL);\n  if (n > UINT_MAX) printf(\"%zu\\n\", n);\n  int *scratch = (int *)malloc(4 * n);\n"
    "  memset(words, abs((int)words[0]), 4);\n  x[0] = fmin(x[1], DBL_MAX) + sin(M_PI) + offsetof(struct pair, second);\n"
    "  free(scratch);\n}\n";

static const char uses_wmma[] =
    "#include <mma.h>\nusing namespace nvcuda;\nextern \"C\" __global__ void k(half *a, half *b, float *c) {\n"
    "  wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;\n"
    "  wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::col_major> right;\n"
    "  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;\n  wmma::fill_fragment(sum, 0.0f);\n"
    "  wmma::load_matrix_sync(left, a, 16);\n  wmma::load_matrix_sync(right, b, 16);\n"
    "  wmma::mma_sync(sum, left, right, sum);\n  wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);\n}\n";

static const char uses_cooperative_groups[] =
    "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\nnamespace cg = cooperative_groups;\n"
    "extern \"C\" __global__ void __cluster_dims__(2) k(int *x) {\n"
    "  auto warp = cg::tiled_partition<32>(cg::this_thread_block());\n  cg::this_cluster().sync();\n"
    "  x[0] = cg::reduce(warp, x[threadIdx.x], cg::plus<int>());\n}\n";

static const char uses_tensor_map[] =
    "#include <cuda.h>\n#include <cuda/barrier>\n"
    "extern \"C\" __global__ void k(const __grid_constant__ CUtensorMap map) {\n"
    "  __shared__ alignas(128) float tile[32][32];\n  __shared__ cuda::barrier<cuda::thread_scope_block> ready;\n"
    "  init(&ready, blockDim.x);\n  static_assert(sizeof map == 128 && alignof(CUtensorMap) == 128);\n"
    "  cuda::device::experimental::cp_async_bulk_tensor_2d_global_to_shared(&tile, &map, 0, 0, ready);\n}\n";

static const char uses_cub[] =
    "#include <cub/block/block_reduce.cuh>\n#include <cub/warp/warp_scan.cuh>\nextern \"C\" __global__ void k(int *x) {\n"
    "  using reduction = cub::BlockReduce<int, 128>;\n  __shared__ reduction::TempStorage storage;\n"
    "  int sum = reduction(storage).Sum(x[threadIdx.x]);\n  if (threadIdx.x == 0) x[0] = sum;\n}\n";

static void kernels_include_headers_that_nvcc_finds(void **state) {
  (void)state;
  char c_headers[sizeof uses_c_headers + 64];
  snprintf(c_headers, sizeof c_headers, "struct pair { double first, second; };\n%s", uses_c_headers);
  const struct {
    const char *code, *entry;
  } cases[] = {{uses_cpp_headers, "k<float>"}, {c_headers, "k"},       {uses_wmma, "k"},
               {uses_cooperative_groups, "k"}, {uses_tensor_map, "k"}, {uses_cub, "k"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_nvrtc_result result;
    rl_error err = {0};
    if (compile_code(cases[i].code, cases[i].entry, &result, &err) != 0) fail_msg("%s\n%s", cases[i].code, err.message);
    rl_nvrtc_clear(&result);
  }
}

/* Each header compiles when it is included first, and when it is included twice. */
static void standard_headers_compile_alone(void **state) {
  (void)state;
  static const char *const headers[] = {"cassert", "cfloat", "climits",   "cmath", "cstdio",
                                        "limits",  "new",    "stdbool.h", "cuda.h"};
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    char code[256];
    rl_nvrtc_result result;
    rl_error err = {0};
    snprintf(code, sizeof code, "#include <%s>\n#include <%s>\n%s", headers[i], headers[i], valid_code);
    if (compile_code(code, "add", &result, &err) != 0) fail_msg("%s: %s", headers[i], err.message);
    rl_nvrtc_clear(&result);
  }
}

static void errors_after_headers_have_their_line(void **state) {
  (void)state;
  rl_nvrtc_result result;
  rl_error err = {0};
  assert_int_equal(compile_code("#include <cmath>\n\nextern \"C\" __global__ void k(float *x) { *x = std::sqroot(*x); }\n", "k",
                                &result, &err),
                   -1);
  assert_string_equal(err.message, "code.cu(3): error: namespace \"std\" has no member \"sqroot\"");
  rl_nvrtc_clear(&result);
}

/* --- the cache --------------------------------------------------------------------------------------------------------- */

static int count_files(const char *path, char *last, size_t size) {
  int count = 0;
  DIR *entries = opendir(path);
  assert_non_null(entries);
  for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(last, size, "%s/%s", path, entry->d_name);
    count++;
  }
  closedir(entries);
  return count;
}

/* Images have line numbers even if the client requests none, because reports show source lines. */
static void images_have_line_numbers(void **state) {
  (void)state;
  static const char *const requested[] = {"--generate-line-info", NULL}, line_section[] = ".debug_line";
  for (int i = 0; i < 2; i++) {
    rl_nvrtc_result result;
    rl_error err = {0};
    assert_int_equal(compile_with_cache(NULL, valid_code, "add", i == 0 ? NULL : requested, &result, &err), 0);
    assert_non_null(memmem(result.image, result.image_bytes, line_section, sizeof line_section - 1));
    rl_nvrtc_clear(&result);
  }
}

/* Writes a program that appends a line to the file "calls" and then runs the compiler. */
static void write_counting_compiler(char *path, size_t size) {
  snprintf(path, size, "%s/counting-compiler", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "#!/bin/sh\necho called >> %s/calls\nexec %s \"$@\"\n", folder, RL_COMPILER);
  fclose(file);
  assert_int_equal(chmod(path, 0700), 0);
}

static int count_compiler_calls(void) {
  char path[96];
  int count = 0;
  snprintf(path, sizeof path, "%s/calls", folder);
  FILE *file = fopen(path, "r");
  for (int c; file != NULL && (c = getc(file)) != EOF;) count += c == '\n';
  if (file != NULL) fclose(file);
  return count;
}

/* The first compilation with a cache needs the version of the compiler. After rl_nvrtc_prepare, it runs the compiler only once.
 */
static void a_prepared_compiler_knows_its_version(void **state) {
  (void)state;
  char compiler[96];
  rl_nvrtc_result result;
  rl_error err = {0};
  write_counting_compiler(compiler, sizeof compiler);
  rl_nvrtc_prepare(compiler);
  rl_nvrtc_prepare(compiler);
  assert_int_equal(count_compiler_calls(), 1);
  const rl_nvrtc_request request = {.code = "__global__ void counted() {}",
                                    .length = strlen("__global__ void counted() {}"),
                                    .entry = "counted",
                                    .arch = "sm_90a",
                                    .cache_dir = folder,
                                    .compiler_path = compiler};
  assert_int_equal(rl_nvrtc_compile(&request, &result, &err), 0);
  assert_int_equal(count_compiler_calls(), 2);
  rl_nvrtc_clear(&result);
}

static void a_second_compilation_is_cached(void **state) {
  (void)state;
  static const char *const fast[] = {"-use_fast_math", NULL};
  char file[512];
  rl_nvrtc_result first, second, third;
  rl_error err = {0};
  assert_int_equal(compile_with_cache(cache_folder_path, valid_code, "add", NULL, &first, &err), 0);
  assert_int_equal(compile_with_cache(cache_folder_path, valid_code, "add", NULL, &second, &err), 0);
  assert_true(!first.cached && second.cached);
  assert_int_equal(first.image_bytes, second.image_bytes);
  assert_memory_equal(first.image, second.image, first.image_bytes);
  assert_string_equal(first.symbol, second.symbol);
  assert_string_equal(first.log, second.log);
  assert_int_equal(count_files(cache_folder_path, file, sizeof file), 1);
  assert_int_equal(compile_with_cache(cache_folder_path, valid_code, "add", fast, &third, &err), 0);
  assert_false(third.cached);
  assert_int_equal(count_files(cache_folder_path, file, sizeof file), 2);
  rl_nvrtc_clear(&first);
  rl_nvrtc_clear(&second);
  rl_nvrtc_clear(&third);
}

static void truncated_files_are_ignored(void **state) {
  (void)state;
  static const char code[] = "extern \"C\" __global__ void once(int *x) { *x = 1; }";
  char own_cache[80], file[512];
  rl_nvrtc_result result;
  rl_error err = {0};
  snprintf(own_cache, sizeof own_cache, "%s/own", folder);
  for (off_t keep = 0; keep < 200; keep += 50) {
    assert_int_equal(compile_with_cache(own_cache, code, "once", NULL, &result, &err), 0);
    assert_false(result.cached);
    rl_nvrtc_clear(&result);
    assert_int_equal(count_files(own_cache, file, sizeof file), 1);
    assert_int_equal(truncate(file, keep), 0);
  }
}

static void errors_are_not_cached(void **state) {
  (void)state;
  char last[512];
  rl_nvrtc_result result;
  rl_error err = {0};
  int count = count_files(cache_folder_path, last, sizeof last);
  assert_int_equal(compile_with_cache(cache_folder_path, "nonsense", "k", NULL, &result, &err), -1);
  rl_nvrtc_clear(&result);
  assert_int_equal(count_files(cache_folder_path, last, sizeof last), count);
}

/* The cache keeps 512 of its files. It does not count or remove other files. */
static void the_cache_is_bounded(void **state) {
  (void)state;
  char own_cache[80], name[256], last[512];
  rl_nvrtc_result result;
  rl_error err = {0};
  snprintf(own_cache, sizeof own_cache, "%s/full", folder);
  assert_int_equal(mkdir(own_cache, 0700), 0);
  for (int i = 0; i < 600; i++) {
    snprintf(name, sizeof name, i < 590 ? "%s/%064d.rln" : "%s/other-%d", own_cache, i);
    fclose(fopen(name, "w"));
  }
  assert_int_equal(compile_with_cache(own_cache, valid_code, "add", NULL, &result, &err), 0);
  rl_nvrtc_clear(&result);
  assert_int_equal(count_files(own_cache, last, sizeof last), 512 + 10);
  assert_int_equal(compile_with_cache(own_cache, valid_code, "add", NULL, &result, &err), 0);
  assert_true(result.cached);
  rl_nvrtc_clear(&result);
}

/* --- the sandbox ------------------------------------------------------------------------------------------------------- */

static void no_code_reads_a_host_file(void **state) {
  (void)state;
  static const char *const attempts[] = {
      "#include \"%s\"\n",
      "#include <%s>\n",
      "#include \"../../../../../../../..%s\"\n",
      "#include \"/usr/local/cuda/include/../../../..%s\"\n",
      "#define FILE_OF(x) #x\n#define PATH \"%s\"\n#include PATH\n",
      "#in\\\nclude \"%s\"\n",
      "?\?=include \"%s\"\n",
      "%%:include \"%s\"\n",
      "#/**/include/**/\"%s\"\n",
      "#include_next \"%s\"\n",
      "#import \"%s\"\n",
      "#if __has_include(\"%s\")\n#include \"%s\"\n#endif\n",
      "__device__ const unsigned char data[] = {\n#embed \"%s\"\n};\n",
      "#pragma include_alias(\"x.h\", \"%s\")\n#include \"x.h\"\n",
      "#pragma push_macro(\"x\")\n#include \"/proc/self/cwd%s\"\n",
      "#include \"/proc/self/root%s\"\n",
      "#include \"/proc/1/root%s\"\n",
      "#include \"/dev/fd/../../..%s\"\n",
      "__device__ void f() { asm(\".incbin \\\"%s\\\"\"); }\n__global__ void g() { f(); }\n",
      "asm(\".include \\\"%s\\\"\");\n",
      "__device__ void f() { asm volatile(\".file 1 \\\"%s\\\"\\n.loc 1 1 0\\n\"); }\n",
      "#line 1 \"%s\"\nnonsense;\n",
      "#error \"%s\"\n",
  };
  const char *paths[] = {secret_path, "/etc/passwd", "/proc/self/environ", "/proc/self/maps"};
  const char *leaked[] = {secret, "root:", "ROOFLINED_TEST_SECRET",
                          "libc.so"}; /* text of each file that the log must not contain */
  setenv("ROOFLINED_TEST_SECRET", "1", 1);
  for (size_t t = 0; t < sizeof attempts / sizeof *attempts; t++)
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
      char code[1024];
      rl_nvrtc_result result;
      rl_error err = {0};
      int used = snprintf(code, sizeof code, attempts[t], paths[p], paths[p]);
      snprintf(code + used, sizeof code - (size_t)used, "extern \"C\" __global__ void k() {}\n");
      int rc = compile_code(code, "k", &result, &err);
      if (err.domain == RL_ERRNO) fail_msg("%s", err.message);
      if (result.log != NULL && strstr(result.log, leaked[p]) != NULL)
        fail_msg("%s\nthe log contains text of a host file: %s", code, result.log);
      for (size_t i = 0; rc == 0 && i + strlen(leaked[p]) <= result.image_bytes; i++)
        if (memcmp(result.image + i, leaked[p], strlen(leaked[p])) == 0 && strcmp(leaked[p], "root:") != 0)
          fail_msg("%s\nleaked into the image", code);
      rl_nvrtc_clear(&result);
    }
}

/* Besides the CUDA headers, only the folders in ROOFLINED_SOURCE_INCLUDES are readable. */
static void configured_folders_can_be_included(void **state) {
  (void)state;
  char path[PATH_MAX], includes[PATH_MAX];
  rl_nvrtc_result result;
  rl_error err = {0};
  static const char code[] = "#include \"own/twice.h\"\nextern \"C\" __global__ void k(float *x) { *x = twice(*x); }\n";
  snprintf(includes, sizeof includes, "%s/includes", folder);
  assert_int_equal(mkdir(includes, 0700), 0);
  snprintf(path, sizeof path, "%s/own", includes);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/own/twice.h", includes);
  FILE *file = fopen(path, "w");
  fprintf(file, "#include \"constant.h\"\n__device__ inline float twice(float x) { return factor * x; }\n");
  fclose(file);
  snprintf(path, sizeof path, "%s/own/constant.h", includes);
  file = fopen(path, "w");
  fprintf(file, "constexpr float factor = 2;\n");
  fclose(file);
  assert_int_equal(compile_code(code, "k", &result, &err), -1);
  rl_nvrtc_clear(&result);
  setenv("ROOFLINED_SOURCE_INCLUDES", includes, 1);
  if (compile_code(code, "k", &result, &err) != 0) fail_msg("%s", err.message);
  rl_nvrtc_clear(&result);
  no_code_reads_a_host_file(state);
  setenv("ROOFLINED_SOURCE_INCLUDES", "/no/such/folder", 1);
  assert_int_equal(compile_code(valid_code, "add", &result, &err), -1);
  assert_non_null(strstr(err.message, "/no/such/folder"));
  rl_nvrtc_clear(&result);
  unsetenv("ROOFLINED_SOURCE_INCLUDES");
}

typedef struct library_file {
  const char *name, *text;
} library_file;

/* A library with the structure of CUTLASS and CuTe: two folders of .hpp and .inl files that include each other in angle brackets
 * and quotes, macros for NVRTC, CCCL's and CUDA's headers, overloads by type, and inline PTX. */
static const library_file template_library[] = {
    {"cute/config.hpp",
     "#pragma once\n"
     "#if defined(__CUDACC_RTC__)\n#define CUTE_STL_NAMESPACE cuda::std\n#include <cuda/std/cassert>\n"
     "#else\n#define CUTE_STL_NAMESPACE std\n#include <cassert>\n#endif\n"
     "#define CUTE_HOST_DEVICE __forceinline__ __host__ __device__\n"},
    {"cute/util/type_traits.hpp",
     "#pragma once\n#include <cute/config.hpp>\n"
     "#if defined(__CUDACC_RTC__)\n#include <cuda/std/type_traits>\n#include <cuda/std/cstdint>\n"
     "#else\n#include <type_traits>\n#endif\n"
     "namespace cute { using CUTE_STL_NAMESPACE::is_same_v; template <auto v> struct C {\n"
     "  static constexpr auto value = v;\n"
     "  CUTE_HOST_DEVICE constexpr operator decltype(v)() const { return v; } }; }\n"},
    {"cute/layout.hpp",
     "#pragma once\n#include <cute/util/type_traits.hpp>\n#include <cutlass/numeric_types.h>\n"
     "namespace cute { template <class Rows, class Columns> struct Layout { Rows rows; Columns columns;\n"
     "  CUTE_HOST_DEVICE constexpr int operator()(int i, int j) const { return i * columns + j; } };\n"
     "template <class R, class S> CUTE_HOST_DEVICE constexpr auto make_layout(R r, S s) {\n"
     "  return Layout<R, S>{r, s}; } }\n#include \"cute/layout.inl\"\n"},
    {"cute/layout.inl",
     "namespace cute { template <class T, class L> __device__ T &at(T *data, L const &layout, int i, int j) {\n"
     "  static_assert(is_same_v<T, float> || is_same_v<T, cutlass::half_t>);\n"
     "  assert(i < layout.rows); return data[layout(i, j)]; } }\n"},
    {"cutlass/cutlass.h",
     "#pragma once\n#define CUTLASS_DEVICE __forceinline__ __device__\n#include \"detail/helper_macros.hpp\"\n"},
    {"cutlass/detail/helper_macros.hpp", "#pragma once\n#define CUTLASS_PRAGMA_UNROLL _Pragma(\"unroll\")\n"},
    {"cutlass/numeric_types.h",
     "#pragma once\n#include <vector_types.h>\n#include <cuda_fp16.h>\n#include \"cutlass/cutlass.h\"\n"
     "namespace cutlass { using half_t = __half; }\n"},
    {"cutlass/arch/memory.h",
     "#pragma once\n#include <cute/layout.hpp>\n#include \"../cutlass.h\"\n#include <cuda.h>\n"
     "namespace cutlass { CUTLASS_DEVICE void prefetch(CUtensorMap const *map) {\n"
     "  asm volatile(\"prefetch.tensormap [%0];\" ::\"l\"(map) : \"memory\"); }\n"
     "CUTLASS_DEVICE float load(float const *from) { float v;\n"
     "  asm volatile(\"ld.global.f32 %0, [%1];\" : \"=f\"(v) : \"l\"(from)); return v; } }\n"}};
static const char template_code[] =
    "#include <cute/layout.hpp>\n"
    "#include <cutlass/arch/memory.h>\n"
    "using namespace cute;\n"
    "extern \"C\" __global__ void k(float *x, const __grid_constant__ CUtensorMap map) {\n"
    "  auto layout = make_layout(C<8>{}, C<4>{});\n"
    "  static_assert(layout(1, 2) == 6);\n"
    "  cutlass::prefetch(&map);\n"
    "  CUTLASS_PRAGMA_UNROLL\n"
    "  for (int j = 0; j < 4; j++) at(x, layout, threadIdx.x, j) += cutlass::load(x + 32);\n"
    "}\n";

static void write_library(const char *root) {
  for (size_t i = 0; i < sizeof template_library / sizeof *template_library; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, template_library[i].name);
    for (char *slash = path + strlen(root); (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
      *slash = '\0';
      (void)mkdir(path, 0700);
    }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(template_library[i].text, file);
    fclose(file);
  }
}

static void a_library_of_templates_can_be_included(void **state) {
  (void)state;
  char root[PATH_MAX];
  rl_nvrtc_result result;
  rl_error err = {0};
  snprintf(root, sizeof root, "%s/cutlass", folder);
  assert_int_equal(mkdir(root, 0700), 0);
  write_library(root);
  setenv("ROOFLINED_SOURCE_INCLUDES", root, 1);
  if (compile_code(template_code, "k", &result, &err) != 0) fail_msg("%s\n%s", err.message, result.log);
  rl_nvrtc_clear(&result);
  unsetenv("ROOFLINED_SOURCE_INCLUDES");
}

/* Without this test, no_code_reads_a_host_file could pass because every #include fails. */
static void cuda_headers_are_readable(void **state) {
  (void)state;
  rl_nvrtc_result result;
  rl_error err = {0};
  assert_int_equal(compile_code("#include \"cuda_bf16.h\"\nextern \"C\" __global__ void k(__nv_bfloat16 *x) { *x = *x + *x; }\n",
                                "k", &result, &err),
                   0);
  rl_nvrtc_clear(&result);
}

/* A layout of CuTe, and a matrix product of CUTLASS for tensor cores. Both libraries have host functions. */
static void cutlass_can_be_included(void **state) {
  (void)state;
  static const char layout[] =
      "#include <cute/tensor.hpp>\n"
      "extern \"C\" __global__ void k(const float *x, float *y, int n) {\n"
      "  using namespace cute;\n"
      "  Tensor in = make_tensor(make_gmem_ptr(x), make_layout(n));\n"
      "  Tensor out = make_tensor(make_gmem_ptr(y), make_layout(n));\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) out(i) = 2 * in(i);\n"
      "}\n";
  static const char product[] =
      "#include <cutlass/gemm/kernel/default_gemm.h>\n"
      "using element = cutlass::half_t; using row = cutlass::layout::RowMajor;\n"
      "using swizzle = cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>;\n"
      "using column = cutlass::layout::ColumnMajor;\n"
      "using product = cutlass::gemm::kernel::DefaultGemm<element, row, 8, element, column, 8, element, row, float,\n"
      "    cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80, cutlass::gemm::GemmShape<128, 128, 32>,\n"
      "    cutlass::gemm::GemmShape<64, 64, 32>, cutlass::gemm::GemmShape<16, 8, 16>,\n"
      "    cutlass::epilogue::thread::LinearCombination<element, 8, float, float>, swizzle, 3, false,\n"
      "    cutlass::arch::OpMultiplyAdd>::GemmKernel;\n"
      "extern \"C\" __global__ void k(const element *a, const element *b, element *c, int m, int n, int k) {\n"
      "  extern __shared__ __align__(16) char shared[];\n"
      "  cutlass::gemm::GemmCoord size(m, n, k), tiles = swizzle().get_tiled_shape(size, {128, 128, 32}, 1);\n"
      "  typename product::Params params(size, tiles, {(element *)a, k}, {(element *)b, k}, {c, n}, {c, n}, {1.f, 0.f});\n"
      "  product()(params, *reinterpret_cast<typename product::SharedStorage *>(shared));\n"
      "}\n";
  const char *include = getenv("ROOFLINED_TEST_CUTLASS");
  if (include == NULL) {
    print_message("skipped: ROOFLINED_TEST_CUTLASS does not name CUTLASS's include folder\n");
    skip();
  }
  setenv("ROOFLINED_SOURCE_INCLUDES", include, 1);
  const char *codes[] = {layout, product};
  for (size_t i = 0; i < 2; i++) {
    rl_nvrtc_result result;
    rl_error err = {0};
    if (compile_code(codes[i], "k", &result, &err) != 0) fail_msg("%s\n%s", err.message, result.log != NULL ? result.log : "");
    assert_string_equal(result.symbol, "k");
    rl_nvrtc_clear(&result);
  }
  unsetenv("ROOFLINED_SOURCE_INCLUDES");
}

static void functions_without_device_are_device_functions(void **state) {
  (void)state;
  rl_nvrtc_result result;
  rl_error err = {0};
  const char code[] = "int twice(int x) { return 2 * x; }\nextern \"C\" __global__ void k(int *x) { *x = twice(*x); }";
  assert_int_equal(compile_code(code, "k", &result, &err), 0);
  rl_nvrtc_clear(&result);
}

static void endless_compilations_are_killed(void **state) {
  (void)state;
  static const char code[] =
      "template <int N> struct deep { static constexpr int of = deep<N - 1>::of + deep<N - 2>::of; };\n"
      "extern \"C\" __global__ void k(int *x) { *x = deep<1 << 20>::of; }\n";
  rl_nvrtc_result result;
  rl_error err = {0};
  assert_int_equal(compile_code(code, "k", &result, &err), -1);
  assert_string_equal(err.json_pointer, "/code");
  rl_nvrtc_clear(&result);
}

static int create_folders(void **state) {
  (void)state;
  if (mkdtemp(folder) == NULL) return -1;
  snprintf(cache_folder_path, sizeof cache_folder_path, "%s/cache", folder);
  snprintf(secret_path, sizeof secret_path, "%s/secret.h", folder);
  FILE *file = fopen(secret_path, "w");
  if (file == NULL) return -1;
  fprintf(file, "%s\n", secret);
  return fclose(file);
}

static int remove_folders(void **state) {
  (void)state;
  remove_folder(folder);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(entries_have_symbols),
      cmocka_unit_test(spills_are_counted),
      cmocka_unit_test(variables_of_a_cubin_are_listed),
      cmocka_unit_test(errors_have_their_line),
      cmocka_unit_test(dynamic_parallelism_is_refused_with_its_reason),
      cmocka_unit_test(logs_are_bounded),
      cmocka_unit_test(kernels_include_headers_that_nvcc_finds),
      cmocka_unit_test(standard_headers_compile_alone),
      cmocka_unit_test(errors_after_headers_have_their_line),
      cmocka_unit_test(images_have_line_numbers),
      cmocka_unit_test(a_prepared_compiler_knows_its_version), /* before all other compilations with a cache */
      cmocka_unit_test(a_second_compilation_is_cached),
      cmocka_unit_test(truncated_files_are_ignored),
      cmocka_unit_test(errors_are_not_cached),
      cmocka_unit_test(the_cache_is_bounded),
      cmocka_unit_test(no_code_reads_a_host_file),
      cmocka_unit_test(cuda_headers_are_readable),
      cmocka_unit_test(configured_folders_can_be_included),
      cmocka_unit_test(a_library_of_templates_can_be_included),
      cmocka_unit_test(cutlass_can_be_included),
      cmocka_unit_test(functions_without_device_are_device_functions),
      cmocka_unit_test(endless_compilations_are_killed),
  };
  rl_nvrtc_result result;
  rl_error err = {0};
  int rc = compile_code(valid_code, "add", &result, &err);
  rl_nvrtc_clear(&result);
  if (rc != 0 && err.domain == RL_ERRNO) {
    printf("skipped: %s\n", err.message);
    return 77;
  }
  return cmocka_run_group_tests(tests, create_folders, remove_folders);
}
