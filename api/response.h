/* Makes MHD responses. */
#ifndef RL_API_RESPONSE_H
#define RL_API_RESPONSE_H

#include <microhttpd.h>
#include <stddef.h>

/* Returns a response that owns `text`, which is malloc'ed; NULL if memory is exhausted or text is NULL. */
struct MHD_Response *rl_response_text(char *text, size_t length, const char *content_type);
struct MHD_Response *rl_response_empty(void); /* NULL if memory is exhausted */
void rl_response_add_header(struct MHD_Response *response, const char *name, const char *value);
/* Adds headers such as Content-Security-Policy, which restrict a browser. Every response has them. */
void rl_response_add_security_headers(struct MHD_Response *response);

#endif
