#include "base/utf8.h"

static bool continues(unsigned char byte) { return (byte & 0xc0) == 0x80; }

size_t rl_utf8_size(const char *text, size_t size) {
  const unsigned char *at = (const unsigned char *)text;
  if (size == 0) return 0;
  unsigned char first = at[0];
  if (first < 0x80) return 1;
  size_t wanted = first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (wanted == 0 || wanted > size) return 0;
  for (size_t i = 1; i < wanted; i++)
    if (!continues(at[i])) return 0;
  bool overlong = (first == 0xe0 && at[1] < 0xa0) || (first == 0xf0 && at[1] < 0x90);
  bool surrogate = first == 0xed && at[1] > 0x9f, beyond = first == 0xf4 && at[1] > 0x8f;
  return overlong || surrogate || beyond ? 0 : wanted;
}

/* Where the first byte stands that belongs to no character; size when there is none. */
static size_t first_stray(const char *text, size_t size) {
  size_t at = 0;
  for (size_t step; at < size && (step = rl_utf8_size(text + at, size - at)) > 0;) at += step;
  return at;
}

bool rl_utf8_valid(const char *text, size_t size) { return first_stray(text, size) == size; }

void rl_utf8_sanitize(char *text, size_t size) {
  for (size_t at = first_stray(text, size); at < size; at += first_stray(text + at, size - at)) text[at] = '?';
}
