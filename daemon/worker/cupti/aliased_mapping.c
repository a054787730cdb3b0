/* Reserves a range of device addresses with the driver's virtual memory management and maps the same physical chunk at every
 * multiple of its size. On a device without virtual memory management, allocates one chunk, and the range has the chunk's
 * size. */
#include "worker/cupti/aliased_mapping.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "worker/cupti/driver_entry_point.h"
#include "worker/cupti/check.h"

/* Functions of the driver API that are resolved at run time. */
/* clang-format off */
#define DRIVER_FUNCTIONS(APPLY)                                                       \
  APPLY(cuDeviceGetAttribute) APPLY(cuMemGetAllocationGranularity) APPLY(cuMemCreate) \
  APPLY(cuMemRelease) APPLY(cuMemAddressReserve) APPLY(cuMemAddressFree)              \
  APPLY(cuMemMap) APPLY(cuMemUnmap) APPLY(cuMemSetAccess)
/* clang-format on */

typedef struct driver {
#define MEMBER(NAME) __typeof__(NAME) *NAME;
  DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
} driver;

static int resolve_driver(driver *cu, rl_error *err) {
#define FIND(NAME) \
  if ((*(void **)&cu->NAME = rl_driver_entry_point(#NAME, err)) == NULL) return -1;
  DRIVER_FUNCTIONS(FIND)
#undef FIND
  return 0;
}

static int check_driver(CUresult result, const char *what, rl_error *err) {
  return result == CUDA_SUCCESS ? 0 : rl_fail(err, RL_CUDA, (int)result, "%s: CUDA driver error %d", what, (int)result);
}

/* Maps the chunk at every multiple of its size in the range. */
static int map_chunk(const driver *cu, CUdeviceptr range, size_t bytes, CUmemGenericAllocationHandle chunk, size_t chunk_bytes,
                     const CUmemLocation *location, rl_error *err) {
  const CUmemAccessDesc access = {.location = *location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t mapped = 0;
  int result = 0;
  while (mapped < bytes && (result = check_driver(cu->cuMemMap(range + mapped, chunk_bytes, 0, chunk, 0), "cuMemMap", err)) == 0)
    mapped += chunk_bytes;
  if (result == 0) result = check_driver(cu->cuMemSetAccess(range, bytes, &access, 1), "cuMemSetAccess", err);
  if (result < 0 && mapped > 0) cu->cuMemUnmap(range, mapped);
  return result;
}

/* Creates a chunk and maps it over the whole range. The mappings keep the chunk allocated after its handle is released. */
static int fill_range(const driver *cu, CUdeviceptr range, size_t bytes, size_t chunk_bytes,
                      const CUmemAllocationProp *properties, rl_error *err) {
  CUmemGenericAllocationHandle chunk;
  if (check_driver(cu->cuMemCreate(&chunk, chunk_bytes, properties, 0), "cuMemCreate", err) < 0) return -1;
  int result = map_chunk(cu, range, bytes, chunk, chunk_bytes, &properties->location, err);
  cu->cuMemRelease(chunk);
  return result;
}

static size_t round_up(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

static int map_aliased(const driver *cu, rl_aliased_mapping *mapping, int device, size_t bytes, size_t chunk_bytes,
                       rl_error *err) {
  const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
  CUdeviceptr range = 0;
  size_t granularity = 1;
  if (check_driver(cu->cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                   "cuMemGetAllocationGranularity", err) < 0)
    return -1;
  chunk_bytes = round_up(chunk_bytes, granularity);
  bytes = round_up(bytes, chunk_bytes);
  if (check_driver(cu->cuMemAddressReserve(&range, bytes, 0, 0, 0), "cuMemAddressReserve", err) < 0) return -1;
  if (fill_range(cu, range, bytes, chunk_bytes, &properties, err) < 0) {
    cu->cuMemAddressFree(range, bytes);
    return -1;
  }
  *mapping = (rl_aliased_mapping){.address = (void *)range, .bytes = bytes, .mapped = true};
  return 0;
}

int rl_aliased_mapping_open(rl_aliased_mapping *mapping, int device, size_t bytes, size_t chunk_bytes, rl_error *err) {
  driver cu;
  int supported = 0;
  if (resolve_driver(&cu, err) < 0 ||
      check_driver(cu.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device),
                   "cuDeviceGetAttribute", err) < 0)
    return -1;
  if (supported) return map_aliased(&cu, mapping, device, bytes, chunk_bytes, err);
  *mapping = (rl_aliased_mapping){.bytes = chunk_bytes};
  return rl_cuda_check(cudaMalloc(&mapping->address, chunk_bytes), "memory for an aliased mapping", err);
}

void rl_aliased_mapping_close(rl_aliased_mapping *mapping) {
  driver cu;
  if (!mapping->mapped) cudaFree(mapping->address);
  else if (resolve_driver(&cu, NULL) == 0) {
    cu.cuMemUnmap((CUdeviceptr)mapping->address, mapping->bytes);
    cu.cuMemAddressFree((CUdeviceptr)mapping->address, mapping->bytes);
  }
  *mapping = (rl_aliased_mapping){0};
}
