/* A call is one HTTP request on an MHD connection, together with its reply; an rl_call holds its state. A route is an HTTP method
 * and a path with the handler for them. A handler reads the call and either replies with an rl_reply function (reply.h) and
 * returns 0, or fills err and returns -1; then dispatch.c replies with a problem document. Several threads run handlers at the
 * same time. */
#ifndef RL_API_CALL_H
#define RL_API_CALL_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/connections.h"
#include "api/login_sessions.h"
#include "base/fields.h"

typedef struct rl_server rl_server;
typedef struct rl_call rl_call;

enum { RL_BODY_NONE = 0, RL_BODY_CONFIGURED = -1 }; /* special values of rl_route.body_limit */

typedef struct rl_route {
  const char *method, *path; /* "/jobs/{id}/events" */
  const char *operation, *summary;
  int (*handle)(rl_call *call, rl_error *err);
  int64_t body_limit;    /* bytes. RL_BODY_NONE: no body allowed; RL_BODY_CONFIGURED: the setting body_limit_bytes */
  const rl_field *query; /* the accepted query parameters; NULL: none */
  bool is_public;        /* needs no token */
  bool ignores_query;    /* accepts any query, which the scripts of the page read */
} rl_route;

/* The token or the login session that authorizes a call. The other member is "". */
typedef struct rl_credential {
  char token_hash[RL_TOKEN_HASH_SIZE];
  char session_id[RL_LOGIN_SESSION_ID_SIZE];
} rl_credential;

struct rl_call {
  rl_server *server;
  struct MHD_Connection *connection;
  rl_connection *connection_record; /* NULL: no memory was left for it */
  char method[16], path[1024];
  int64_t start_ns;         /* rl_monotonic_ns */
  const rl_route *route;    /* NULL: no route matches, or it was not looked up yet */
  rl_credential credential; /* set by rl_call_find_credential */
  int64_t id;               /* the number in place of {id} in the path */
  char *body;               /* NUL-terminated; NULL when empty */
  size_t body_length, body_capacity;
  int64_t body_limit;   /* bytes */
  bool refused;         /* err has the reason; the rest of the body is read and dropped */
  bool parameter_error; /* err.pointer names a query parameter or a header, not a field of the body */
  bool replied;         /* a response was queued, or queueing failed: no other is tried */
  int status;           /* HTTP status of the reply; 0: none */
  char allow[64];       /* value of the Allow header, for 405 and OPTIONS */
  rl_error err;
};

void rl_call_free(rl_call *call); /* accepts NULL */

/* Returns the value of a request header; NULL if it is absent. */
const char *rl_call_header(const rl_call *call, const char *name);
/* Decodes the query parameters by the route's table into the struct at out, which has `size` bytes and holds the defaults. */
int rl_call_parse_query(rl_call *call, void *out, size_t size, rl_error *err);
/* Parses `text`, the value of the query parameter `name`, as RFC 3339. *ns: since 1970. */
int rl_call_parse_instant(rl_call *call, const char *name, const char *text, int64_t *ns, rl_error *err);
/* Fills err with "NAME MESSAGE" for a query parameter or header, sets parameter_error and returns -1. */
int rl_call_fail_parameter(rl_call *call, rl_error *err, const char *name, const char *message);

#endif
