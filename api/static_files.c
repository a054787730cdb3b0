/* Implements static_files.h. A table maps file name extensions to media types. A client that accepts gzip gets NAME.gz, which the
 * build makes beside NAME. */
#include "api/static_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/handlers.h"
#include "api/http_syntax.h"
#include "api/reply.h"
#include "api/server_internal.h"

static const struct {
  const char *suffix, *type;
} media_types[] = {
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

static const char *media_type_of(const char *path) {
  size_t length = strlen(path);
  for (size_t i = 0; i < sizeof media_types / sizeof *media_types; i++) {
    size_t suffix_length = strlen(media_types[i].suffix);
    if (length > suffix_length && strcmp(path + length - suffix_length, media_types[i].suffix) == 0) return media_types[i].type;
  }
  return NULL;
}

/* Opens the file or folder named by the first `length` bytes of path. Returns -1 if the name is empty, hidden or too long, is a
 * link, or does not exist. */
static int open_segment(int folder, const char *path, size_t length, int flags) {
  char name[256];
  if (length == 0 || length >= sizeof name || path[0] == '.') return -1;
  memcpy(name, path, length);
  name[length] = '\0';
  return openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | flags);
}

/* Opens one segment of the path after another with openat and O_NOFOLLOW, so that "..", links and hidden names can't lead out of
 * the folder. Returns -1 if there is no such file. */
static int open_path(int web_folder_fd, const char *path) {
  int folder = web_folder_fd;
  for (;;) {
    size_t length = strcspn(path, "/");
    bool last = path[length] == '\0';
    int opened = open_segment(folder, path, length, last ? O_NONBLOCK : O_DIRECTORY);
    if (folder != web_folder_fd) close(folder);
    if (opened < 0 || last) return opened;
    folder = opened;
    path += length + 1;
  }
}

static const char *file_path(const char *path) { return strcmp(path, "/") == 0 ? "/index.html" : path; }

/* Opens a regular file below the folder. Returns -1 if there is no such file. */
static int open_regular(int web_folder_fd, const char *path, struct stat *status) {
  int file = open_path(web_folder_fd, path);
  if (file < 0) return -1;
  if (fstat(file, status) == 0 && S_ISREG(status->st_mode)) return file;
  close(file);
  return -1;
}

/* Opens the regular file of a request's path. Returns -1 if there is no such file. */
static int open_file(const rl_server *server, const char *path, struct stat *status) {
  path = file_path(path);
  if (server->web_folder_fd < 0 || path[0] != '/' || media_type_of(path) == NULL) return -1;
  return open_regular(server->web_folder_fd, path + 1, status);
}

/* Replaces *file by its gzip copy and updates *status. Returns false if there is no copy, or if the copy is older than the
 * file. */
static bool open_gzip_copy(const rl_server *server, const char *path, int *file, struct stat *status) {
  char name[1024];
  struct stat copied;
  if ((size_t)snprintf(name, sizeof name, "%s.gz", file_path(path) + 1) >= sizeof name) return false;
  int copy = open_regular(server->web_folder_fd, name, &copied);
  if (copy < 0) return false;
  if (copied.st_mtim.tv_sec < status->st_mtim.tv_sec) {
    close(copy);
    return false;
  }
  close(*file);
  *file = copy;
  *status = copied;
  return true;
}

bool rl_static_file_exists(const rl_server *server, const char *path) {
  struct stat status;
  int file = open_file(server, path, &status);
  if (file >= 0) close(file);
  return file >= 0;
}

int rl_handle_get_web_file(rl_http_request *request, rl_error *err) {
  struct stat status;
  char etag[RL_ETAG_SIZE];
  RL_CLEANUP(rl_close_descriptor) int file = open_file(request->server, request->path, &status);
  if (file < 0) return rl_fail(err, RL_HTTP, 404, "No route and no file has this path; /openapi.json lists the routes.");
  bool gzip = rl_accepts_gzip(rl_http_request_header(request, "Accept-Encoding")) &&
              open_gzip_copy(request->server, request->path, &file, &status);
  const int64_t file_version[] = {status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size, (int64_t)status.st_ino};
  rl_etag_hash(file_version, sizeof file_version, etag);
  bool unchanged = rl_etag_matches(rl_http_request_header(request, "If-None-Match"), etag);
  struct MHD_Response *response = unchanged ? rl_response_empty() : MHD_create_response_from_fd64((uint64_t)status.st_size, file);
  if (response != NULL) {
    if (!unchanged) {
      file = -1; /* the response closes it */
      rl_response_add_header(response, "Content-Type", media_type_of(file_path(request->path)));
      if (gzip) rl_response_add_header(response, "Content-Encoding", "gzip");
    }
    rl_response_add_header(response, "Vary", "Accept-Encoding");
    rl_response_add_header(response, "ETag", etag);
    rl_response_add_header(response, "Cache-Control", "no-cache");
  }
  return rl_reply(request, unchanged ? 304 : 200, response, err);
}
