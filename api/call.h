/* One HTTP request being answered, and the route that it matched. A handler reads the call, then either passes a response to one
 * of the rl_reply functions and returns 0, or fills err and returns -1: dispatch.c makes a problem document of err. Several
 * threads run handlers at the same time. */
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

enum { RL_BODY_NONE = 0, RL_BODY_CONFIGURED = -1 }; /* values of rl_route.body_limit that are not a number of bytes */

typedef struct rl_route {
  const char *method, *path; /* "/jobs/{id}/events" */
  const char *operation, *summary;
  int (*handle)(rl_call *call, rl_error *err);
  int64_t body_limit;    /* bytes; RL_BODY_NONE; RL_BODY_CONFIGURED: the configuration's body_limit_bytes */
  const rl_field *query; /* the query parameters; NULL: none */
  bool is_public;        /* answers without a token */
  bool ignores_query;    /* the page's scripts read the query; the daemon does not */
} rl_route;

/* What authorizes a call: a token or a login session. The member that does not apply is "". */
typedef struct rl_credential {
  char token_hash[RL_TOKEN_HASH_SIZE];
  char session_id[RL_LOGIN_SESSION_ID_SIZE];
} rl_credential;

struct rl_call {
  rl_server *server;
  struct MHD_Connection *connection;
  rl_connection *connection_record; /* NULL when memory was out */
  char method[16], path[1024];
  int64_t start_ns;         /* rl_monotonic_ns */
  const rl_route *route;    /* NULL until one matches */
  rl_credential credential; /* set by rl_call_find_credential */
  int64_t id;               /* {id} of the path */
  char *body;               /* NUL-terminated; NULL when empty */
  size_t body_length, body_capacity;
  int64_t body_limit;   /* bytes */
  bool refused;         /* err says why; the rest of the body is read and dropped */
  bool parameter_error; /* err.pointer names a query parameter or a header, not a field of the body */
  bool replied;         /* a response was queued, or queueing it failed: no other response is tried */
  int status;
  char allow[64]; /* the Allow header of 405 and of OPTIONS */
  rl_error err;
};

void rl_call_free(rl_call *call); /* NULL is allowed */

/* Returns the header's value, NULL when it is absent. */
const char *rl_call_header(const rl_call *call, const char *name);
/* Decodes the query by the route's table into out[size], which holds the defaults. */
int rl_call_parse_query(rl_call *call, void *out, size_t size, rl_error *err);
/* Parses text, the value of the query parameter name, as an RFC 3339 instant into *ns since the epoch. */
int rl_call_parse_instant(rl_call *call, const char *name, const char *text, int64_t *ns, rl_error *err);
/* Fills err with "NAME MESSAGE" for a query parameter or header, sets parameter_error and returns -1. */
int rl_call_fail_parameter(rl_call *call, rl_error *err, const char *name, const char *message);

#endif
