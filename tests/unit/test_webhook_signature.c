/* Tests the signature of a message against the example of the Standard Webhooks libraries, and keys of the shortest and longest
 * lengths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h needs the headers above */
#include <cmocka.h>

#include "webhook/signature.h"

static void the_published_example_is_signed(void **state) {
  (void)state;
  rl_webhook_key key;
  rl_error err;
  char signature[RL_WEBHOOK_SIGNATURE_SIZE];
  assert_int_equal(rl_webhook_key_decode("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", &key, &err), 0);
  rl_webhook_sign(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, "{\"test\": 2432232314}", signature);
  assert_string_equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

static void keys_have_24_to_64_bytes_in_base64(void **state) {
  (void)state;
#define BASE64_OF_12_BYTES "AAAAAAAAAAAAAAAA"
  enum { UNCHANGED = 7 };
  static const struct {
    const char *text;
    size_t length; /* 0: refused */
  } cases[] = {
      {BASE64_OF_12_BYTES BASE64_OF_12_BYTES, 24},
      {"whsec_" BASE64_OF_12_BYTES BASE64_OF_12_BYTES, 24},
      {"whsec_" BASE64_OF_12_BYTES "AAAAAAAAAAAAAAA=", 0},
      {BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES "AAAAAA==", 64},
      {BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES "AAAAAAA=", 0},
      {BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES BASE64_OF_12_BYTES, 0},
      {BASE64_OF_12_BYTES BASE64_OF_12_BYTES "A", 0},
      {BASE64_OF_12_BYTES BASE64_OF_12_BYTES "!", 0},
      {"whsec_", 0},
      {"", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_webhook_key key = {.length = UNCHANGED};
    rl_error err = {0};
    int rc = rl_webhook_key_decode(cases[i].text, &key, &err);
    if (rc != (cases[i].length > 0 ? 0 : -1) || key.length != (rc == 0 ? cases[i].length : UNCHANGED))
      fail_msg("\"%s\": rl_webhook_key_decode returned %d, the key has %zu bytes", cases[i].text, rc, key.length);
    if (rc < 0) assert_non_null(strstr(err.message, "whsec_"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_published_example_is_signed),
                                     cmocka_unit_test(keys_have_24_to_64_bytes_in_base64)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
