/* Implements module_variables.h. The driver places each variable at a multiple of 256 bytes, whatever its offset in its section
 * is, so each has its own address and is copied separately. */
#include "source/module_variables.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/cubin.h"
#include "cuda_check.h"

typedef struct variable {
  void *memory, *saved; /* device memory of the variable, or managed memory; its saved contents, inside saved_memory */
  size_t bytes;
  bool is_literal;
} variable;

struct rl_module_variables {
  int64_t count;
  variable *items;
  void *saved_memory; /* on the device */
};

enum { SAVED_ALIGNMENT = 256 }; /* of the saved contents, so that the copies are as fast as those of the driver's variables */

static size_t saved_bytes(const variable *item) {
  return (item->bytes + SAVED_ALIGNMENT - 1) / SAVED_ALIGNMENT * SAVED_ALIGNMENT;
}

static bool is_number(const char *text) { return *text != '\0' && text[strspn(text, "0123456789")] == '\0'; }

/* Returns whether the variable has a name that the compiler gives to string literals ($str, $str$1) and to functions' names
 * (__unnamed_1). */
static bool is_literal(const rl_cubin_variable *symbol) {
  const char *name = symbol->name;
  return strcmp(name, "$str") == 0 || (strncmp(name, "$str$", 5) == 0 && is_number(name + 5)) ||
         (strncmp(name, "__unnamed_", 10) == 0 && is_number(name + 10));
}

/* Finds the address of a variable, also of a static one. Returns false if the driver does not return it. */
static bool find_address(cudaLibrary_t library, const rl_cubin_variable *symbol, variable *found) {
  size_t bytes = 0;
  const bool has_address = cudaLibraryGetGlobal(&found->memory, &bytes, library, symbol->name) == cudaSuccess ||
                           cudaLibraryGetManaged(&found->memory, &bytes, library, symbol->name) == cudaSuccess;
  (void)cudaGetLastError();
  found->bytes = symbol->size;
  found->is_literal = is_literal(symbol);
  return has_address && bytes == symbol->size;
}

/* Checks that every variable has its own address: the driver finds only one of two that have the same name, as the literals of
 * linked objects do. Sorts the variables. */
static int check_addresses(rl_module_variables *variables, rl_error *err) {
  variable *end = variables->items + variables->count;
  std::sort(variables->items, end, [](const variable &a, const variable &b) { return a.memory < b.memory; });
  const auto is_same = [](const variable &a, const variable &b) {
    return a.memory == b.memory && !(a.is_literal && b.is_literal);
  };
  if (std::adjacent_find(variables->items, end, is_same) == end) return 0;
  return rl_fail(err, RL_INPUT, 0, "the module can't be restored before every launch, because two variables have the same name");
}

/* Finds the variables. Returns -1 with RL_INPUT if the address of one that is not a literal is unknown. */
static int find_variables(rl_module_variables *variables, cudaLibrary_t library, const rl_cubin_variable *symbols, int64_t count,
                          rl_error *err) {
  for (int64_t i = 0; i < count; i++) {
    if (find_address(library, &symbols[i], &variables->items[variables->count])) variables->count++;
    else if (!is_literal(&symbols[i]))
      return rl_fail(err, RL_INPUT, 0,
                     "the variable %.100s can't be restored before every launch, because the driver does not return its address",
                     symbols[i].name);
  }
  return check_addresses(variables, err);
}

static int list_variables(rl_module_variables *variables, cudaLibrary_t library, const void *cubin, size_t size, rl_error *err) {
  const int64_t count = rl_cubin_list_variables(cubin, size, NULL, 0, err);
  if (count <= 0) return (int)count;
  variables->items = (variable *)calloc((size_t)count, sizeof *variables->items);
  rl_cubin_variable *symbols = (rl_cubin_variable *)calloc((size_t)count, sizeof *symbols);
  int rc = variables->items && symbols ? 0 : rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a module's variables");
  if (rc == 0) (void)rl_cubin_list_variables(cubin, size, symbols, count, NULL);
  if (rc == 0) rc = find_variables(variables, library, symbols, count, err);
  free(symbols);
  return rc;
}

/* Allocates memory for the contents of all variables, and saves them. */
static int save_contents(rl_module_variables *variables, cudaStream_t stream, rl_error *err) {
  size_t total = 0, offset = 0;
  for (int64_t i = 0; i < variables->count; i++) total += saved_bytes(&variables->items[i]);
  if (total == 0) return 0;
  if (rl_cuda_check(cudaMalloc(&variables->saved_memory, total), "allocating memory for the module's variables", err) < 0)
    return -1;
  for (int64_t i = 0; i < variables->count; i++) {
    variable *item = &variables->items[i];
    item->saved = (char *)variables->saved_memory + offset;
    offset += saved_bytes(item);
    if (rl_cuda_check(cudaMemcpyAsync(item->saved, item->memory, item->bytes, cudaMemcpyDefault, stream),
                      "saving the module's variables", err) < 0)
      return -1;
  }
  return rl_cuda_check(cudaStreamSynchronize(stream), "saving the module's variables", err);
}

int rl_module_variables_open(cudaLibrary_t library, const void *cubin, size_t size, rl_stream stream,
                             rl_module_variables **variables, rl_error *err) {
  rl_module_variables *created = (rl_module_variables *)calloc(1, sizeof *created);
  if (!created) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a module's variables");
  if (list_variables(created, library, cubin, size, err) < 0 || save_contents(created, (cudaStream_t)stream, err) < 0) {
    rl_module_variables_close(created);
    return -1;
  }
  *variables = created;
  return 0;
}

double rl_module_variables_restored_bytes(const rl_module_variables *variables) {
  double bytes = 0;
  for (int64_t i = 0; i < variables->count; i++) bytes += (double)variables->items[i].bytes;
  return bytes;
}

int rl_module_variables_enqueue_restore(const rl_module_variables *variables, rl_stream stream, rl_error *err) {
  for (int64_t i = 0; i < variables->count; i++) {
    const variable *item = &variables->items[i];
    const cudaError_t status = cudaMemcpyAsync(item->memory, item->saved, item->bytes, cudaMemcpyDefault, (cudaStream_t)stream);
    if (rl_cuda_check(status, "restoring the module's variables", err) < 0) return -1;
  }
  return 0;
}

void rl_module_variables_close(rl_module_variables *variables) {
  if (!variables) return;
  cudaFree(variables->saved_memory);
  free(variables->items);
  free(variables);
}
