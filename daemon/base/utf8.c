/* Implements utf8.h. */
#include "base/utf8.h"

static bool is_continuation(unsigned char byte) { return (byte & 0xc0) == 0x80; }

size_t rl_utf8_character_size(const char *text, size_t size) {
  const unsigned char *bytes = (const unsigned char *)text;
  if (size == 0) return 0;
  unsigned char first = bytes[0];
  if (first < 0x80) return 1;
  size_t length = first >= 0xc2 && first <= 0xdf ? 2 : (first & 0xf0) == 0xe0 ? 3 : first >= 0xf0 && first <= 0xf4 ? 4 : 0;
  if (length == 0 || length > size) return 0;
  for (size_t i = 1; i < length; i++)
    if (!is_continuation(bytes[i])) return 0;
  bool overlong = (first == 0xe0 && bytes[1] < 0xa0) || (first == 0xf0 && bytes[1] < 0x90);
  bool surrogate = first == 0xed && bytes[1] > 0x9f, beyond = first == 0xf4 && bytes[1] > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

/* Returns the offset of the first byte that is not part of a valid character; `size` if all bytes are. */
static size_t find_first_invalid_byte(const char *text, size_t size) {
  size_t offset = 0;
  for (size_t step; offset < size && (step = rl_utf8_character_size(text + offset, size - offset)) > 0;) offset += step;
  return offset;
}

bool rl_utf8_is_valid(const char *text, size_t size) { return find_first_invalid_byte(text, size) == size; }

void rl_utf8_sanitize(char *text, size_t size) {
  for (size_t i = find_first_invalid_byte(text, size); i < size; i += find_first_invalid_byte(text + i, size - i)) text[i] = '?';
}
