/* Collects the significant digits and the position of the decimal point, then builds the integer digit by digit. */
#include "import/decimal.h"

#include <ctype.h>

enum { MAX_DIGITS = 19, KEPT_DIGITS = MAX_DIGITS + 1, MAX_EXPONENT = 1000 };

typedef struct decimal {
  bool is_negative;
  char digits[KEPT_DIGITS]; /* the first significant digits; further digits are dropped */
  int digit_count;
  int integer_digits; /* digits before the decimal point; negative: zeros after it */
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

/* Reads digits and returns their number. is_fraction: the digits follow the decimal point. */
static int read_digits(text_range *text, bool is_fraction, decimal *number) {
  int count = 0;
  for (; is_digit(text); text->next++, count++) {
    bool is_leading_zero = number->digit_count == 0 && *text->next == '0';
    if (!is_leading_zero && number->digit_count < KEPT_DIGITS) number->digits[number->digit_count++] = *text->next;
    if (!is_fraction && !is_leading_zero && number->integer_digits < MAX_EXPONENT) number->integer_digits++;
    if (is_fraction && is_leading_zero && number->integer_digits > -MAX_EXPONENT) number->integer_digits--;
  }
  return count;
}

/* Adds an exponent to number->integer_digits. Returns false if no digits follow the "e". */
static bool read_exponent(text_range *text, decimal *number) {
  if (!skip(text, 'e') && !skip(text, 'E')) return true;
  bool is_negative = skip(text, '-');
  if (!is_negative) (void)skip(text, '+');
  if (!is_digit(text)) return false;
  int exponent = 0;
  for (; is_digit(text); text->next++)
    if (exponent < MAX_EXPONENT) exponent = exponent * 10 + (*text->next - '0');
  number->integer_digits += is_negative ? -exponent : exponent;
  return true;
}

static bool parse(const char *text, size_t length, decimal *number) {
  text_range rest = {text, text + length};
  *number = (decimal){.is_negative = skip(&rest, '-')};
  if (read_digits(&rest, false, number) == 0) return false;
  if (skip(&rest, '.') && read_digits(&rest, true, number) == 0) return false;
  return read_exponent(&rest, number) && rest.next == rest.end;
}

bool rl_decimal_scale(const char *text, size_t length, int scale, int64_t *value) {
  decimal number;
  if (!parse(text, length, &number)) return false;
  int digits = number.integer_digits + scale; /* number of digits of the result */
  if (number.digit_count > 0 && digits > MAX_DIGITS) return false;
  int64_t result = 0;
  for (int i = 0; i < digits; i++)
    if (__builtin_mul_overflow(result, 10, &result) ||
        __builtin_add_overflow(result, i < number.digit_count ? number.digits[i] - '0' : 0, &result))
      return false;
  if (digits >= 0 && digits < number.digit_count && number.digits[digits] >= '5' && __builtin_add_overflow(result, 1, &result))
    return false;
  *value = number.is_negative ? -result : result;
  return true;
}
