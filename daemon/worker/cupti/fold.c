#include "worker/cupti/fold.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "worker/cupti/driver.h"
#include "worker/cupti/result.h"

/* Of the driver, by their names. */
/* clang-format off */
#define CALLS(CALL)                                                                                                     \
  CALL(cuDeviceGetAttribute)                                                                                            \
  CALL(cuMemGetAllocationGranularity)                                                                                   \
  CALL(cuMemCreate) CALL(cuMemRelease) CALL(cuMemAddressReserve) CALL(cuMemAddressFree) CALL(cuMemMap) CALL(cuMemUnmap) \
      CALL(cuMemSetAccess)
/* clang-format on */

typedef struct driver {
#define MEMBER(NAME) __typeof__(NAME) *NAME;
  CALLS(MEMBER)
#undef MEMBER
} driver;

static int find_calls(driver *cu, rl_error *err) {
#define FIND(NAME) \
  if ((*(void **)&cu->NAME = rl_driver_function(#NAME, err)) == NULL) return -1;
  CALLS(FIND)
#undef FIND
  return 0;
}

static int check(CUresult result, const char *what, rl_error *err) {
  return result == CUDA_SUCCESS ? 0 : rl_fail(err, RL_CUDA, (int)result, "%s: the driver's error %d", what, (int)result);
}

static int map_pieces(const driver *cu, CUdeviceptr range, size_t bytes, CUmemGenericAllocationHandle piece, size_t piece_bytes,
                      const CUmemLocation *where, rl_error *err) {
  const CUmemAccessDesc access = {.location = *where, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t mapped = 0;
  int result = 0;
  while (mapped < bytes && (result = check(cu->cuMemMap(range + mapped, piece_bytes, 0, piece, 0), "cuMemMap", err)) == 0)
    mapped += piece_bytes;
  if (result == 0) result = check(cu->cuMemSetAccess(range, bytes, &access, 1), "cuMemSetAccess", err);
  if (result != 0 && mapped > 0) cu->cuMemUnmap(range, mapped);
  return result;
}

/* What is mapped outlives its handle. */
static int fill(const driver *cu, CUdeviceptr range, size_t bytes, size_t piece_bytes, const CUmemAllocationProp *kind,
                rl_error *err) {
  CUmemGenericAllocationHandle piece;
  if (check(cu->cuMemCreate(&piece, piece_bytes, kind, 0), "cuMemCreate", err) != 0) return -1;
  int result = map_pieces(cu, range, bytes, piece, piece_bytes, &kind->location, err);
  cu->cuMemRelease(piece);
  return result;
}

static size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

static int map(const driver *cu, rl_fold *fold, int device, size_t bytes, size_t piece_bytes, rl_error *err) {
  const CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
  CUdeviceptr range = 0;
  size_t least = 1;
  if (check(cu->cuMemGetAllocationGranularity(&least, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "the least to map", err) != 0)
    return -1;
  piece_bytes = round_up(piece_bytes, least);
  bytes = round_up(bytes, piece_bytes);
  if (check(cu->cuMemAddressReserve(&range, bytes, 0, 0, 0), "cuMemAddressReserve", err) != 0) return -1;
  if (fill(cu, range, bytes, piece_bytes, &kind, err) != 0) {
    cu->cuMemAddressFree(range, bytes);
    return -1;
  }
  *fold = (rl_fold){.address = (void *)range, .bytes = bytes, .mapped = true};
  return 0;
}

int rl_fold_open(rl_fold *fold, int device, size_t bytes, size_t piece_bytes, rl_error *err) {
  driver cu;
  int maps = 0;
  if (find_calls(&cu, err) != 0 ||
      check(cu.cuDeviceGetAttribute(&maps, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
            "whether the device maps memory", err) != 0)
    return -1;
  if (maps) return map(&cu, fold, device, bytes, piece_bytes, err);
  *fold = (rl_fold){.bytes = piece_bytes};
  return rl_cuda_check(cudaMalloc(&fold->address, piece_bytes), "a piece of memory to write to", err);
}

void rl_fold_close(rl_fold *fold) {
  driver cu;
  if (!fold->mapped) cudaFree(fold->address);
  else if (find_calls(&cu, NULL) == 0) {
    cu.cuMemUnmap((CUdeviceptr)fold->address, fold->bytes);
    cu.cuMemAddressFree((CUdeviceptr)fold->address, fold->bytes);
  }
  *fold = (rl_fold){0};
}
