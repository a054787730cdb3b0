/* Fuzzes the parser of traces in Chrome's format, plain and gzip. */
#include "import_fixture.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  import_bytes(data, size, RL_TRACE_FORMAT_KINETO);
  return 0;
}
