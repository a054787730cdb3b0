/* Signatures against the example of the Standard Webhooks libraries, and keys at the bounds of their length. */
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
#define A16 "AAAAAAAAAAAAAAAA" /* 12 bytes */
  static const struct {
    const char *text;
    size_t length; /* 0: refused */
  } cases[] = {{A16 A16, 24},
               {"whsec_" A16 A16, 24},
               {"whsec_" A16 "AAAAAAAAAAAAAAA=", 0},
               {A16 A16 A16 A16 A16 "AAAAAA==", 64},
               {A16 A16 A16 A16 A16 "AAAAAAA=", 0},
               {A16 A16 A16 A16 A16 A16, 0},
               {A16 A16 "A", 0},
               {A16 A16 "!", 0},
               {"whsec_", 0},
               {"", 0}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_webhook_key key = {.length = 7};
    rl_error err = {0};
    int rc = rl_webhook_key_decode(cases[i].text, &key, &err);
    if (rc != (cases[i].length > 0 ? 0 : -1) || key.length != (rc == 0 ? cases[i].length : 7))
      fail_msg("\"%s\": %d, %zu bytes", cases[i].text, rc, key.length);
    if (rc < 0) assert_non_null(strstr(err.message, "whsec_"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_published_example_is_signed),
                                     cmocka_unit_test(keys_have_24_to_64_bytes_in_base64)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
