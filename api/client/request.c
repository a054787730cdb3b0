/* Implements request.h. A table maps each option to a field of the request and to the type of the option's value, which
 * determines the function that parses it. */
#include "api/client/request.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "api/client/cli.h"
#include "api/client/http.h"
#include "api/client/cells.h"

enum { MAX_BODY_BYTES = 1 << 20, MAX_BINARY_BYTES = 2 << 20, MAX_NAME_BYTES = 80 };
RL_DEFINE_CLEANUP(close_file, FILE *, fclose, NULL)

/* An option of `run`, which sets one field of the request. */
typedef struct option_field {
  const char *name, *field;
  enum { TEXT, NUMBER, BOOLEAN, TEXT_LIST, SIZES, FILE_TEXT, FILE_BYTES, NUMBER_LIST, ARGUMENTS, JSON } type;
  const char *value, *summary;
} option_field;

static const option_field options[] = {
    {"--kind", "kind", TEXT, "NAME", "train (default), kernel, layer, source or ceilings"},
    {"--kernel", "kernel", TEXT, "NAME", "measure a kernel; the next four options describe it"},
    {"--dtype", "dtype", TEXT, "TYPE", "fp64, fp32, tf32, fp16 or bf16"},
    {"--shape", "shape", SIZES, "n=N,…", "sizes of the kernel"},
    {"--variant", "variant", TEXT, "NAME", "default: every variant of the kernel"},
    {"--build", "build", TEXT, "NAME", "build of the kernel, if it has several"},
    {"--code", "code", FILE_TEXT, "FILE", "measure a posted CUDA C++ kernel; the next twelve options describe it"},
    {"--binary", "binary", FILE_BYTES, "FILE", "instead of --code: cubin, fatbin or PTX"},
    {"--entry", "entry", TEXT, "NAME", "name of the kernel in the code"},
    {"--grid", "grid", NUMBER_LIST, "X,Y,Z", "grid dimensions, in blocks"},
    {"--block", "block", NUMBER_LIST, "X,Y,Z", "block dimensions, in threads"},
    {"--cluster", "cluster", NUMBER_LIST, "X,Y,Z", "blocks of a thread block cluster"},
    {"--cooperative", "cooperative", BOOLEAN, "true|false", "cooperative launch; default: false"},
    {"--dynamic-shared-bytes", "dynamic_shared_bytes", NUMBER, "N", "dynamic shared memory of a block"},
    {"--arguments", "arguments", ARGUMENTS, "ARG,…", "such as fp32[N],fp32[N]=uniform,int32=N; or the API's JSON"},
    {"--options", "options", TEXT_LIST, "-lineinfo,…", "compiler options"},
    {"--variants", "variants", JSON, "JSON|FILE", "[{},{\"fast_math\":true}], [\"best\"]: one run each"},
    {"--model", "model", SIZES, "bytes=N,…", "compulsory bytes and operations"},
    {"--expected", "expected", JSON, "JSON|FILE", "{\"argument\":0,\"values\":\"base64\"}"},
    {"--batch", "batch", NUMBER, "N", "sequences of a layer"},
    {"--tokens", "tokens", NUMBER, "N", "new tokens of each sequence of a layer"},
    {"--cached-tokens", "cached_tokens", NUMBER, "N", "tokens in the KV cache of a layer"},
    {"--hidden", "hidden", NUMBER, "N", "elements of a token of a layer"},
    {"--heads", "heads", NUMBER, "N", "heads of a layer's attention"},
    {"--ffn", "ffn", NUMBER, "N", "outputs of a layer's gate"},
    {"--causal", "causal", BOOLEAN, "true|false", "whether a token attends only to earlier tokens; default: true"},
    {"--samples", "samples", NUMBER, "N", "timed launches in each cache mode"},
    {"--pause-ms", "pause_ms", NUMBER, "N", "idle time of the device before each sample"},
    {"--precisions", "precisions", TEXT_LIST, "fp32,fp16", "one run each: fp32, tf32, fp16"},
    {"--epochs", "epochs", NUMBER, "N", "measured epochs"},
    {"--warmup-epochs", "warmup_epochs", NUMBER, "N", "warm-up epochs"},
    {"--batch-size", "batch_size", NUMBER, "N", "images in a step"},
    {"--learning-rate", "learning_rate", NUMBER, "X", "Adam's learning rate"},
    {"--seed", "seed", NUMBER, "N", "seed of weights and shuffles"},
    {"--max-images", "max_images", NUMBER, "N", "train on the first N images only"},
    {"--engine", "engine", TEXT, "NAME", "auto, or one from the API's description"},
    {"--dataset", "dataset", TEXT, "NAME", "auto, files or synthetic"},
    {"--device", "device", TEXT, "ID", "an id that `rooflinectl devices` lists"},
    {"--passes", "passes", TEXT_LIST, "timing,…", "timing, activity, counters"},
    {"--set", "set", TEXT, "NAME", "counter set: basic, detailed or full"},
    {"--sections", "sections", TEXT_LIST, "ID,…", "report sections in addition to the set"},
    {"--metrics", "metrics", TEXT_LIST, "NAME,…", "raw metrics in addition to the set"},
    {"--cache", "cache", TEXT, "full|empty", "L2 before each profiled kernel; default: full"},
    {"--kernels", "kernels", TEXT, "PATTERN", "kernels of a training step to profile"},
    {"--launch", "launch", NUMBER, "N", "index among the matching kernels, from 0"},
    {"--fresh-worker", "fresh_worker", BOOLEAN, "true|false", "in new worker processes; default: false"},
    {"--worker-build", "worker_build", TEXT, "NAME", "a build of the workers from the daemon's setting builds"},
    {"--deadline", "deadline_s", NUMBER, "SECONDS", "deadline of the job"},
    {"--name", "name", TEXT, "NAME", "shown in the list of jobs; default: FILE of --code, --binary"},
    {"--tags", "tags", TEXT_LIST, "TAG,…", "shown in the list of jobs"},
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

const rl_cli_option *rl_request_options(void) {
  static rl_cli_option listed[OPTION_COUNT + 1];
  for (int i = 0; i < OPTION_COUNT; i++) listed[i] = (rl_cli_option){options[i].name, options[i].value, options[i].summary};
  return listed;
}

/* Reads a file of at most max_bytes (a multiple of 1 MiB) and appends a NUL. Returns malloc'ed memory; NULL with err on
 * failure. */
static char *read_file(const char *file, size_t max_bytes, size_t *length, rl_error *err) {
  RL_CLEANUP(close_file) FILE *opened = NULL;
  FILE *in = stdin;
  if (strcmp(file, "-") != 0) in = opened = fopen(file, "re");
  if (in == NULL) {
    rl_fail(err, RL_INPUT, 0, "%s: %s", file, strerror(errno));
    return NULL;
  }
  char *bytes = malloc(max_bytes + 1);
  *length = bytes != NULL ? fread(bytes, 1, max_bytes + 1, in) : 0;
  if (bytes == NULL || ferror(in) || *length > max_bytes) {
    if (bytes != NULL && *length > max_bytes) rl_fail(err, RL_INPUT, 0, "%s: larger than %zu MiB", file, max_bytes >> 20);
    else rl_fail(err, RL_INPUT, 0, "%s: not readable", file);
    free(bytes);
    return NULL;
  }
  bytes[*length] = '\0';
  return bytes;
}

char *rl_request_read_file(const char *file, rl_error *err) {
  size_t length;
  char *text = read_file(file, MAX_BODY_BYTES, &length, err);
  if (text == NULL || strlen(text) == length) return text;
  rl_fail(err, RL_INPUT, 0, "%s: contains a NUL byte", file);
  free(text);
  return NULL;
}

static int fail_no_memory(rl_error *err) { return rl_fail(err, RL_ERRNO, ENOMEM, "no memory for a request"); }

static int add_text(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  return cJSON_AddStringToObject(request, option->field, value) != NULL ? 0 : fail_no_memory(err);
}

static int add_number(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  char *end;
  double parsed = strtod(value, &end);
  if (end == value || *end != '\0') return rl_fail_usage(err, "%s needs a number, not %s", option->name, value);
  cJSON_AddNumberToObject(request, option->field, parsed);
  return 0;
}

static int add_boolean(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  const bool is_true = strcmp(value, "true") == 0;
  if (!is_true && strcmp(value, "false") != 0) return rl_fail_usage(err, "%s needs true or false, not %s", option->name, value);
  cJSON_AddBoolToObject(request, option->field, is_true);
  return 0;
}

/* Returns the next item of the comma-separated list *rest, malloc'ed; NULL if memory is exhausted. Sets *rest to the remaining
 * list, or to NULL after the last item. */
static char *next_item(const char **rest) {
  size_t length = strcspn(*rest, ",");
  char *item = strndup(*rest, length);
  *rest = (*rest)[length] == '\0' ? NULL : *rest + length + 1;
  return item;
}

static int add_text_list(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  cJSON *list = cJSON_AddArrayToObject(request, option->field);
  if (value[0] == '\0') return 0;
  while (value != NULL) {
    RL_CLEANUP(rl_free_text) char *item = next_item(&value);
    if (item == NULL || !cJSON_AddItemToArray(list, cJSON_CreateString(item))) return fail_no_memory(err);
  }
  return 0;
}

/* Adds a size, such as "rows=4" or "causal=true", to the object. Returns false if the text has another form. */
static bool add_size(cJSON *sizes, char *pair) {
  char *end, *equals = strchr(pair, '=');
  if (equals == NULL) return false;
  *equals = '\0';
  const char *value = equals + 1;
  if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0) return cJSON_AddBoolToObject(sizes, pair, *value == 't') != NULL;
  double size = strtod(value, &end);
  return end != value && *end == '\0' && cJSON_AddNumberToObject(sizes, pair, size) != NULL;
}

/* Parses "rows=4,columns=8". */
static int add_sizes(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  cJSON *sizes = cJSON_AddObjectToObject(request, option->field);
  for (const char *rest = value; rest != NULL;) {
    RL_CLEANUP(rl_free_text) char *pair = next_item(&rest);
    if (pair == NULL) return fail_no_memory(err);
    if (!add_size(sizes, pair)) return rl_fail_usage(err, "%s needs sizes like rows=4,columns=8, not %s", option->name, value);
  }
  return 0;
}

/* Parses "128,2". */
static int add_number_list(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  cJSON *list = cJSON_AddArrayToObject(request, option->field);
  for (const char *next = value;; next++) {
    char *end;
    double parsed = strtod(next, &end);
    if (end == next || (*end != ',' && *end != '\0'))
      return rl_fail_usage(err, "%s needs numbers like 128,2, not %s", option->name, value);
    cJSON_AddItemToArray(list, cJSON_CreateNumber(parsed));
    if (*end == '\0') return 0;
    next = end;
  }
}

/* Adds a kernel argument, such as "fp32[100]", "fp32[100]=range" or "int32=100". Returns false if the text has another form. */
static bool add_argument(cJSON *list, char *text) {
  char *open = strchr(text, '['), *equals = strchr(text, '='), *end;
  cJSON *argument = cJSON_CreateObject();
  cJSON_AddItemToArray(list, argument);
  cJSON *description = cJSON_AddObjectToObject(argument, open != NULL ? "buffer" : "scalar");
  if (open == NULL && equals == NULL) return false;
  if (equals != NULL) *equals = '\0';
  if (open != NULL) *open = '\0';
  cJSON_AddStringToObject(description, "dtype", text);
  const char *number = open != NULL ? open + 1 : equals + 1;
  cJSON_AddNumberToObject(description, open != NULL ? "count" : "value", strtod(number, &end));
  if (open != NULL && equals != NULL) cJSON_AddStringToObject(description, "init", equals + 1);
  return end != number && strcmp(end, open != NULL ? "]" : "") == 0;
}

/* Adds JSON from the command line or from a file. */
static int add_json(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *text = value[0] == '{' || value[0] == '[' ? strdup(value) : rl_request_read_file(value, err);
  if (text == NULL) return -1;
  cJSON *parsed = cJSON_ParseWithOpts(text, NULL, true);
  if (parsed == NULL) return rl_fail_usage(err, "%s needs JSON like %s", option->name, option->summary);
  return cJSON_AddItemToObject(request, option->field, parsed) ? 0 : fail_no_memory(err);
}

static int add_arguments(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  if (value[0] == '[') return add_json(request, option, value, err);
  cJSON *list = cJSON_AddArrayToObject(request, option->field);
  for (const char *rest = value; rest != NULL;) {
    RL_CLEANUP(rl_free_text) char *text = next_item(&rest);
    if (text == NULL) return fail_no_memory(err);
    if (!add_argument(list, text))
      return rl_fail_usage(err, "%s needs arguments like fp32[100]=range,fp32[100],int32=100, not %s", option->name, value);
  }
  return 0;
}

static int add_text_file(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  RL_CLEANUP(rl_free_text) char *text = rl_request_read_file(value, err);
  return text != NULL ? add_text(request, option, text, err) : -1;
}

/* Adds a file's bytes in base64. */
static int add_base64_file(cJSON *request, const option_field *option, const char *value, rl_error *err) {
  size_t length;
  RL_CLEANUP(rl_free_text) char *bytes = read_file(value, MAX_BINARY_BYTES, &length, err);
  if (bytes == NULL) return -1;
  size_t size = sodium_base64_ENCODED_LEN(length, sodium_base64_VARIANT_ORIGINAL);
  RL_CLEANUP(rl_free_text) char *text = malloc(size);
  if (text == NULL) return fail_no_memory(err);
  sodium_bin2base64(text, size, (const unsigned char *)bytes, length, sodium_base64_VARIANT_ORIGINAL);
  return add_text(request, option, text, err);
}

static bool is_label(const option_field *option) {
  return strcmp(option->field, "name") == 0 || strcmp(option->field, "tags") == 0;
}

static int add_option(cJSON *request, const char *command, const char *name, const char *value, rl_error *err) {
  static int (*const adders[])(cJSON *, const option_field *, const char *, rl_error *) = {[TEXT] = add_text,
                                                                                           [NUMBER] = add_number,
                                                                                           [BOOLEAN] = add_boolean,
                                                                                           [TEXT_LIST] = add_text_list,
                                                                                           [SIZES] = add_sizes,
                                                                                           [FILE_TEXT] = add_text_file,
                                                                                           [FILE_BYTES] = add_base64_file,
                                                                                           [NUMBER_LIST] = add_number_list,
                                                                                           [ARGUMENTS] = add_arguments,
                                                                                           [JSON] = add_json};
  for (int i = 0; i < OPTION_COUNT; i++) {
    if (strcmp(options[i].name, name) != 0) continue;
    if (strcmp(command, "label") == 0 && !is_label(&options[i])) break;
    if (value == NULL) return rl_fail_usage(err, "%s needs a value", name);
    if (cJSON_HasObjectItem(request, options[i].field)) return rl_fail_usage(err, "%s was given twice", name);
    return adders[options[i].type](request, &options[i], value, err);
  }
  return rl_fail_argument(err, command, name);
}

/* Returns the kind of a request without --kind. */
static const char *infer_kind(const cJSON *request) {
  if (cJSON_HasObjectItem(request, "kernel")) return "kernel";
  return cJSON_HasObjectItem(request, "code") || cJSON_HasObjectItem(request, "binary") ? "source" : "train";
}

/* Sets the name of a job of posted code to the name of the code's file. */
static int add_default_name(cJSON *request, const char *file, rl_error *err) {
  const char *slash = strrchr(file, '/'), *name = slash != NULL ? slash + 1 : file;
  if (strcmp(file, "-") == 0 || strlen(name) > MAX_NAME_BYTES || cJSON_HasObjectItem(request, "name")) return 0;
  return cJSON_AddStringToObject(request, "name", name) != NULL ? 0 : fail_no_memory(err);
}

static bool is_source_option(const char *name) { return strcmp(name, "--code") == 0 || strcmp(name, "--binary") == 0; }

/* Adds the options of a command line, NAME VALUE or NAME=VALUE. Sets *source_file to the value of --code or --binary. */
static int add_options(cJSON *request, const char *command, int argc, char **argv, const char **source_file, rl_error *err) {
  for (int i = 0; i < argc; i++) {
    char name[64];
    const char *equals = strchr(argv[i], '=');
    snprintf(name, sizeof name, "%.*s", equals != NULL ? (int)(equals - argv[i]) : (int)strlen(argv[i]), argv[i]);
    const char *value = equals != NULL ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
    if (add_option(request, command, name, value, err) < 0) return -1;
    if (is_source_option(name)) *source_file = value;
  }
  return 0;
}

int rl_request_from_arguments(int argc, char **argv, char **body, rl_error *err) {
  if (argc == 1 && (argv[0][0] != '-' || argv[0][1] == '\0')) {
    *body = rl_request_read_file(argv[0], err);
    return *body != NULL ? 0 : -1;
  }
  RL_CLEANUP(rl_json_free) cJSON *request = cJSON_CreateObject();
  const char *source_file = NULL;
  if (add_options(request, "run", argc, argv, &source_file, err) < 0) return -1;
  if (source_file != NULL && add_default_name(request, source_file, err) < 0) return -1;
  if (!cJSON_HasObjectItem(request, "kind")) cJSON_AddStringToObject(request, "kind", infer_kind(request));
  *body = cJSON_PrintUnformatted(request);
  return *body != NULL ? 0 : fail_no_memory(err);
}

int rl_request_labels_from_arguments(int argc, char **argv, char **body, rl_error *err) {
  RL_CLEANUP(rl_json_free) cJSON *request = cJSON_CreateObject();
  const char *none = NULL;
  if (argc == 0) return rl_fail_usage(err, "label needs --name or --tags");
  if (add_options(request, "label", argc, argv, &none, err) < 0) return -1;
  *body = cJSON_PrintUnformatted(request);
  return *body != NULL ? 0 : fail_no_memory(err);
}

const rl_cli_option *rl_label_options(void) {
  static rl_cli_option listed[OPTION_COUNT + 1];
  int count = 0;
  for (int i = 0; i < OPTION_COUNT; i++)
    if (is_label(&options[i])) listed[count++] = (rl_cli_option){options[i].name, options[i].value, options[i].summary};
  return listed;
}
