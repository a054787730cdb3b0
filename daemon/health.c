#include "health.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_WAIT_S = 10 };

static size_t ignore(char *data, size_t size, size_t count, void *context) {
  (void)data;
  (void)context;
  return size * count;
}

static int ask(const char *url, rl_error *err) {
  CURL *curl = curl_easy_init();
  if (curl == NULL) return rl_fail(err, RL_SYS, 0, "can't make a request to %s", url);
  long status = 0;
  curl_easy_setopt(curl, CURLOPT_URL, url);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)ANSWER_WAIT_S);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, ignore);
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L); /* we ask whether it answers, not who it is */
  curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  CURLcode code = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_cleanup(curl);
  if (code != CURLE_OK) return rl_fail(err, RL_HTTP, 0, "%s does not answer: %s", url, curl_easy_strerror(code));
  return status == 200 ? 0 : rl_fail(err, RL_HTTP, (int)status, "%s answers %ld", url, status);
}

int rl_health_check(const rl_config *config, int port, rl_store *store, rl_error *err) {
  char url[128];
  bool six = strchr(config->address, ':') != NULL;
  snprintf(url, sizeof url, "%s://%s%s%s:%d/healthz", config->tls_certificate[0] != '\0' ? "https" : "http",
           six ? "[" : "", config->address, six ? "]" : "", port);
  rl_jobs_counts counts;
  return ask(url, err) < 0 || rl_store_jobs_count(store, &counts, err) < 0 ? -1 : 0;
}
