/* Implements utf8.h. */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

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

/* --- text that shows nothing --------------------------------------------------------------------------------------------- */

typedef struct code_point_range {
  uint32_t first, last;
} code_point_range;

/* The ranges of White_Space and Default_Ignorable_Code_Point in Unicode 15, sorted, and U+2800, a Braille pattern without dots.
 */
static const code_point_range blank_ranges[] = {
    {0x9, 0xd},       {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},       {0xad, 0xad},       {0x34f, 0x34f},
    {0x61c, 0x61c},   {0x115f, 0x1160}, {0x1680, 0x1680}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x2000, 0x200f},
    {0x2028, 0x202f}, {0x205f, 0x206f}, {0x2800, 0x2800}, {0x3000, 0x3000},   {0x3164, 0x3164},   {0xfe00, 0xfe0f},
    {0xfeff, 0xfeff}, {0xffa0, 0xffa0}, {0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};

static bool is_blank(uint32_t code_point) {
  size_t i = 0;
  while (i < sizeof blank_ranges / sizeof *blank_ranges && code_point > blank_ranges[i].last) i++;
  return i < sizeof blank_ranges / sizeof *blank_ranges && code_point >= blank_ranges[i].first;
}

/* Returns the code point of a valid character of `size` bytes. */
static uint32_t decode(const char *character, size_t size) {
  const unsigned char first = (unsigned char)character[0];
  uint32_t code_point = size == 1 ? first : first & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; i++) code_point = code_point << 6 | ((unsigned char)character[i] & 0x3f);
  return code_point;
}

bool rl_utf8_is_blank(const char *text) {
  for (size_t size; *text != '\0'; text += size) {
    size = rl_utf8_character_size(text, strlen(text));
    if (size == 0 || !is_blank(decode(text, size))) return false;
  }
  return true;
}
