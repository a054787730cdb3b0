#include "worker/cupti/texts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT_MOST = 64, RUNNING_MOST = 16 };

static void free_text(rl_text *text) {
  rl_disassembler_stop(&text->running);
  rl_disassembly_clear(&text->lines);
  free(text);
}

void rl_texts_clear(rl_texts *texts) {
  for (size_t i = 0; i < texts->count; i++) free_text(texts->items[i]);
  free(texts->items);
  *texts = (rl_texts){0};
}

static bool has_failed(const rl_text *text) { return text->running.process.pid == 0 && text->lines.count == 0; }

void rl_texts_trim(rl_texts *texts) {
  size_t kept = 0;
  if (texts->count > KEPT_MOST) rl_texts_clear(texts);
  for (size_t i = 0; i < texts->count; i++)
    if (has_failed(texts->items[i])) free_text(texts->items[i]);
    else texts->items[kept++] = texts->items[i];
  texts->count = kept;
}

static rl_text *find(const rl_texts *texts, const char *sha256) {
  for (size_t i = 0; i < texts->count; i++)
    if (strcmp(texts->items[i]->sha256, sha256) == 0) return texts->items[i];
  return NULL;
}

static size_t count_running(const rl_texts *texts) {
  size_t count = 0;
  for (size_t i = 0; i < texts->count; i++) count += texts->items[i]->running.process.pid != 0;
  return count;
}

static void fail(rl_text *text, const rl_error *why) { snprintf(text->reason, sizeof text->reason, "%s", why->message); }

rl_text *rl_texts_want(rl_texts *texts, const rl_cubin_function *function, const void *cubin, size_t size) {
  rl_error why = {0};
  rl_text *text = find(texts, function->sha256);
  if (text != NULL) return text;
  for (size_t i = 0; i < texts->count && count_running(texts) >= RUNNING_MOST; i++) rl_text_finish(texts->items[i]);
  rl_text **grown = realloc(texts->items, (texts->count + 1) * sizeof *grown);
  if (grown != NULL) texts->items = grown;
  if (grown == NULL || (text = calloc(1, sizeof *text)) == NULL) return NULL;
  snprintf(text->sha256, sizeof text->sha256, "%s", function->sha256);
  if (rl_disassembler_start(NULL, cubin, size, function->symbol, &text->running, &why) != 0) fail(text, &why);
  return texts->items[texts->count++] = text;
}

bool rl_text_is_ready(rl_text *text) {
  if (rl_process_has_exited(&text->running.process)) rl_text_finish(text);
  return text->lines.count > 0;
}

void rl_text_finish(rl_text *text) {
  rl_error why = {0};
  if (text->running.process.pid != 0 && rl_disassembler_finish(&text->running, &text->lines, &why) != 0) fail(text, &why);
}
