/* Tests api without a server: Host and Origin checks, page cursors, ETags, the text of events, problem documents, login sessions,
 * tokens, connection deadlines, the route table, and that schema/openapi.json agrees with the tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "api/connections.h"
#include "api/event_batch.h"
#include "api/http_syntax.h"
#include "api/json_rows.h"
#include "api/login_sessions.h"
#include "api/origin_check.h"
#include "api/problem_document.h"
#include "api/routes.h"
#include "base/json.h"
#include "request/spec_internal.h"

static void a_host_is_accepted_if_it_names_this_server(void **state) {
  (void)state;
  static const struct {
    const char *host, *address, *local_address, *allowed_hosts;
    bool accepted;
  } cases[] = {
      {"localhost", "127.0.0.1", NULL, "", true},
      {"LocalHost:8731", "127.0.0.1", NULL, "", true},
      {"127.0.0.1:1", "127.0.0.1", NULL, "", true},
      {"127.8.9.1", "127.0.0.1", NULL, "", true},
      {"[::1]:8731", "127.0.0.1", NULL, "", true},
      {"[0:0:0:0:0:0:0:1]", "127.0.0.1", NULL, "", true},
      {"evil.example", "127.0.0.1", NULL, "", false},
      {"evil.example:8731", "127.0.0.1", NULL, "", false},
      {"localhost.evil.example", "127.0.0.1", NULL, "", false},
      {"127.0.0.1.evil.example", "127.0.0.1", NULL, "", false},
      {"10.0.0.5", "127.0.0.1", NULL, "", false},
      {"10.0.0.5", "10.0.0.5", NULL, "", true},
      {"10.0.0.5", "0.0.0.0", "10.0.0.5", "", true},
      {"10.0.0.6", "0.0.0.0", "10.0.0.5", "", false},
      {"gpu.lan", "127.0.0.1", NULL, "box, GPU.lan,other", true},
      {"gpu", "127.0.0.1", NULL, "gpu.lan", false},
      {"gpu.lan.evil", "127.0.0.1", NULL, "gpu.lan", false},
      {"", "127.0.0.1", NULL, "", false},
      {"localhost:", "127.0.0.1", NULL, "", false},
      {"localhost:80x", "127.0.0.1", NULL, "", false},
      {"localhost:123456", "127.0.0.1", NULL, "", false},
      {"localhost/..", "127.0.0.1", NULL, "", false},
      {"user@localhost", "127.0.0.1", NULL, "", false},
      {"[::1", "127.0.0.1", NULL, "", false},
      {"[::1]x", "127.0.0.1", NULL, "", false},
      {NULL, "127.0.0.1", NULL, "", false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (rl_host_is_allowed(cases[i].host, cases[i].address, cases[i].local_address, cases[i].allowed_hosts) != cases[i].accepted)
      fail_msg("Host %s must be %s", cases[i].host != NULL ? cases[i].host : "(none)", cases[i].accepted ? "allowed" : "refused");
}

static void an_origin_is_accepted_if_it_is_the_host(void **state) {
  (void)state;
  assert_true(rl_origin_is_allowed(NULL, "localhost:8731"));
  assert_true(rl_origin_is_allowed("http://localhost:8731", "localhost:8731"));
  assert_true(rl_origin_is_allowed("HTTPS://LOCALHOST", "localhost"));
  assert_false(rl_origin_is_allowed("http://localhost:3000", "localhost:8731"));
  assert_false(rl_origin_is_allowed("http://localhost:87310", "localhost:8731"));
  assert_false(rl_origin_is_allowed("http://evil.example", "localhost:8731"));
  assert_false(rl_origin_is_allowed("null", "localhost:8731"));
  assert_false(rl_origin_is_allowed("", "localhost:8731"));
  assert_true(rl_fetch_site_is_allowed(NULL) && rl_fetch_site_is_allowed("same-origin") && rl_fetch_site_is_allowed("none"));
  assert_false(rl_fetch_site_is_allowed("Cross-Site"));
}

static void page_cursors_are_parsed_and_broken_ones_refused(void **state) {
  (void)state;
  char text[RL_PAGE_CURSOR_SIZE];
  int64_t id = -1;
  rl_page_cursor_format('j', INT64_C(9007199254740992), text);
  assert_true(rl_page_cursor_parse('j', text, &id));
  assert_int_equal(id, INT64_C(9007199254740992));
  static const char *const broken[] = {
      "", "j", "j0", "j-1", "j1x", "k1", "J1", "1", "j 1", "j9007199254740993", "j99999999999999999"};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
    if (rl_page_cursor_parse('j', broken[i], &id)) fail_msg("accepted: cursor %s", broken[i]);
}

static void etags_match_as_in_rfc_9110(void **state) {
  (void)state;
  char etag[RL_ETAG_SIZE], other[RL_ETAG_SIZE], list[256];
  rl_etag_hash("abc", 3, etag);
  rl_etag_hash("abd", 3, other);
  assert_string_not_equal(etag, other);
  assert_true(rl_etag_matches(etag, etag));
  assert_true(rl_etag_matches("*", etag));
  snprintf(list, sizeof list, "\"x,y\" , W/%s", etag);
  assert_true(rl_etag_matches(list, etag));
  snprintf(list, sizeof list, "\"x, %s\"", other);
  assert_false(rl_etag_matches(list, etag));
  assert_false(rl_etag_matches(other, etag));
  assert_false(rl_etag_matches(NULL, etag));
  assert_false(rl_etag_matches("\"unclosed", etag));
  assert_true(rl_media_type_is_json("application/json") && rl_media_type_is_json("Application/JSON; charset=utf-8"));
  assert_false(rl_media_type_is_json("application/jsonl") || rl_media_type_is_json("text/plain") || rl_media_type_is_json(NULL));
}

static void event_data_cannot_start_a_field(void **state) {
  (void)state;
  char *text = rl_event_format(7, "state", "{\"state\":\"queued\"}");
  assert_string_equal(text, "id: 7\nevent: state\ndata: {\"state\":\"queued\"}\n\n");
  free(text);
  text = rl_event_format(8, "x", "a\nb\r\nc\rd"); /* a line break in data must not start another field */
  assert_string_equal(text, "id: 8\nevent: x\ndata: a\ndata: b\ndata: c\ndata: d\n\n");
  free(text);
}

static rl_problem problem_of(rl_error_domain domain, int code, const char *pointer) {
  rl_error err = {.domain = domain, .code = code};
  snprintf(err.json_pointer, sizeof err.json_pointer, "%s", pointer);
  return rl_problem_of_error(&err, false);
}

static void each_error_has_its_problem_code(void **state) {
  (void)state;
  assert_int_equal(problem_of(RL_INPUT, 0, ""), RL_PROBLEM_BAD_JSON);
  assert_int_equal(problem_of(RL_INPUT, 0, "/epochs"), RL_PROBLEM_INVALID_FIELD);
  assert_int_equal(problem_of(RL_HTTP, 404, ""), RL_PROBLEM_NOT_FOUND);
  assert_int_equal(problem_of(RL_HTTP, 418, ""), RL_PROBLEM_INTERNAL);
  assert_int_equal(problem_of(RL_STORAGE, RL_STORAGE_FULL, ""), RL_PROBLEM_STORAGE_FULL);
  assert_int_equal(problem_of(RL_STORAGE, RL_STORAGE_LOCKED, ""), RL_PROBLEM_STORAGE_LOCKED);
  for (int code = RL_STORAGE_CONSTRAINT; code <= RL_STORAGE_INTERNAL; code++)
    assert_int_equal(problem_of(RL_STORAGE, code, ""), RL_PROBLEM_INTERNAL);
  assert_int_equal(problem_of(RL_ERRNO, ENOSPC, ""), RL_PROBLEM_STORAGE_FULL);
  assert_int_equal(problem_of(RL_CUDA, 700, ""), RL_PROBLEM_INTERNAL);
  rl_error secret;
  rl_fail(&secret, RL_STORAGE, RL_STORAGE_DAMAGED, "no such table: secrets");
  char *text = rl_problem_print(RL_PROBLEM_INTERNAL, &secret, false);
  assert_null(strstr(text, "secrets")); /* an internal error's message is only logged, not sent to the client */
  free(text);
  rl_fail_at(&secret, "/limit", "limit must be a whole number");
  text = rl_problem_print(rl_problem_of_error(&secret, true), &secret, true);
  assert_non_null(strstr(text, "\"parameter\":\"limit\""));
  assert_null(strstr(text, "pointer"));
  free(text);
}

static void sessions_end_by_expiry_replacement_and_logout(void **state) {
  (void)state;
  rl_login_sessions *sessions = rl_login_sessions_new();
  char first[RL_LOGIN_SESSION_ID_SIZE], id[RL_LOGIN_SESSION_ID_SIZE], hash[RL_TOKEN_HASH_SIZE] = "";
  int64_t now = 1000, lifetime = (int64_t)RL_LOGIN_SESSION_LIFETIME_S * 1000000000;
  rl_login_session_begin(sessions, now, "first's", first);
  assert_true(rl_login_session_find(sessions, now, first, hash));
  assert_string_equal(hash, "first's");
  assert_false(rl_login_session_find(sessions, now + lifetime, first, hash));
  assert_false(rl_login_session_find(sessions, now, "", hash));
  assert_false(rl_login_session_find(sessions, now, "x", hash));
  for (int i = 1; i < RL_LOGIN_SESSIONS_MAX; i++) rl_login_session_begin(sessions, now + i, "first's", id);
  assert_true(rl_login_session_find(sessions, now, first, hash));
  rl_login_session_begin(sessions, now + RL_LOGIN_SESSIONS_MAX, "first's",
                         id); /* exceeds the maximum, so that it replaces the oldest session */
  assert_false(rl_login_session_find(sessions, now, first, hash));
  assert_true(rl_login_session_find(sessions, now, id, hash));
  rl_login_session_end(sessions, id);
  assert_false(rl_login_session_find(sessions, now, id, hash));
  rl_login_sessions_free(sessions);
}

static void sessions_of_one_token_leave_those_of_others(void **state) {
  (void)state;
  rl_login_sessions *sessions = rl_login_sessions_new();
  char alice[RL_LOGIN_SESSION_ID_SIZE], oldest[RL_LOGIN_SESSION_ID_SIZE], second[RL_LOGIN_SESSION_ID_SIZE],
      carol[RL_LOGIN_SESSION_ID_SIZE], id[RL_LOGIN_SESSION_ID_SIZE], hash[RL_TOKEN_HASH_SIZE];
  rl_login_session_begin(sessions, 0, "alice's", alice);
  rl_login_session_begin(sessions, 1, "bob's", oldest);
  rl_login_session_begin(sessions, 2, "bob's", second);
  for (int i = 3; i < RL_LOGIN_SESSIONS_MAX; i++) rl_login_session_begin(sessions, i, "bob's", id);
  rl_login_session_begin(sessions, RL_LOGIN_SESSIONS_MAX, "bob's", id);
  assert_false(rl_login_session_find(sessions, 0, oldest, hash));
  assert_true(rl_login_session_find(sessions, 0, second, hash));
  rl_login_session_begin(sessions, RL_LOGIN_SESSIONS_MAX, "carol's", carol);
  assert_false(rl_login_session_find(sessions, 0, second, hash));
  for (int i = 0; i < 2 * RL_LOGIN_SESSIONS_MAX; i++) rl_login_session_begin(sessions, RL_LOGIN_SESSIONS_MAX + i, "bob's", id);
  assert_true(rl_login_session_find(sessions, 0, alice, hash));
  assert_string_equal(hash, "alice's");
  assert_true(rl_login_session_find(sessions, 0, carol, hash));
  assert_int_equal(rl_login_sessions_count(sessions, 0), RL_LOGIN_SESSIONS_MAX);
  rl_login_sessions_free(sessions);
}

static void tokens_are_random_and_stored_as_hashes(void **state) {
  (void)state;
  char token[RL_TOKEN_SIZE], other[RL_TOKEN_SIZE], hash[RL_TOKEN_HASH_SIZE], second_hash[RL_TOKEN_HASH_SIZE];
  rl_error err;
  assert_int_equal(rl_token_generate(token, &err), 0);
  assert_int_equal(rl_token_generate(other, &err), 0);
  assert_int_equal(strlen(token), RL_TOKEN_SIZE - 1);
  assert_string_not_equal(token, other);
  assert_int_equal(rl_token_hash(token, hash, &err), 0);
  assert_int_equal(rl_token_hash(token, second_hash, &err), 0);
  assert_string_equal(hash, second_hash);
  assert_null(strstr(hash, token));
  /* The hash of "abc" by BLAKE2b-256. With another hash function the stored tokens would not match. */
  rl_token_hash("abc", hash, &err);
  assert_string_equal(hash, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
}

static void token_names_are_checked(void **state) {
  (void)state;
  static const char *const good[] = {"laptop", "build server 2", "caf\u00e9", "\u65e5\u672c"};
  static const char *const bad[] = {"", " ", "\u00a0", "a\nb", "\x1b[2J", "a\x7f", "a\xc2\x9b", "\xff"};
  rl_error err;
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_int_equal(rl_token_check_name(good[i], &err), 0);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(rl_token_check_name(bad[i], &err), -1);
    assert_int_equal(err.domain, RL_INPUT);
  }
}

static void connections_past_their_deadline_are_shut_down(void **state) {
  (void)state;
  rl_error err;
  rl_connections *connections = rl_connections_new(100, &err);
  int expired[2], extended[2], unlimited[2];
  char byte;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, expired), 0);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, extended), 0);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, unlimited), 0);
  rl_connection *expired_connection = rl_connection_add(connections, expired[0], 100);
  rl_connection *extended_connection = rl_connection_add(connections, extended[0], 100);
  rl_connection_add(connections, unlimited[0], 0);
  rl_connection_set_deadline(connections, extended_connection, 200);
  rl_connections_shut_down_late(connections, 150);
  assert_int_equal(read(expired[1], &byte, 1), 0);
  assert_int_equal(read(extended[1], &byte, 1), -1);
  assert_int_equal(read(unlimited[1], &byte, 1), -1);
  assert_int_equal(rl_connections_count(connections), 3);
  rl_connection_remove(connections, expired_connection);
  assert_int_equal(rl_connections_count(connections), 2);
  rl_connections_free(connections);
  for (int i = 0; i < 2; i++) close(expired[i]), close(extended[i]), close(unlimited[i]);
}

static void unread_input_extends_the_deadline(void **state) {
  (void)state;
  rl_error err;
  rl_connections *connections = rl_connections_new(100, &err);
  int pair[2];
  char byte = 'x';
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
  rl_connection_add(connections, pair[0], 100);
  assert_int_equal(write(pair[1], &byte, 1), 1);
  rl_connections_shut_down_late(connections, 100 + RL_CONNECTION_GRACE_NS - 1);
  assert_int_equal(read(pair[1], &byte, 1), -1);
  assert_int_equal(read(pair[0], &byte, 1), 1);
  rl_connections_shut_down_late(connections, 101);
  assert_int_equal(read(pair[1], &byte, 1), 0);
  for (int i = 0; i < 2; i++) close(pair[i]);

  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
  rl_connection_add(connections, pair[0], 100);
  assert_int_equal(write(pair[1], &byte, 1), 1);
  rl_connections_shut_down_late(connections, 100 + RL_CONNECTION_GRACE_NS); /* the grace has ended */
  assert_int_equal(read(pair[1], &byte, 1), 0);
  for (int i = 0; i < 2; i++) close(pair[i]);
  rl_connections_free(connections);
}

static bool is_open(int descriptor) {
  char byte;
  return read(descriptor, &byte, 1) < 0;
}

/* Four clients use at most 100 bytes together. The first has made progress after the second, and the daemon works on the request
 * of the third. */
static void a_short_resource_shuts_down_the_connection_without_progress_for_longest(void **state) {
  (void)state;
  enum { COUNT = 4 };
  rl_error err;
  rl_connections *connections = rl_connections_new(100, &err);
  rl_connection *added[COUNT];
  int pairs[COUNT][2];
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]), 0);
    added[i] = rl_connection_add(connections, pairs[i][0], 0);
  }
  rl_connections_limit_resource(connections, RL_RESOURCE_BODY_BYTES, 100, 0);
  for (int i = 0; i < 3; i++) assert_true(rl_connection_use_resource(connections, added[i], RL_RESOURCE_BODY_BYTES, 30, 0));
  assert_true(rl_connection_use_resource(connections, added[0], RL_RESOURCE_BODY_BYTES, 40, 0)); /* exactly the limit */
  assert_true(rl_connection_begin_request(connections, added[2], NULL, 0));
  for (int i = 0; i < 3; i++) assert_true(is_open(pairs[i][1]));
  assert_true(rl_connection_use_resource(connections, added[3], RL_RESOURCE_BODY_BYTES, 30, 0));
  assert_false(is_open(pairs[1][1]));
  assert_false(rl_connection_use_resource(connections, added[1], RL_RESOURCE_BODY_BYTES, 1, 0)); /* it was shut down */
  assert_true(is_open(pairs[0][1]));
  /* The third keeps 30, so 71 would not fit even without the first, which therefore keeps its connection. */
  assert_false(rl_connection_use_resource(connections, added[3], RL_RESOURCE_BODY_BYTES, 71, 0));
  assert_true(is_open(pairs[0][1]));
  assert_true(rl_connection_use_resource(connections, added[3], RL_RESOURCE_BODY_BYTES, 70, 0));
  assert_false(is_open(pairs[0][1]));
  assert_true(is_open(pairs[2][1]) && is_open(pairs[3][1]));
  rl_connection_end_request(connections, added[2], 0);
  assert_true(rl_connection_use_resource(connections, added[3], RL_RESOURCE_BODY_BYTES, 100, 0));
  for (int i = 0; i < COUNT; i++) rl_connection_remove(connections, added[i]);
  rl_connections_free(connections);
  for (int i = 0; i < COUNT; i++) close(pairs[i][0]), close(pairs[i][1]);
}

/* If the refused amount or its time were recorded, the first client would not be the one that is shut down at 10. */
static void a_refused_amount_is_not_recorded(void **state) {
  (void)state;
  rl_error err;
  rl_connections *connections = rl_connections_new(100, &err);
  rl_connection *added[3];
  int pairs[3][2];
  for (int i = 0; i < 3; i++) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]), 0);
    added[i] = rl_connection_add(connections, pairs[i][0], 0);
  }
  rl_connections_limit_resource(connections, RL_RESOURCE_BODY_BYTES, 100, 10);
  assert_true(rl_connection_use_resource(connections, added[0], RL_RESOURCE_BODY_BYTES, 60, 0));
  assert_true(rl_connection_use_resource(connections, added[1], RL_RESOURCE_BODY_BYTES, 40, 5));
  assert_false(rl_connection_use_resource(connections, added[0], RL_RESOURCE_BODY_BYTES, 61, 9));
  assert_false(rl_connection_use_resource(connections, added[2], RL_RESOURCE_BODY_BYTES, 60, 9));
  assert_false(rl_connection_use_resource(connections, added[2], RL_RESOURCE_BODY_BYTES, 61, 10));
  assert_true(is_open(pairs[0][1]) && is_open(pairs[1][1]) && is_open(pairs[2][1]));
  assert_true(rl_connection_use_resource(connections, added[2], RL_RESOURCE_BODY_BYTES, 60, 10));
  assert_true(!is_open(pairs[0][1]) && is_open(pairs[1][1]));
  rl_connections_free(connections);
  for (int i = 0; i < 3; i++) close(pairs[i][0]), close(pairs[i][1]);
}

static void progress_protects_a_connection(void **state) {
  (void)state;
  rl_error err;
  rl_connections *connections = rl_connections_new(100, &err);
  rl_connection *added[2];
  int pairs[2][2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]), 0);
    added[i] = rl_connection_add(connections, pairs[i][0], 0);
  }
  rl_connections_limit_resource(connections, RL_RESOURCE_UPLOADS, 1, 10);
  assert_true(rl_connections_have_resource(connections, RL_RESOURCE_UPLOADS, 100));
  assert_true(rl_connection_use_resource(connections, added[0], RL_RESOURCE_UPLOADS, 1, 100));
  assert_true(rl_connection_use_resource(connections, added[0], RL_RESOURCE_UPLOADS, 1, 105));
  assert_false(rl_connections_have_resource(connections, RL_RESOURCE_UPLOADS, 114));
  assert_false(rl_connection_use_resource(connections, added[1], RL_RESOURCE_UPLOADS, 1, 114));
  rl_connection_begin_work(connections, added[0]);
  assert_false(rl_connection_use_resource(connections, added[1], RL_RESOURCE_UPLOADS, 1, 200));
  assert_true(rl_connection_use_resource(connections, added[0], RL_RESOURCE_UPLOADS, 1, 200)); /* the work has ended */
  assert_true(is_open(pairs[0][1]));
  assert_true(rl_connections_have_resource(connections, RL_RESOURCE_UPLOADS, 210));
  assert_true(rl_connection_use_resource(connections, added[1], RL_RESOURCE_UPLOADS, 1, 210));
  assert_false(is_open(pairs[0][1]));
  for (int i = 0; i < 2; i++) rl_connection_remove(connections, added[i]);
  rl_connections_free(connections);
  for (int i = 0; i < 2; i++) close(pairs[i][0]), close(pairs[i][1]);
}

static void a_full_table_shuts_down_the_oldest_idle_connection(void **state) {
  (void)state;
  rl_error err;
  rl_connections *connections = rl_connections_new(8, &err);
  rl_connection *added[10];
  int pairs[10][2];
  for (int i = 0; i < 10; i++) {
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pairs[i]), 0);
    if (i == 7) assert_true(rl_connection_begin_request(connections, added[0], NULL, 0));
    if (i == 7) assert_true(rl_connection_begin_request(connections, added[1], NULL, 0));
    if (i == 7) rl_connection_end_request(connections, added[1], 0);
    added[i] = rl_connection_add(connections, pairs[i][0], 0);
  }
  for (int i = 0; i < 10; i++) assert_int_equal(is_open(pairs[i][1]), i < 2 || i > 4); /* 2, 3 and 4 never sent a request */
  for (int i = 5; i < 10; i++) assert_true(rl_connection_begin_request(connections, added[i], NULL, 0));
  int pair[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
  rl_connection_add(connections, pair[0], 0);
  assert_true(is_open(pairs[0][1]) && !is_open(pairs[1][1]) &&
              is_open(pair[1])); /* connection 1 has ended its request, connection 0 has not */
  rl_connections_free(connections);
  for (int i = 0; i < 10; i++) close(pairs[i][0]), close(pairs[i][1]);
  close(pair[0]), close(pair[1]);
}

static void client_addresses_are_read_from_proxy_headers(void **state) {
  (void)state;
  rl_client_address first, second;
  assert_false(rl_client_address_parse(NULL, NULL, &first));
  assert_false(rl_client_address_parse("unknown", NULL, &first));
  assert_false(rl_client_address_parse("", "for=1.2.3.4", &first));
  assert_false(rl_client_address_parse(NULL, "proto=http", &first));
  assert_true(rl_client_address_parse("9.9.9.9, 1.2.3.4", "for=5.5.5.5", &first));
  static const char *const same[] = {"1.2.3.4:80", "::ffff:1.2.3.4", "[::ffff:1.2.3.4]:9"};
  for (int i = 0; i < 3; i++) {
    assert_true(rl_client_address_parse(same[i], NULL, &second));
    assert_memory_equal(&first, &second, sizeof first);
  }
  assert_true(rl_client_address_parse(NULL, "for=8.8.8.8, proto=https;For=\"1.2.3.4:80\";by=x", &second));
  assert_memory_equal(&first, &second, sizeof first);
  assert_true(rl_client_address_parse(NULL, "for=\"[2001:db8::1]:80\"", &first));
  assert_true(rl_client_address_parse("2001:db8::ffff", NULL, &second));
  assert_memory_equal(&first, &second, sizeof first);
}

static void connections_being_served_are_counted(void **state) {
  (void)state;
  rl_error err;
  rl_connections *connections = rl_connections_new(100, &err);
  rl_connection *first = rl_connection_add(connections, -1, 0), *second = rl_connection_add(connections, -1, 0);
  assert_int_equal(rl_connections_count_busy_since(connections, 1000), 0);
  rl_connection_begin_service(connections, first, 100);
  rl_connection_begin_service(connections, second, 200);
  rl_connection_begin_service(connections, NULL, 300);
  assert_int_equal(rl_connections_count_busy_since(connections, 99), 0);
  assert_int_equal(rl_connections_count_busy_since(connections, 100), 1);
  assert_int_equal(rl_connections_count_busy_since(connections, 200), 2);
  rl_connection_end_service(connections, first);
  assert_int_equal(rl_connections_count_busy_since(connections, 1000), 1);
  rl_connection_begin_service(connections, first, 1001);
  assert_int_equal(rl_connections_count_busy_since(connections, 1000), 1);
  rl_connection_remove(connections, second);
  assert_int_equal(rl_connections_count_busy_since(connections, 1000), 0);
  rl_connections_free(connections);
}

static void routes_are_found_by_method_and_path(void **state) {
  (void)state;
  rl_path_values values = {0};
  char allow[64];
  assert_string_equal(rl_route_find("GET", "/jobs/17/kernels", &values, allow, sizeof allow)->operation, "listKernels");
  assert_int_equal(values.id, 17);
  assert_string_equal(rl_route_find("GET", "/suites/nightly_a-1/runs", &values, allow, sizeof allow)->operation, "listSuiteRuns");
  assert_string_equal(values.name, "nightly_a-1");
  assert_string_equal(rl_route_find("GET", "/suites/Nightly/runs", &values, allow, sizeof allow)->operation, "getFile");
  assert_string_equal(rl_route_find("GET", "/suites/-a", &values, allow, sizeof allow)->operation, "getFile");
  assert_string_equal(rl_route_find("HEAD", "/jobs", &values, allow, sizeof allow)->operation, "listJobs");
  assert_string_equal(rl_route_find("GET", "/page.js", &values, allow, sizeof allow)->operation, "getFile");
  assert_string_equal(rl_route_find("GET", "/jobs/x", &values, allow, sizeof allow)->operation, "getFile");
  assert_null(rl_route_find("PUT", "/jobs", &values, allow, sizeof allow));
  assert_string_equal(allow, "POST, GET, HEAD");
  assert_null(rl_route_find("GET", "/login", &values, allow, sizeof allow));
  assert_string_equal(allow, "POST");
  assert_null(rl_route_find("POST", "/nowhere", &values, allow, sizeof allow));
  assert_string_equal(allow, "");
}

static cJSON *parse_openapi(void) {
  rl_error err;
  cJSON *parsed = rl_json_parse(rl_openapi->text, rl_openapi->size, &err);
  if (parsed == NULL) fail_msg("openapi.json: %s", err.message);
  return parsed;
}

/* Returns the member `first` of an object; if second is not NULL, the member `second` of that member. */
static const cJSON *find_member(const cJSON *object, const char *first, const char *second) {
  const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, first);
  return second != NULL ? cJSON_GetObjectItemCaseSensitive(found, second) : found;
}

static void check_query(const rl_route *route, const cJSON *operation) {
  static const rl_field none[] = {{0}};
  cJSON *schema = rl_fields_schema(route->query != NULL ? route->query : none);
  cJSON *undocumented = cJSON_GetObjectItem(schema, "properties");
  const cJSON *parameter, *name;
  cJSON_ArrayForEach (parameter, find_member(operation, "parameters", NULL)) {
    if (cJSON_GetStringValue(find_member(parameter, "in", NULL)) == NULL ||
        strcmp(cJSON_GetStringValue(find_member(parameter, "in", NULL)), "query") != 0)
      continue;
    const char *key = cJSON_GetStringValue(find_member(parameter, "name", NULL));
    cJSON *property = cJSON_DetachItemFromObject(undocumented, key);
    if (property == NULL) fail_msg("%s: the table has no %s", route->operation, key);
    cJSON *summary = cJSON_DetachItemFromObject(property, "description");
    if (!cJSON_Compare(property, find_member(parameter, "schema", NULL), 1) ||
        !cJSON_Compare(summary, find_member(parameter, "description", NULL), 1))
      fail_msg("%s: %s differs: %s", route->operation, key, cJSON_PrintUnformatted(property));
    bool required = false;
    cJSON_ArrayForEach (name, find_member(schema, "required", NULL)) required |= strcmp(name->valuestring, key) == 0;
    assert_int_equal(required, cJSON_IsTrue(find_member(parameter, "required", NULL)));
    cJSON_Delete(property);
    cJSON_Delete(summary);
  }
  if (undocumented->child != NULL) fail_msg("%s: openapi.json lacks %s", route->operation, undocumented->child->string);
  cJSON_Delete(schema);
}

static void openapi_has_the_routes(void **state) {
  (void)state;
  cJSON *openapi = parse_openapi();
  const cJSON *path, *operation;
  int documented = 0, routed = 0;
  for (const rl_route *route = rl_routes; route->method != NULL; route++, routed++) {
    char method[16] = "";
    for (size_t i = 0; route->method[i] != '\0'; i++) method[i] = (char)(route->method[i] | 0x20);
    operation = find_member(find_member(openapi, "paths", route->path), method, NULL);
    if (operation == NULL) fail_msg("openapi.json lacks %s %s", route->method, route->path);
    assert_string_equal(cJSON_GetStringValue(find_member(operation, "operationId", NULL)), route->operation);
    assert_string_equal(cJSON_GetStringValue(find_member(operation, "summary", NULL)), route->summary);
    assert_int_equal(find_member(operation, "requestBody", NULL) != NULL, route->body_limit != RL_BODY_NONE);
    assert_int_equal(find_member(operation, "security", NULL) != NULL, route->is_public);
    check_query(route, operation);
  }
  cJSON_ArrayForEach (path, find_member(openapi, "paths", NULL)) documented += cJSON_GetArraySize(path);
  assert_int_equal(documented, routed);
  cJSON_Delete(openapi);
}

static void check_schema(const cJSON *openapi, const char *name, const rl_field *table) {
  cJSON *documented = cJSON_Duplicate(find_member(find_member(openapi, "components", "schemas"), name, NULL), 1);
  cJSON *fields = rl_fields_schema(table);
  cJSON_DeleteItemFromObject(documented, "description");
  if (!cJSON_Compare(documented, fields, 1)) {
    fprintf(stderr, "%s should be %s\n", name, cJSON_PrintUnformatted(fields)); /* fail_msg would cut it at 1024 bytes */
    fail_msg("openapi.json: schema %s differs from its field table", name);
  }
  cJSON_Delete(fields);
  cJSON_Delete(documented);
}

static void openapi_has_the_job_fields(void **state) {
  (void)state;
  static const char *const schemas[] = {"TrainJob",    "KernelJob", "LayerJob",
                                        "CeilingsJob", "SourceJob", "ImportJob"}; /* in the order of the kinds */
  cJSON *openapi = parse_openapi();
  rl_request_fields storage;
  size_t count = 0;
  for (const rl_job_kind *kind = rl_job_kinds; kind->name != NULL; kind++, count++) {
    assert_true(count < sizeof schemas / sizeof *schemas);
    check_schema(openapi, schemas[count], rl_job_kind_fields(kind, &storage));
  }
  assert_int_equal(count, sizeof schemas / sizeof *schemas);
  check_schema(openapi, "SequenceJob", rl_spec_sequence_fields); /* the second schema of kernel jobs */
  cJSON_Delete(openapi);
}

static void openapi_has_the_problem_codes(void **state) {
  (void)state;
  cJSON *openapi = parse_openapi();
  const cJSON *codes =
      find_member(find_member(find_member(find_member(openapi, "components", "schemas"), "Problem", "properties"), "code", NULL),
                  "enum", NULL);
  assert_int_equal(cJSON_GetArraySize(codes), RL_PROBLEM_COUNT);
  for (int i = 0; i < RL_PROBLEM_COUNT; i++)
    assert_string_equal(cJSON_GetArrayItem(codes, i)->valuestring, rl_problem_kinds[i].code);
  cJSON_Delete(openapi);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_host_is_accepted_if_it_names_this_server),
      cmocka_unit_test(an_origin_is_accepted_if_it_is_the_host),
      cmocka_unit_test(page_cursors_are_parsed_and_broken_ones_refused),
      cmocka_unit_test(etags_match_as_in_rfc_9110),
      cmocka_unit_test(event_data_cannot_start_a_field),
      cmocka_unit_test(each_error_has_its_problem_code),
      cmocka_unit_test(sessions_end_by_expiry_replacement_and_logout),
      cmocka_unit_test(sessions_of_one_token_leave_those_of_others),
      cmocka_unit_test(tokens_are_random_and_stored_as_hashes),
      cmocka_unit_test(token_names_are_checked),
      cmocka_unit_test(connections_past_their_deadline_are_shut_down),
      cmocka_unit_test(unread_input_extends_the_deadline),
      cmocka_unit_test(a_short_resource_shuts_down_the_connection_without_progress_for_longest),
      cmocka_unit_test(a_refused_amount_is_not_recorded),
      cmocka_unit_test(progress_protects_a_connection),
      cmocka_unit_test(a_full_table_shuts_down_the_oldest_idle_connection),
      cmocka_unit_test(client_addresses_are_read_from_proxy_headers),
      cmocka_unit_test(connections_being_served_are_counted),
      cmocka_unit_test(routes_are_found_by_method_and_path),
      cmocka_unit_test(openapi_has_the_routes),
      cmocka_unit_test(openapi_has_the_job_fields),
      cmocka_unit_test(openapi_has_the_problem_codes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
