/* Fuzzes the reader of nsys's SQLite exports. */
#include "import_fixture.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  import_bytes(data, size, RL_TRACE_FORMAT_NSYS);
  return 0;
}
