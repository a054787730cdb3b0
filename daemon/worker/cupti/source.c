#include "worker/cupti/source.h"

#include <cuda_runtime_api.h>
#include <cupti_pcsampling.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cupti/result.h"
#include "worker/cupti/source_parts.h"
#include "worker/cupti/subscriber.h"

static CUcontext current; /* the one context of the process */
static unsigned pauses;   /* that have not ended */

CUcontext rl_source_context(void) { return current; }

void rl_source_pause(void) {
  if (pauses++ == 0 && current != NULL) rl_sampling_disable(current);
}

/* Where it is refused, collecting says so. */
static void follow_modules(void) {
  if (pauses == 0 && current != NULL) (void)rl_sampling_enable(current, NULL);
}

void rl_source_resume(void) {
  pauses--;
  follow_modules();
}

void rl_source_context_made(CUcontext context) {
  current = context;
  follow_modules();
}

void rl_source_release(rl_source *source) {
  if (source == NULL) return;
  rl_sampling_stop(source->sampling);
  follow_modules();
}

/* As NVML spells it. */
static int read_uuid(int device_index, char *text, rl_error *err) {
  struct cudaDeviceProp device;
  if (rl_cuda_check(cudaGetDeviceProperties(&device, device_index), "cudaGetDeviceProperties", err) != 0) return -1;
  text += sprintf(text, "GPU");
  for (int i = 0; i < 16; i++) {
    bool dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += sprintf(text, "%s%02x", dash ? "-" : "", (unsigned char)device.uuid.bytes[i]);
  }
  return 0;
}

static int read_device(rl_source *source, rl_error *err) {
  int kilohertz = 0;
  CUpti_Profiler_Initialize_Params start = {CUpti_Profiler_Initialize_Params_STRUCT_SIZE};
  CUpti_Device_GetChipName_Params chip = {CUpti_Device_GetChipName_Params_STRUCT_SIZE};
  chip.deviceIndex = (size_t)source->device_index;
  if (rl_cupti_check(cuptiProfilerInitialize(&start), "cuptiProfilerInitialize", err) != 0 ||
      rl_cupti_check(cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName", err) != 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&source->processors, cudaDevAttrMultiProcessorCount, source->device_index),
                    "multiprocessors", err) != 0 ||
      rl_cuda_check(cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, source->device_index), "clock rate", err) != 0)
    return -1;
  snprintf(source->chip, sizeof source->chip, "%s", chip.pChipName);
  source->clock_hz = kilohertz * 1e3;
  return 0;
}

int rl_source_open(int device_index, rl_source **source, rl_error *err) {
  rl_source *made = calloc(1, sizeof *made);
  if (made == NULL) return rl_fail(err, RL_SYS, ENOMEM, "out of memory for what is inside kernels");
  made->device_index = device_index;
  if (read_device(made, err) != 0) {
    free(made);
    return -1;
  }
  *source = made;
  return 0;
}

void rl_source_close(rl_source *source) {
  if (source == NULL) return;
  rl_texts_clear(&source->texts);
  rl_sampling_close(source->sampling);
  rl_counter_plan_close(source->lines);
  free(source);
}

/* --- code -------------------------------------------------------------------------------------------------------- */

/* The code of a kernel by its name and, unless it is 0, its module's CRC. */
static void find_code(rl_source *source, size_t index, uint64_t crc) {
  const char *symbol = source->request->kernels[index].symbol;
  rl_inside *kernel = &source->kernels[index];
  size_t size = 0;
  unsigned char *cubin = rl_module_copy(symbol, crc, &size);
  if (cubin == NULL || rl_cubin_find(cubin, size, symbol, &kernel->function, NULL) != 0) {
    free(cubin);
    return;
  }
  free(kernel->cubin);
  kernel->cubin = cubin;
  kernel->cubin_size = size;
  kernel->text = rl_texts_want(&source->texts, &kernel->function, cubin, size);
}

/* Several modules may have a function of that name: what was counted says which it was. */
static void settle_code(rl_source *source, size_t index) {
  rl_inside *kernel = &source->kernels[index];
  if (kernel->crc != 0) find_code(source, index, kernel->crc);
  if (kernel->text != NULL) rl_text_finish(kernel->text);
  if (kernel->text != NULL && kernel->text->lines.count > 0) kernel->listing.text = &kernel->text->lines;
  else
    snprintf(kernel->listing.text_reason, sizeof kernel->listing.text_reason, "%s",
             kernel->text != NULL ? kernel->text->reason : "the code of its module was not kept");
}

typedef struct place { /* whose instructions' places are asked for */
  const rl_inside *kernel;
  const char *symbol;
} place;

static void find_place(void *context, int64_t offset, char *file, size_t size, int64_t *line) {
  const place *of = context;
  CUpti_GetSassToSourceCorrelationParams params = {.size = CUpti_GetSassToSourceCorrelationParamsSize,
                                                   .cubin = of->kernel->cubin,
                                                   .cubinSize = of->kernel->cubin_size,
                                                   .functionName = of->symbol,
                                                   .pcOffset = (uint64_t)offset};
  if (cuptiGetSassToSourceCorrelation(&params) == CUPTI_SUCCESS && params.lineNumber != 0 && params.fileName != NULL) {
    snprintf(file, size, "%s", params.fileName);
    *line = params.lineNumber;
  }
  free(params.fileName);
  free(params.dirName);
}

/* --- the whole ------------------------------------------------------------------------------------------------------------ */

static bool looks_at_code(const rl_source *source) { return source->wanted[RL_VIEW_SASS] || source->wanted[RL_VIEW_SAMPLING]; }

static rl_absences absences_of(const rl_source *source, size_t index) {
  const rl_inside *kernel = &source->kernels[index];
  rl_cubin_function sure;
  if (kernel->text == NULL || !rl_text_is_ready(kernel->text) ||
      !rl_module_is_sure(source->request->kernels[index].symbol, &sure) || strcmp(sure.sha256, kernel->function.sha256) != 0)
    return 0;
  return rl_absences_of_code(&kernel->text->lines);
}

rl_absences rl_source_absences(rl_source *source) {
  rl_absences absent = ~(rl_absences)0;
  for (size_t k = 0; k < source->request->kernel_count && absent != 0; k++)
    if (source->request->kernels[k].ordinal >= 0) absent &= absences_of(source, k);
  return absent;
}

/* A refusal of the profiler's is the reason why a view is missing; anything else is an error of the step. */
static int look(rl_source *source, rl_view from, rl_piece piece, int (*at)(rl_source *, rl_error *), rl_error *err) {
  rl_error why = {0};
  int result = source->wanted[from] ? at(source, &why) : 0;
  rl_spent_on(source->request->spent, piece);
  if (result == 0) return 0;
  if (why.domain == RL_CUPTI || why.domain == RL_SYS) {
    snprintf(source->reasons[from], sizeof source->reasons[from], "%s", why.message);
    return 0;
  }
  if (err != NULL) *err = why;
  return -1;
}

static int sample(rl_source *source, rl_error *err) {
  source->sampled = true;
  int result = look(source, RL_VIEW_SAMPLING, RL_PIECE_SAMPLES, rl_source_sample_stalls, err);
  if (result != 0 || source->reasons[RL_VIEW_SAMPLING][0] != '\0') rl_sampling_stop(source->sampling);
  return result;
}

static void find_codes(rl_source *source) {
  const rl_source_request *request = source->request;
  rl_texts_trim(&source->texts);
  for (size_t k = 0; k < request->kernel_count; k++)
    if (request->kernels[k].ordinal >= 0) find_code(source, k, 0);
}

int rl_source_begin(rl_source *source, const rl_source_request *request, rl_error *err) {
  source->request = request;
  source->sampled = false;
  memset(source->wanted, 0, sizeof source->wanted);
  memset(source->reasons, 0, sizeof source->reasons);
  for (size_t i = 0; i < rl_raw_metric_count; i++)
    if (rl_source_wants(request->profile, &rl_raw_metrics[i])) source->wanted[rl_source_view(rl_raw_metrics[i].name)] = true;
  source->kernels = calloc(request->kernel_count, sizeof *source->kernels);
  int result = source->kernels != NULL ? 0 : rl_fail(err, RL_SYS, ENOMEM, "out of memory for what is inside kernels");
  if (result == 0 && looks_at_code(source)) find_codes(source);
  if (result == 0 && rl_sampling_is_ready(source->sampling)) result = sample(source, err);
  rl_sampling_stop(source->sampling);
  rl_spent_on(request->spent, RL_PIECE_SAMPLES);
  rl_source_pause();
  return result;
}

static int read_place(rl_source *source, rl_error *err) {
  char uuid[48];
  if (source->place.count > 0) return 0;
  if (read_uuid(source->device_index, uuid, err) != 0) return -1;
  rl_topology_read(uuid, &source->place);
  return 0;
}

static void put_hash(rl_records *records, int64_t ordinal, const char *sha256) {
  for (size_t i = 0; i < records->kernel_count; i++)
    if (records->kernels[i].ordinal == ordinal)
      snprintf(records->kernels[i].code_sha256, sizeof records->kernels[i].code_sha256, "%s", sha256);
}

static int append_kernel(rl_source *source, size_t index, rl_error *err) {
  const rl_source_kernel *asked = &source->request->kernels[index];
  rl_inside *kernel = &source->kernels[index];
  const place of = {kernel, asked->symbol};
  const rl_source_places places = {find_place, (void *)(uintptr_t)&of};
  if (looks_at_code(source)) {
    settle_code(source, index);
    if (kernel->cubin != NULL) put_hash(source->records, asked->ordinal, kernel->function.sha256);
    const rl_source_places *known = kernel->cubin != NULL ? &places : NULL;
    if (rl_listing_append(&kernel->listing, asked->ordinal, known, source->records, err) != 0) return -1;
  }
  return rl_source_append_metrics(source, index, err);
}

int rl_source_collect(rl_source *source, rl_records *records, rl_error *err) {
  source->records = records;
  if (look(source, RL_VIEW_PLACE, RL_PIECE_LISTING, read_place, err) != 0 ||
      look(source, RL_VIEW_SASS, RL_PIECE_INSTRUCTIONS, rl_source_count_instructions, err) != 0 ||
      look(source, RL_VIEW_TIMELINE, RL_PIECE_LINES, rl_source_draw_lines, err) != 0 ||
      (!source->sampled && sample(source, err) != 0))
    return -1;
  for (size_t k = 0; k < source->request->kernel_count; k++)
    if (source->request->kernels[k].ordinal >= 0 && append_kernel(source, k, err) != 0) return -1;
  rl_spent_on(source->request->spent, RL_PIECE_LISTING);
  return 0;
}

void rl_source_end(rl_source *source) {
  rl_subscriber_unwatch();
  for (size_t k = 0; source->kernels != NULL && k < source->request->kernel_count; k++) {
    rl_listing_clear(&source->kernels[k].listing);
    free(source->kernels[k].cubin);
  }
  free(source->kernels);
  source->kernels = NULL;
  rl_source_resume();
  rl_spent_on(source->request->spent, RL_PIECE_SAMPLES);
}
