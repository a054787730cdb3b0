/* The page's files, from config.web: regular files below it, no links, nothing hidden. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/internal.h"

static const struct {
  const char *suffix, *type;
} types[] = {
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".svg", "image/svg+xml"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".woff2", "font/woff2"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".txt", "text/plain; charset=utf-8"},
};

static const char *type_of(const char *path) {
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    size_t suffix = strlen(types[i].suffix);
    if (length > suffix && strcmp(path + length - suffix, types[i].suffix) == 0) return types[i].type;
  }
  return NULL;
}

/* Open one component after the other, so that neither "..", nor a link, nor a hidden name leads anywhere. -1: no such file. */
static int open_file(const rl_server *server, const char *path, struct stat *facts) {
  char name[256];
  if (server->web < 0 || path[0] != '/') return -1;
  if (strcmp(path, "/") == 0) path = "/index.html";
  if (type_of(path) == NULL) return -1;
  int folder = server->web;
  for (path++;;) {
    size_t length = strcspn(path, "/");
    bool last = path[length] == '\0';
    int opened = -1;
    if (length > 0 && length < sizeof name && path[0] != '.') {
      memcpy(name, path, length);
      name[length] = '\0';
      opened = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | (last ? O_NONBLOCK : O_DIRECTORY));
    }
    if (folder != server->web) close(folder);
    if (opened < 0) return -1;
    folder = opened;
    if (last) break;
    path += length + 1;
  }
  if (fstat(folder, facts) == 0 && S_ISREG(facts->st_mode)) return folder;
  close(folder);
  return -1;
}

bool rl_file_exists(const rl_server *server, const char *path) {
  struct stat facts;
  int file = open_file(server, path, &facts);
  if (file >= 0) close(file);
  return file >= 0;
}

int rl_handle_file(rl_call *call, rl_error *err) {
  struct stat facts;
  char etag[RL_ETAG_SIZE];
  rl_auto(rl_close_descriptor) int file = open_file(call->server, call->path, &facts);
  if (file < 0) return rl_fail(err, RL_HTTP, 404, "No route and no file has this path; /openapi.json lists the routes.");
  const int64_t identity[] = {facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec, facts.st_size, (int64_t)facts.st_ino};
  rl_etag_of(identity, sizeof identity, etag);
  bool same = rl_etag_matches(rl_call_header(call, "If-None-Match"), etag);
  struct MHD_Response *response = same ? rl_response_empty() : MHD_create_response_from_fd64((uint64_t)facts.st_size, file);
  if (response != NULL) {
    if (!same) {
      file = -1; /* the response's now */
      rl_header(response, "Content-Type", type_of(strcmp(call->path, "/") == 0 ? "/index.html" : call->path));
    }
    rl_header(response, "ETag", etag);
    rl_header(response, "Cache-Control", "no-cache");
  }
  return rl_reply(call, same ? 304 : 200, response, err);
}
