/* What the files of the server share: one HTTP request being answered (rl_call), the route table, and the ways to reply.
 * A handler reads the call, and either hands a response to rl_reply* and returns 0, or fills err and returns -1, which
 * becomes a problem document in one place. Handlers run on a few threads at once. */
#ifndef RL_API_INTERNAL_H
#define RL_API_INTERNAL_H

#include <cjson/cJSON.h>
#include <microhttpd.h>
#include <stdatomic.h>

#include "api/connections.h"
#include "api/events.h"
#include "api/metrics.h"
#include "api/problem.h"
#include "api/server.h"
#include "api/sessions.h"
#include "base/fields.h"
#include "embedded.h"

enum { RL_BODY_NONE = 0, RL_BODY_CONFIGURED = -1 }; /* rl_route.body_limit besides bytes */

typedef struct rl_call rl_call;

typedef struct rl_route {
  const char *method, *path; /* "/jobs/{id}/events"; the last route, "/{file}", takes what no other took */
  const char *operation, *summary;
  int (*handle)(rl_call *call, rl_error *err);
  int64_t body_limit;    /* bytes of JSON, or one of the two above */
  const rl_field *query; /* the query parameters; NULL: none */
  bool open;             /* answers without a token */
  bool page;             /* the query belongs to the page's scripts: not looked at here */
} rl_route;
extern const rl_route rl_routes[]; /* ends with {0} */

struct rl_server {
  const rl_config *config;
  rl_store *store;
  rl_queue *jobs;
  rl_supervisor *supervisor;
  struct MHD_Daemon *http, *probed; /* for clients; for rl_server_probe */
  char *certificate, *key;          /* PEM text; NULL without TLS */
  int listener, web;                /* descriptors; web -1: no such folder */
  int threads;                      /* that serve clients */
  bool token_needed;
  atomic_bool stopping;
  atomic_int streaming; /* answers that hold a cursor of the store */
  rl_connections *connections;
  rl_events *events;
  rl_metrics *metrics;
  rl_sessions *sessions;
};

/* What let a call in: a token, by its hash, or the session of one. */
typedef struct rl_credential {
  char hash[RL_TOKEN_HASH_SIZE];    /* "": it was a session */
  char session[RL_SESSION_ID_SIZE]; /* "": it was a token */
} rl_credential;

struct rl_call {
  rl_server *server;
  struct MHD_Connection *connection;
  rl_connection *record; /* of the connection; NULL when memory was out */
  char method[16], path[1024];
  int64_t begun_ns;
  const rl_route *route; /* NULL until one matches */
  rl_credential shown;   /* since rl_call_token said that it came */
  int64_t id;            /* of {id} */
  char *body;            /* NUL-terminated */
  size_t length, capacity;
  int64_t body_limit;
  bool refused;   /* err says why; the body is read and dropped */
  bool parameter; /* err.pointer names a query parameter or header */
  bool answered;  /* also when the connection did not take it: no other answer would do better */
  int status;
  char allow[64]; /* for 405 and OPTIONS */
  rl_error err;
};

/* routes.c: find the route, check who asks and how; a refusal is kept in the call. */
void rl_call_begin(rl_call *call);
/* Take a piece of the body. */
void rl_call_receive(rl_call *call, const char *data, size_t size);
/* Everything is here: answer. */
enum MHD_Result rl_call_answer(rl_call *call);
void rl_call_free(rl_call *call);
/* The route of a path under a method: NULL when there is none, and then allow lists what the path takes ("" if unknown). */
const rl_route *rl_route_find(const char *method, const char *path, int64_t *id, char *allow, size_t allow_size);

/* request.c */
const char *rl_call_header(const rl_call *call, const char *name);
/* Decode the query by the route's table into out, which holds the defaults. */
int rl_call_query(rl_call *call, void *out, size_t size, rl_error *err);
int rl_call_instant(rl_call *call, const char *name, const char *text, int64_t *ns, rl_error *err);
/* -1 with the call marked, for a parameter or header that is wrong. */
int rl_call_bad_parameter(rl_call *call, rl_error *err, const char *name, const char *what);
/* A page's cursor: a letter for what it pages through and a decimal id. */
enum { RL_CURSOR_SIZE = 24 };
void rl_page_cursor_format(char letter, int64_t id, char *text);
bool rl_page_cursor_parse(char letter, const char *text, int64_t *id);
/* Whole decimal numbers of at most 2^53, no sign: what ids in paths and headers are. */
bool rl_decimal_parse(const char *text, int64_t *value);
/* Is "application/json" (with any parameters) what this Content-Type says? */
bool rl_media_is_json(const char *content_type);
/* Does If-None-Match (a list, W/ allowed, or *) hold this ETag? */
bool rl_etag_matches(const char *header, const char *etag);

/* reply.c: each hands the response over; -1 only when memory is out. */
int rl_reply(rl_call *call, int status, struct MHD_Response *response, rl_error *err);
/* text is malloc'ed and taken; NULL means that memory ran out. */
struct MHD_Response *rl_response_text(char *text, size_t length, const char *type);
struct MHD_Response *rl_response_empty(void);
void rl_header(struct MHD_Response *response, const char *name, const char *value);
int rl_reply_json(rl_call *call, int status, cJSON *document, rl_error *err); /* takes document */
int rl_reply_text(rl_call *call, int status, char *text, const char *type, rl_error *err);
int rl_reply_problem(rl_call *call, rl_error *err);
/* A strong ETag of these bytes: quoted hexadecimal. */
enum { RL_ETAG_SIZE = 40 };
void rl_etag_of(const void *data, size_t size, char *etag);

/* pieces.c: an answer made a piece at a time, whose length need not be known nor held. Few answers may hold their source while
 * their client reads: 503 beyond that, so that slow readers leave the store's readers to the others. */
typedef struct rl_pieces {
  /* 1: *text is the next, valid until the next call; 0: that was all. */
  int (*next)(void *context, const char **text, rl_error *err);
  void (*close)(void *context); /* called once, whatever happens */
  void *context;
} rl_pieces;
int rl_reply_pieces(rl_call *call, const rl_pieces *pieces, const char *type, rl_error *err);

/* rows.c: {"items":[...], ...} in pieces from a cursor, which it takes and closes whatever happens. The query must have been
 * asked for one row more than limit, so that there being more can be told: letter != 0 adds "next_cursor" (made of the
 * rows' second column, null at the end), letter == 0 adds "truncated". A limit of 0 means all rows and adds neither. */
int rl_reply_rows(rl_call *call, rl_cursor *cursor, int64_t limit, char letter, rl_error *err);

/* The same of rows that are trace events, as Perfetto and chrome://tracing read them: {"traceEvents":[...], ...}, with
 * "truncated" in "otherData". */
int rl_reply_trace(rl_call *call, rl_cursor *cursor, int64_t limit, rl_error *err);

/* Handlers */
int rl_handle_jobs_submit(rl_call *call, rl_error *err);
int rl_handle_jobs_list(rl_call *call, rl_error *err);
int rl_handle_job(rl_call *call, rl_error *err);
int rl_handle_job_cancel(rl_call *call, rl_error *err);
int rl_handle_job_source(rl_call *call, rl_error *err);
int rl_handle_job_events(rl_call *call, rl_error *err);
int rl_handle_results(rl_call *call, rl_error *err);
int rl_handle_kernels(rl_call *call, rl_error *err);
int rl_handle_timeline(rl_call *call, rl_error *err);
int rl_handle_comparison(rl_call *call, rl_error *err);
int rl_handle_history(rl_call *call, rl_error *err);
int rl_handle_report(rl_call *call, rl_error *err);
int rl_handle_compare(rl_call *call, rl_error *err);
int rl_handle_sections(rl_call *call, rl_error *err);
int rl_handle_ceilings(rl_call *call, rl_error *err);
int rl_handle_workloads(rl_call *call, rl_error *err);
int rl_handle_devices(rl_call *call, rl_error *err);
int rl_handle_healthz(rl_call *call, rl_error *err);
int rl_handle_readyz(rl_call *call, rl_error *err);
int rl_handle_metrics(rl_call *call, rl_error *err);
int rl_handle_openapi(rl_call *call, rl_error *err);
int rl_handle_login(rl_call *call, rl_error *err);
int rl_handle_logout(rl_call *call, rl_error *err);
int rl_handle_file(rl_call *call, rl_error *err);

/* Query tables of the routes, beside their handlers. */
extern const rl_field rl_queue_query[], rl_kernels_query[], rl_timeline_query[], rl_history_query[], rl_report_query[],
    rl_compare_query[], rl_ceilings_query[];

extern const rl_embedded rl_openapi[]; /* schema/openapi.json */

/* auth.c: -1 (RL_HTTP 401) when the route needs a token and none came. */
int rl_call_authorize(rl_call *call, rl_error *err);
/* Whether a token, or the session of one, came; -1 when the store can't tell. */
int rl_call_token(rl_call *call, bool *came, rl_error *err);
/* Does what let a call in still do so, or was it revoked, logged out, or has it expired? -1 when the store can't tell. */
int rl_credential_holds(rl_server *server, const rl_credential *shown, bool *holds, rl_error *err);
/* static.c: is there such a file? For 405 against 404. */
bool rl_file_exists(const rl_server *server, const char *path);

RL_DEFINE_CLEANUP(rl_json_cleanup, cJSON *, cJSON_Delete, NULL)

#endif
