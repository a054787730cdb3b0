/* An HTTP request on an MHD connection, and the state of its reply. A route has an HTTP method, a path and a handler. A handler
 * reads the request, replies with a function of reply.h and returns 0; or it fills err and returns -1, and dispatch.c replies
 * with a problem document. A thread of the route's pool runs the handler while the connection is suspended. Several requests are
 * handled at the same time. */
#ifndef RL_API_HTTP_REQUEST_H
#define RL_API_HTTP_REQUEST_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/body_cache.h"
#include "api/connections.h"
#include "api/login_sessions.h"
#include "api/request_budget.h"
#include "api/request_pools.h"
#include "base/fields.h"
#include "upload/spool.h"

typedef struct rl_server rl_server;
typedef struct rl_http_request rl_http_request;

enum { RL_PATH_NAME_SIZE = 65 };
/* The values in a path. */
typedef struct rl_path_values {
  int64_t id;                   /* value of {id} */
  char name[RL_PATH_NAME_SIZE]; /* value of {name} */
} rl_path_values;

enum { RL_BODY_NONE = 0, RL_BODY_CONFIGURED = -1, RL_BODY_UPLOAD = -2 }; /* special values of rl_route.body_limit */

/* The data on which the cached replies of a route depend (cached_reply.h). */
typedef enum rl_cached_by {
  RL_CACHED_BY_NOTHING,         /* replies are not cached */
  RL_CACHED_BY_PROGRAM,         /* replies are the same until the daemon ends */
  RL_CACHED_BY_JOB,             /* the job with the id in the path */
  RL_CACHED_BY_RUN,             /* the job of the run with the id in the path, and the ceilings */
  RL_CACHED_BY_RUNS,            /* the jobs of the runs that the parameters a and b name, and the ceilings */
  RL_CACHED_BY_AGED_CEILINGS,   /* the ceilings and their age in whole seconds */
  RL_CACHED_BY_LISTS,           /* lists of jobs, and the history */
  RL_CACHED_BY_SUITES,          /* suite runs and baselines */
  RL_CACHED_BY_SUITES_AND_LISTS /* the data of RL_CACHED_BY_SUITES and RL_CACHED_BY_LISTS, and the value that the handler passes
                                   to rl_cached_reply_share */
} rl_cached_by;

typedef struct rl_route {
  const char *method, *path;       /* "/jobs/{id}/events" */
  const char *operation, *summary; /* operationId and summary in schema/openapi.json */
  int (*handle)(rl_http_request *request, rl_error *err);
  int64_t body_limit;    /* bytes. RL_BODY_NONE: no body allowed; RL_BODY_CONFIGURED: the setting body_limit_bytes;
                          RL_BODY_UPLOAD: a file of any media type, spooled (upload/spool.h), at most import_limit_bytes */
  const rl_field *query; /* the accepted query parameters; NULL: none */
  rl_cached_by cached_by;
  rl_pool pool;                                     /* pool that runs the handler */
  bool (*is_heavy)(const rl_http_request *request); /* returns whether RL_POOL_HEAVY runs this request; NULL: never */
  bool is_public;                                   /* needs no token */
  bool ignores_query; /* accepts any query parameters, because scripts of the web page read them in the browser */
} rl_route;

/* The token or the login session that authorizes a request. The unused member is "". */
typedef struct rl_credential {
  char token_hash[RL_TOKEN_HASH_SIZE];
  char session_id[RL_LOGIN_SESSION_ID_SIZE];
} rl_credential;

struct rl_http_request {
  rl_server *server;
  struct MHD_Connection *connection;
  rl_connection *tracked_connection; /* NULL: its allocation failed */
  int socket;
  char method[16], path[1024];
  int64_t start_ns;             /* rl_monotonic_ns */
  const rl_route *route;        /* NULL: no route matches, or it was not looked up yet */
  rl_credential credential;     /* set by rl_http_request_find_credential */
  int64_t id;                   /* value of {id} in the path */
  char name[RL_PATH_NAME_SIZE]; /* value of {name} in the path */
  char *body;                   /* NUL-terminated; NULL when empty */
  size_t body_length, body_capacity;
  rl_upload *upload;        /* file to which the earlier parts of the body were written, before `body`; NULL: no upload */
  int64_t body_limit;       /* bytes */
  bool too_many_parameters; /* the query had more than 64 parameters and was truncated */
  bool must_authorize;      /* the token is checked after the body (may_authorize_after_body in dispatch.c) */
  bool must_close;          /* the end of the request is not known, so the connection can't serve another request */
  bool refused;             /* err has the reason; the rest of the body is read and discarded */
  bool parameter_error;     /* err.json_pointer names a query parameter or a header, not a field of the body */
  enum { RL_STAGE_AUTHORIZATION, RL_STAGE_BODY, RL_STAGE_BODY_READ, RL_STAGE_HANDLER } stage;
  int64_t handler_start_ns;      /* rl_monotonic_ns at which the request began to wait for a thread */
  rl_pool_task task;             /* task of the current stage if a pool runs it */
  rl_request_budget budget;      /* limits the handler's time, and ends the handler when the client disconnects */
  struct MHD_Response *response; /* response of the handler, not yet queued; NULL: none */
  int status;                    /* HTTP status of the response; 0: none */
  rl_cached_body *cached_body;   /* owns the response; NULL: the request owns it */
  char *cache_key;               /* key under which the reply is cached; NULL: the reply is not cached, or comes from the cache */
  rl_body_dependencies dependencies; /* stored data that the reply depends on */
  uint64_t revision;                 /* revision of that data before the handler ran; 0: unknown, so the reply is not cached */
  char allow[64];                    /* value of the Allow header, for 405 and OPTIONS */
  rl_error err;
};

void rl_http_request_free(rl_http_request *request); /* accepts NULL */
/* Releases the response, or the cached body that owns it. */
void rl_http_request_release_response(rl_http_request *request);

/* Returns the value of a request header; NULL if it is absent. */
const char *rl_http_request_header(const rl_http_request *request, const char *name);
/* Returns the text of a query parameter; NULL if it is absent. */
const char *rl_http_request_parameter(const rl_http_request *request, const char *name);
/* Returns true if the query parameter `name` is a number above maximum. */
bool rl_http_request_parameter_exceeds(const rl_http_request *request, const char *name, int64_t maximum);
/* Decodes the query parameters with the route's table into the struct at `out`, which has `size` bytes. The caller has set its
 * members to their defaults. */
int rl_http_request_parse_query(rl_http_request *request, void *out, size_t size, rl_error *err);
/* Parses `text`, the value of the query parameter `name`, as an RFC 3339 instant, and sets *ns to it, in ns since 1970. */
int rl_http_request_parse_instant(rl_http_request *request, const char *name, const char *text, int64_t *ns, rl_error *err);
/* Fills err with "NAME MESSAGE" for a query parameter or header, sets parameter_error and returns -1. */
int rl_http_request_fail_parameter(rl_http_request *request, rl_error *err, const char *name, const char *message);

#endif
