/* Makes MHD responses from texts and adds the security headers. */
#include "api/response.h"

#include <stdlib.h>

static const struct {
  const char *name, *value;
} security_headers[] = {
    {"Content-Security-Policy",
     "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; object-src 'none'; "
     "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

void rl_response_add_header(struct MHD_Response *response, const char *name, const char *value) {
  MHD_add_response_header(response, name, value);
}

struct MHD_Response *rl_response_text(char *text, size_t length, const char *content_type) {
  if (text == NULL) return NULL;
  struct MHD_Response *response = MHD_create_response_from_buffer(length, text, MHD_RESPMEM_MUST_FREE);
  if (response == NULL) free(text);
  else rl_response_add_header(response, "Content-Type", content_type);
  return response;
}

struct MHD_Response *rl_response_empty(void) {
  return MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
}

void rl_response_add_security_headers(struct MHD_Response *response) {
  for (size_t i = 0; i < sizeof security_headers / sizeof *security_headers; i++)
    rl_response_add_header(response, security_headers[i].name, security_headers[i].value);
}
