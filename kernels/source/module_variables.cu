/* Implements module_variables.h. */
#include "source/module_variables.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/cubin.h"
#include "cuda_check.h"

typedef struct variable {
  void *memory, *saved; /* device memory of the variable and of its saved contents; memory NULL: the address is unknown */
} variable;

struct rl_module_variables {
  bool is_cubin;
  int64_t count;
  rl_cubin_variable *symbols; /* names point into the image, which is read only during rl_module_variables_open */
  variable *items;
};

/* Returns the device address of a variable; NULL: the driver does not return it. */
static void *find_by_name(cudaLibrary_t library, const rl_cubin_variable *symbol) {
  void *memory = NULL;
  size_t bytes = 0;
  if (cudaLibraryGetGlobal(&memory, &bytes, library, symbol->name) != cudaSuccess &&
      cudaLibraryGetManaged(&memory, &bytes, library, symbol->name) != cudaSuccess)
    memory = NULL;
  (void)cudaGetLastError();
  return bytes == symbol->size ? memory : NULL;
}

/* Computes the address of a variable from that of another variable in the same section: a section is contiguous. */
static void *find_by_section(const rl_module_variables *variables, const rl_cubin_variable *symbol) {
  for (int64_t i = 0; i < variables->count; i++)
    if (variables->items[i].memory && variables->symbols[i].section == symbol->section)
      return (char *)variables->items[i].memory - variables->symbols[i].offset + symbol->offset;
  return NULL;
}

static void find_addresses(rl_module_variables *variables, cudaLibrary_t library) {
  for (int64_t i = 0; i < variables->count; i++) variables->items[i].memory = find_by_name(library, &variables->symbols[i]);
  for (int64_t i = 0; i < variables->count; i++)
    if (!variables->items[i].memory) variables->items[i].memory = find_by_section(variables, &variables->symbols[i]);
}

static int save_contents(rl_module_variables *variables, cudaStream_t stream, rl_error *err) {
  for (int64_t i = 0; i < variables->count; i++) {
    variable *item = &variables->items[i];
    const size_t bytes = variables->symbols[i].size;
    if (!item->memory) continue;
    if (rl_cuda_check(cudaMalloc(&item->saved, bytes), "allocating memory for the module's variables", err) < 0 ||
        rl_cuda_check(cudaMemcpyAsync(item->saved, item->memory, bytes, cudaMemcpyDefault, stream),
                      "saving the module's variables", err) < 0)
      return -1;
  }
  return rl_cuda_check(cudaStreamSynchronize(stream), "saving the module's variables", err);
}

static int list_variables(rl_module_variables *variables, const void *image, size_t size, rl_error *err) {
  int64_t count = rl_cubin_list_variables(image, size, NULL, 0, NULL);
  variables->is_cubin = count >= 0;
  if (count <= 0) return 0;
  variables->symbols = (rl_cubin_variable *)calloc((size_t)count, sizeof *variables->symbols);
  variables->items = (variable *)calloc((size_t)count, sizeof *variables->items);
  if (!variables->symbols || !variables->items) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a module's variables");
  variables->count = rl_cubin_list_variables(image, size, variables->symbols, count, err);
  return 0;
}

int rl_module_variables_open(cudaLibrary_t library, const void *image, size_t size, rl_stream stream,
                             rl_module_variables **variables, rl_error *err) {
  rl_module_variables *created = (rl_module_variables *)calloc(1, sizeof *created);
  if (!created) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a module's variables");
  int rc = list_variables(created, image, size, err);
  if (rc == 0) find_addresses(created, library);
  if (rc == 0) rc = save_contents(created, (cudaStream_t)stream, err);
  if (rc < 0) rl_module_variables_close(created);
  else *variables = created;
  return rc;
}

static double sum_bytes(const rl_module_variables *variables, bool restored) {
  double bytes = 0;
  if (!variables->is_cubin) return NAN;
  for (int64_t i = 0; i < variables->count; i++)
    if ((variables->items[i].memory != NULL) == restored) bytes += (double)variables->symbols[i].size;
  return bytes;
}

double rl_module_variables_restored_bytes(const rl_module_variables *variables) { return sum_bytes(variables, true); }

double rl_module_variables_unrestored_bytes(const rl_module_variables *variables) { return sum_bytes(variables, false); }

int rl_module_variables_enqueue_restore(const rl_module_variables *variables, rl_stream stream, rl_error *err) {
  for (int64_t i = 0; i < variables->count; i++) {
    const variable *item = &variables->items[i];
    if (!item->memory) continue;
    cudaError_t status =
        cudaMemcpyAsync(item->memory, item->saved, variables->symbols[i].size, cudaMemcpyDefault, (cudaStream_t)stream);
    if (rl_cuda_check(status, "restoring the module's variables", err) < 0) return -1;
  }
  return 0;
}

void rl_module_variables_close(rl_module_variables *variables) {
  if (!variables) return;
  for (int64_t i = 0; i < variables->count; i++) cudaFree(variables->items[i].saved);
  free(variables->symbols);
  free(variables->items);
  free(variables);
}
