/* Tests the configuration: precedence of file, environment and options, and errors that name their line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/named_paths.h"
#include "config.h"

static const char *write_config_file(const char *text) {
  static char path[64];
  snprintf(path, sizeof path, "/tmp/rooflined-config-XXXXXX");
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
  close(descriptor);
  return path;
}

static int load_text(const char *text, rl_config *config, rl_error *err) {
  const char *path = write_config_file(text);
  int rc = rl_config_load(path, NULL, 0, config, err);
  unlink(path);
  return rc;
}

static void later_sources_override_earlier_ones(void **state) {
  (void)state;
  const char *path = write_config_file("; a comment\n[rooflined]\nport = 1111\nqueue_limit=7\nthreads = 3\nbehind_proxy = yes\n");
  const char *const overrides[] = {"threads=5", "devices=cpu,gpu0"};
  rl_config config;
  rl_error err = {0};
  setenv("ROOFLINED_QUEUE_LIMIT", "8", 1);
  setenv("ROOFLINED_THREADS", "4", 1);
  int rc = rl_config_load(path, overrides, 2, &config, &err);
  unsetenv("ROOFLINED_QUEUE_LIMIT");
  unsetenv("ROOFLINED_THREADS");
  unlink(path);
  if (rc < 0) fail_msg("%s", err.message);
  assert_int_equal(config.port, 1111);     /* the file */
  assert_int_equal(config.queue_limit, 8); /* the environment overrides the file */
  assert_int_equal(config.threads, 5);     /* the option overrides the file and the environment */
  assert_string_equal(config.devices, "cpu,gpu0");
  assert_true(config.behind_proxy && !config.require_token);
  assert_int_equal(config.body_limit_bytes, 1 << 20); /* the default */
  assert_string_equal(config.address, "127.0.0.1");
}

static void the_state_folder_has_a_default(void **state) {
  (void)state;
  rl_config config;
  rl_error err;
  unsetenv("STATE_DIRECTORY");
  unsetenv("XDG_STATE_HOME");
  setenv("HOME", "/home/someone", 1);
  assert_int_equal(load_text("", &config, &err), 0);
  assert_string_equal(config.state, "/home/someone/.local/state/rooflined");
  setenv("XDG_STATE_HOME", "/states", 1);
  assert_int_equal(load_text("", &config, &err), 0);
  assert_string_equal(config.state, "/states/rooflined");
  setenv("STATE_DIRECTORY", "/var/lib/rooflined", 1);
  assert_int_equal(load_text("", &config, &err), 0);
  assert_string_equal(config.state, "/var/lib/rooflined");
  setenv("STATE_DIRECTORY", "/var/lib/rooflined:/var/lib/other", 1); /* StateDirectory=rooflined other */
  assert_int_equal(load_text("", &config, &err), 0);
  assert_string_equal(config.state, "/var/lib/rooflined");
  assert_int_equal(load_text("[rooflined]\nstate = /elsewhere\n", &config, &err), 0);
  assert_string_equal(config.state, "/elsewhere");
}

static void errors_name_their_line(void **state) {
  (void)state;
  char long_path[1200];
  memset(long_path, 'x', sizeof long_path - 1);
  memcpy(long_path, "[rooflined]\nstate=", 18);
  long_path[sizeof long_path - 1] = '\0';
  const struct {
    const char *text, *line_number, *word;
  } cases[] = {
      {"[rooflined]\nport = 99999\n", ":2", "port"},
      {"[rooflined]\n\nport = 12x\n", ":3", "port"},
      {"[rooflined]\nport =\n", ":2", "port"},
      {"[rooflined]\nport = 99999999999999999999\n", ":2", "port"},
      {"[rooflined]\npotr = 1\n", ":2", "potr"},
      {"[other]\nport = 1\n", ":1", "other"},
      {"port = 1\n", ":1", "rooflined"},
      {"[rooflined]\nport = 1\nport = 2\n", ":3", "twice"},
      {"[rooflined]\nnonsense\n", ":2", "name = value"},
      {"[rooflined\nport = 1\n", ":1", "section"},
      {"[rooflined]\nbehind_proxy = perhaps\n", ":2", "behind_proxy"},
      {"[rooflined]\nlog_level = loud\n", ":2", "log_level"},
      {"[rooflined]\nbuilds = v1\n", ":2", "builds"},
      {"[rooflined]\nbuilds = v1=relative/path\n", ":2", "builds"},
      {"[rooflined]\nbuilds = v1=\n", ":2", "builds"},
      {"[rooflined]\nbuilds = =/opt/v1\n", ":2", "builds"},
      {"[rooflined]\nbuilds = v1=/opt/v1,,v2=/opt/v2\n", ":2", "builds"},
      {"[rooflined]\nbuilds = v1=/opt/v1,v2=/opt/v2,v1=/opt/v3\n", ":2", "builds"},
      {"[rooflined]\nbuilds = V1=/opt/v1\n", ":2", "builds"},
      {"[rooflined]\nwebhook_url = ftp://example.org/\n", ":2", "webhook_url"},
      {"[rooflined]\nwebhook_url = https://\n", ":2", "webhook_url"},
      {"[rooflined]\nwebhook_url = https:///hook\n", ":2", "webhook_url"},
      {"[rooflined]\n\nwebhook_url = http://user:password@example.org/\n", ":3", "webhook_url"},
      {"[rooflined]\nwebhook_url = http://example.org:0/\n", ":2", "webhook_url"},
      {"[rooflined]\nwebhook_url = http://example.org:65536/\n", ":2", "webhook_url"},
      {"[rooflined]\nwebhook_url = http://example.org:/\n", ":2", "webhook_url"},
      {"[rooflined]\nwebhook_url = http://[::1/\n", ":2", "webhook_url"},
      {"[rooflined]\nwebhook_url = http://example.org/a b\n", ":2", "webhook_url"},
      {"[rooflined]\nwebhook_url = http://example.org/a#b\n", ":2", "webhook_url"},
      {"[rooflined]\nwebhook_retry_s = 0\n", ":2", "webhook_retry_s"},
      {long_path, ":2", "shorter"},
      {"[rooflined]\nport = 1 ; the port\n", ":2", "port"},
      {"[rooflined]\nport = 1 # the port\n", ":2", "port"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_config config = {.port = 42};
    rl_error err = {0};
    if (load_text(cases[i].text, &config, &err) != -1) fail_msg("accepted: %s", cases[i].text);
    if (strstr(err.message, cases[i].line_number) == NULL || strstr(err.message, cases[i].word) == NULL)
      fail_msg("\"%s\" does not name %s and %s", err.message, cases[i].line_number, cases[i].word);
    assert_int_equal(config.port, 42);
  }
}

static void builds_are_found_by_their_names(void **state) {
  (void)state;
  rl_config config;
  rl_error err;
  char path[64];
  assert_int_equal(load_text("[rooflined]\nbuilds = v1=/opt/a b,v1.2=/opt/c=d,v=/e\n", &config, &err), 0);
  assert_true(rl_named_paths_find(config.builds, "v1", path, sizeof path));
  assert_string_equal(path, "/opt/a b");
  assert_true(rl_named_paths_find(config.builds, "v1.2", path, sizeof path));
  assert_string_equal(path, "/opt/c=d");
  assert_true(rl_named_paths_find(config.builds, "v", path, 3));
  assert_false(rl_named_paths_find(config.builds, "v", path, 2));
  assert_false(rl_named_paths_find(config.builds, "", path, sizeof path));
  assert_false(rl_named_paths_find(config.builds, "v1=/opt/a b", path, sizeof path));
  assert_false(rl_named_paths_find("", "v1", path, sizeof path));
}

static void inconsistent_settings_and_unreadable_sources_are_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"[rooflined]\naddress = nowhere\n", "[rooflined]\ntls_key = /k\n",
                                      "[rooflined]\nwebhook_url = http://example.org\n",
                                      "[rooflined]\nwebhook_secret_file = /k\n"};
  rl_config config;
  rl_error err;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_int_equal(load_text(wrong[i], &config, &err), -1);
  assert_int_equal(rl_config_load("/nonexistent/rooflined.conf", NULL, 0, &config, &err), -1);
  assert_non_null(strstr(err.message, "/nonexistent/rooflined.conf"));
  setenv("ROOFLINED_PORT", "x", 1);
  assert_int_equal(load_text("", &config, &err), -1);
  assert_non_null(strstr(err.message, "ROOFLINED_PORT"));
  unsetenv("ROOFLINED_PORT");
}

static void urls_are_read_whole(void **state) {
  (void)state;
  static const char *const urls[] = {"http://example.org", "https://example.org:8443/a/b?c=d&e=%20", "http://[::1]:80/",
                                     "http://127.0.0.1:1/", "https://example.org?key=~x"};
  char text[256];
  for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
    rl_config config;
    rl_error err = {0};
    snprintf(text, sizeof text, "[rooflined]\nwebhook_url = %s\nwebhook_secret_file = key\n", urls[i]);
    if (load_text(text, &config, &err) < 0) fail_msg("%s", err.message);
    assert_string_equal(config.webhook_url, urls[i]);
  }
}

/* The value is the rest of the line, however long, with any ; and # in it. */
static void paths_are_read_whole(void **state) {
  (void)state;
  char text[1100], path[1000];
  rl_config config;
  rl_error err = {0};
  memset(path, 'd', sizeof path);
  memcpy(path, "/a ;b #c/", 9);
  path[sizeof path - 1] = '\0';
  snprintf(text, sizeof text, "[rooflined]\n  mnist_dir = %s  \n", path);
  if (load_text(text, &config, &err) < 0) fail_msg("%s", err.message);
  assert_string_equal(config.mnist_dir, path);
}

static void loopback_addresses_are_recognised(void **state) {
  (void)state;
  static const struct {
    const char *address;
    bool loopback;
  } cases[] = {{"127.0.0.1", true}, {"127.9.9.9", true}, {"::1", true}, {"0.0.0.0", false}, {"10.0.0.1", false}, {"::", false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rl_config config = {0};
    strcpy(config.address, cases[i].address);
    assert_int_equal(rl_config_is_loopback(&config), cases[i].loopback);
  }
}

static void printed_settings_are_read_back_unchanged(void **state) {
  (void)state;
  rl_config first, second;
  rl_error err = {0};
  char *text = NULL;
  size_t size = 0;
  memset(&first, 0, sizeof first);
  memset(&second, 0, sizeof second);
  assert_int_equal(load_text("[rooflined]\nport=1\nmnist_dir=/a ;b #c\nrequire_token=true\njob_days=9\n", &first, &err), 0);
  memset(first.workers, 'w', sizeof first.workers - 1);
  first.workers[0] = '/';
  FILE *out = open_memstream(&text, &size);
  rl_config_print(&first, out);
  fclose(out);
  if (load_text(text, &second, &err) < 0) fail_msg("%s", err.message);
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++)
    assert_memory_equal((char *)&first + key->offset, (char *)&second + key->offset, key->size);
  free(text);
}

int main(void) {
  /* Variables of the environment would override the settings of the tests. */
  for (const rl_config_key *key = rl_config_keys; key->name != NULL; key++) {
    char name[64];
    snprintf(name, sizeof name, "ROOFLINED_%s", key->name);
    for (char *c = name; *c != '\0'; c++)
      if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    unsetenv(name);
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(later_sources_override_earlier_ones),
                                     cmocka_unit_test(the_state_folder_has_a_default),
                                     cmocka_unit_test(errors_name_their_line),
                                     cmocka_unit_test(builds_are_found_by_their_names),
                                     cmocka_unit_test(inconsistent_settings_and_unreadable_sources_are_refused),
                                     cmocka_unit_test(loopback_addresses_are_recognised),
                                     cmocka_unit_test(paths_are_read_whole),
                                     cmocka_unit_test(urls_are_read_whole),
                                     cmocka_unit_test(printed_settings_are_read_back_unchanged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
