/* Implements reference.h: opens the reference as an rl_source_kernel with separate buffers. */
#include "source/reference.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_check.h"
#include "source/argument_values.h"
#include "source/kernel.h"

struct rl_source_reference {
  rl_device *device;
  rl_source source; /* copy of the job's source in which the reference is the kernel; owns nothing */
  rl_source_kernel kernel;
  void *buffers[RL_SOURCE_ARGUMENTS_MAX];
  rl_source_argument_values values;
};

static int allocate_buffers(rl_source_reference *reference, rl_error *err) {
  rl_device *device = reference->device;
  for (int i = 0; i < reference->source.argument_count; i++) {
    const rl_source_argument *argument = &reference->source.arguments[i];
    if (argument->kind == RL_SOURCE_BUFFER &&
        device->ops->allocate(device, RL_MEMORY_WORKSPACE, (size_t)argument->count * rl_source_type_size(argument->type),
                              &reference->buffers[i], err) < 0)
      return -1;
  }
  return rl_source_argument_values_set(&reference->source, reference->buffers, &reference->values, err);
}

/* Puts /expected/reference before the JSON pointer of an error. The reference has the job's arguments, so an error at an
 * argument is an error of the reference's parameters and gets the pointer /expected/reference/entry. */
static int fail_below_expected(rl_error *err) {
  char pointer[sizeof err->json_pointer];
  if (!err || err->domain != RL_INPUT) return -1;
  const bool is_argument = strncmp(err->json_pointer, "/arguments", strlen("/arguments")) == 0;
  snprintf(pointer, sizeof pointer, "/expected/reference%.60s", is_argument ? "/entry" : err->json_pointer);
  memcpy(err->json_pointer, pointer, sizeof pointer);
  return -1;
}

int rl_source_reference_open(rl_device *device, const rl_source *source, rl_source_reference **reference, rl_error *err) {
  rl_source_reference *created = (rl_source_reference *)calloc(1, sizeof *created);
  if (!created) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for the reference");
  created->device = device;
  created->source = *source;
  created->source.binary = NULL;
  created->source.request = source->reference;
  created->source.request.options = source->request.options;
  created->source.variants[0] = (rl_source_variant){};
  if (rl_source_kernel_open(device, &created->source, 0, &created->kernel, err) < 0 || allocate_buffers(created, err) < 0) {
    rl_source_reference_close(created);
    return fail_below_expected(err);
  }
  *reference = created;
  return 0;
}

void *const *rl_source_reference_buffers(const rl_source_reference *reference) { return reference->buffers; }

int rl_source_reference_enqueue(rl_source_reference *reference, rl_stream stream, rl_error *err) {
  if (rl_module_variables_enqueue_restore(reference->kernel.variables, stream, err) < 0) return -1;
  return rl_source_kernel_launch(&reference->kernel, reference->values.pointers, stream, err);
}

void rl_source_reference_close(rl_source_reference *reference) {
  if (!reference) return;
  for (int i = 0; i < RL_SOURCE_ARGUMENTS_MAX; i++) reference->device->ops->release(reference->device, reference->buffers[i]);
  rl_source_kernel_close(&reference->kernel);
  free(reference);
}
