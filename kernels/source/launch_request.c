/* Implements launch_request.h. */
#include "source/launch_request.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Upper limits: no compute capability allows more. The device may allow less, above all for clusters, which need compute
 * capability 9.0. */
enum { MAX_BLOCK_THREADS = 1024, MAX_BLOCK_Z = 64, MAX_GRID_YZ = 65535, MAX_CLUSTER_BLOCKS = 16 };

typedef struct json_pointer {
  char text[RL_SOURCE_POINTER_SIZE];
} json_pointer;

static json_pointer member_pointer(const char *prefix, const char *name) {
  json_pointer pointer;
  snprintf(pointer.text, sizeof pointer.text, "%s/%s", prefix, name);
  return pointer;
}

static json_pointer element_pointer(const char *prefix, const char *name, int index) {
  json_pointer pointer;
  snprintf(pointer.text, sizeof pointer.text, "%s/%s/%d", prefix, name, index);
  return pointer;
}

static int check_entry(const rl_source_request *request, const char *prefix, rl_error *err) {
  /* The entry of source code is a C++ name expression, that of a binary is a symbol. */
  const char *allowed = request->code != NULL ? "_$:<>, *&()+-" : "_$.@";
  if (request->entry[0] == '\0') return rl_fail_at(err, member_pointer(prefix, "entry").text, "entry must name the kernel");
  for (const char *c = request->entry; *c != '\0'; c++)
    if (!isalnum((unsigned char)*c) && strchr(allowed, *c) == NULL)
      return rl_fail_at(err, member_pointer(prefix, "entry").text, "entry can't have a '%c'", *c);
  return 0;
}

static int check_cluster(const rl_source_request *request, const char *prefix, rl_error *err) {
  if (request->cluster[0] * request->cluster[1] * request->cluster[2] > MAX_CLUSTER_BLOCKS)
    return rl_fail_at(err, member_pointer(prefix, "cluster").text, "a cluster has at most %d blocks", MAX_CLUSTER_BLOCKS);
  for (int i = 0; i < 3; i++)
    if (request->grid[i] % request->cluster[i] != 0)
      return rl_fail_at(err, element_pointer(prefix, "grid", i).text, "grid[%d] must be a multiple of cluster[%d], which is %lld",
                        i, i, (long long)request->cluster[i]);
  return 0;
}

int rl_source_check_launch_request(const rl_source_request *request, const char *prefix, rl_error *err) {
  if (check_entry(request, prefix, err) < 0) return -1;
  for (int i = 1; i < 3; i++)
    if (request->grid[i] > MAX_GRID_YZ)
      return rl_fail_at(err, element_pointer(prefix, "grid", i).text, "grid[%d] may be at most %d", i, MAX_GRID_YZ);
  if (request->block[2] > MAX_BLOCK_Z)
    return rl_fail_at(err, element_pointer(prefix, "block", 2).text, "block[2] may be at most %d", MAX_BLOCK_Z);
  if (request->block[0] * request->block[1] * request->block[2] > MAX_BLOCK_THREADS)
    return rl_fail_at(err, member_pointer(prefix, "block").text, "a block has at most %d threads", MAX_BLOCK_THREADS);
  return check_cluster(request, prefix, err);
}
