/* Parses a decimal number into its significant digits and the position of its decimal point, moves the point by `scale` digits,
 * and builds the rounded integer digit by digit. */
#include "import/decimal.h"

#include <ctype.h>

enum { MAX_DIGITS = 19, KEPT_DIGITS = MAX_DIGITS + 1, MAX_EXPONENT = 1000 };

typedef struct decimal {
  bool is_negative;
  char digits[KEPT_DIGITS]; /* the first significant digits; further digits are dropped */
  int digit_count;
  /* Position of the decimal point relative to the first significant digit: positive if that many digits precede the point,
   * negative if that many zeros stand between the point and the first significant digit. */
  int point_position;
} decimal;

typedef struct text_range {
  const char *next, *end;
} text_range;

static bool is_digit(const text_range *text) { return text->next < text->end && isdigit((unsigned char)*text->next); }

static bool skip(text_range *text, char expected) {
  if (text->next == text->end || *text->next != expected) return false;
  text->next++;
  return true;
}

/* Reads digits and returns the number of digits read. is_fraction: the digits follow the decimal point. */
static int read_digits(text_range *text, bool is_fraction, decimal *number) {
  int count = 0;
  for (; is_digit(text); text->next++, count++) {
    bool is_leading_zero = number->digit_count == 0 && *text->next == '0';
    if (!is_leading_zero && number->digit_count < KEPT_DIGITS) number->digits[number->digit_count++] = *text->next;
    if (!is_fraction && !is_leading_zero && number->point_position < MAX_EXPONENT) number->point_position++;
    if (is_fraction && is_leading_zero && number->point_position > -MAX_EXPONENT) number->point_position--;
  }
  return count;
}

/* Adds an exponent to number->point_position. Returns false if no digits follow the "e". */
static bool read_exponent(text_range *text, decimal *number) {
  if (!skip(text, 'e') && !skip(text, 'E')) return true;
  bool is_negative = skip(text, '-');
  if (!is_negative) (void)skip(text, '+');
  if (!is_digit(text)) return false;
  int exponent = 0;
  for (; is_digit(text); text->next++)
    if (exponent < MAX_EXPONENT) exponent = exponent * 10 + (*text->next - '0');
  number->point_position += is_negative ? -exponent : exponent;
  return true;
}

static bool parse(const char *text, size_t length, decimal *number) {
  text_range rest = {text, text + length};
  *number = (decimal){.is_negative = skip(&rest, '-')};
  if (read_digits(&rest, false, number) == 0) return false;
  if (skip(&rest, '.') && read_digits(&rest, true, number) == 0) return false;
  return read_exponent(&rest, number) && rest.next == rest.end;
}

bool rl_decimal_parse_scaled(const char *text, size_t length, int scale, int64_t *value) {
  decimal number;
  if (!parse(text, length, &number)) return false;
  int result_digits = number.point_position + scale;
  if (number.digit_count > 0 && result_digits > MAX_DIGITS) return false;
  int64_t result = 0;
  for (int i = 0; i < result_digits; i++)
    if (__builtin_mul_overflow(result, 10, &result) ||
        __builtin_add_overflow(result, i < number.digit_count ? number.digits[i] - '0' : 0, &result))
      return false;
  if (result_digits >= 0 && result_digits < number.digit_count && number.digits[result_digits] >= '5' &&
      __builtin_add_overflow(result, 1, &result))
    return false;
  *value = number.is_negative ? -result : result;
  return true;
}
