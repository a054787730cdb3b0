/* Implements base64.h (RFC 4648, section 4). libsodium decodes ten times as slowly, in a time that does not depend on the text,
 * which posted contents do not need. */
#include "source/base64.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The value of each digit plus 1; 0: not a digit. */
static const uint8_t digit_values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,  ['I'] = 9,  ['J'] = 10,
    ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20,
    ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30,
    ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49, ['x'] = 50,
    ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56, ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60,
    ['8'] = 61, ['9'] = 62, ['+'] = 63, ['/'] = 64};

/* Decodes four digits to 24 bits. Returns false if a character is not a digit. */
static bool decode_group(const char *text, uint32_t *bits) {
  const uint32_t a = digit_values[(uint8_t)text[0]], b = digit_values[(uint8_t)text[1]], c = digit_values[(uint8_t)text[2]],
                 d = digit_values[(uint8_t)text[3]];
  *bits = (a - 1) << 18 | (b - 1) << 12 | (c - 1) << 6 | (d - 1);
  return a != 0 && b != 0 && c != 0 && d != 0;
}

/* Decodes the last group, of which the last `padding` (1 or 2) characters are "=". Unused bits must be 0. */
static bool decode_padded_group(const char *text, size_t padding, unsigned char *bytes) {
  char digits[] = {text[0], text[1], padding == 1 ? text[2] : 'A', 'A'};
  uint32_t bits;
  if (!decode_group(digits, &bits) || (bits & (padding == 1 ? 0xff : 0xffff)) != 0) return false;
  bytes[0] = (unsigned char)(bits >> 16);
  if (padding == 1) bytes[1] = (unsigned char)(bits >> 8);
  return true;
}

/* length: a multiple of 4, not 0. Writes length / 4 * 3 bytes, less the padding. */
static bool decode(const char *text, size_t length, size_t padding, unsigned char *bytes) {
  const size_t full_length = length - (padding > 0 ? 4 : 0);
  for (size_t i = 0; i < full_length; i += 4, bytes += 3) {
    uint32_t bits;
    if (!decode_group(text + i, &bits)) return false;
    bytes[0] = (unsigned char)(bits >> 16);
    bytes[1] = (unsigned char)(bits >> 8);
    bytes[2] = (unsigned char)bits;
  }
  return padding == 0 || decode_padded_group(text + full_length, padding, bytes);
}

int rl_source_decode_base64(const char *text, size_t max_size, const char *pointer, unsigned char **bytes, size_t *size,
                            rl_error *err) {
  const size_t length = strlen(text);
  if (length == 0 || length % 4 != 0) return rl_fail_at(err, pointer, "must be bytes in base64");
  const size_t padding = (text[length - 1] == '=') + (text[length - 1] == '=' && text[length - 2] == '='),
               decoded_size = length / 4 * 3 - padding;
  if (decoded_size > max_size) return rl_fail_at(err, pointer, "at most %zu bytes can be posted here", max_size);
  unsigned char *decoded = malloc(decoded_size + 1);
  if (decoded == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a buffer");
  if (!decode(text, length, padding, decoded)) {
    free(decoded);
    return rl_fail_at(err, pointer, "must be bytes in base64");
  }
  decoded[decoded_size] = '\0';
  *bytes = decoded;
  *size = decoded_size;
  return 0;
}
