/* A table maps Nsight Compute's metric names to attributes of the driver. A few metrics are computed from cudaDeviceProp. */
#include "worker/cupti/device_attributes.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <string.h>

#define PREFIX "device__attribute_"

/* Nsight Compute's name of an attribute is the lower-case name of the enumerator in cuda.h. */
#define ROW(NAME, ATTRIBUTE) \
  { #NAME, CU_DEVICE_ATTRIBUTE_##ATTRIBUTE }
static const struct {
  const char *name;
  CUdevice_attribute attribute;
} attributes[] = {
    ROW(async_engine_count, ASYNC_ENGINE_COUNT),
    ROW(can_flush_remote_writes, CAN_FLUSH_REMOTE_WRITES),
    ROW(can_map_host_memory, CAN_MAP_HOST_MEMORY),
    ROW(can_tex2d_gather, CAN_TEX2D_GATHER),
    ROW(can_use_64_bit_stream_mem_ops, CAN_USE_64_BIT_STREAM_MEM_OPS),
    ROW(can_use_64_bit_stream_mem_ops_v1, CAN_USE_64_BIT_STREAM_MEM_OPS_V1),
    ROW(can_use_host_pointer_for_registered_mem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    ROW(can_use_stream_mem_ops_v1, CAN_USE_STREAM_MEM_OPS_V1),
    ROW(can_use_stream_wait_value_nor, CAN_USE_STREAM_WAIT_VALUE_NOR),
    ROW(can_use_stream_wait_value_nor_v1, CAN_USE_STREAM_WAIT_VALUE_NOR_V1),
    ROW(clock_rate, CLOCK_RATE),
    ROW(cluster_launch, CLUSTER_LAUNCH),
    ROW(compute_capability_major, COMPUTE_CAPABILITY_MAJOR),
    ROW(compute_capability_minor, COMPUTE_CAPABILITY_MINOR),
    ROW(compute_mode, COMPUTE_MODE),
    ROW(compute_preemption_supported, COMPUTE_PREEMPTION_SUPPORTED),
    ROW(concurrent_kernels, CONCURRENT_KERNELS),
    ROW(concurrent_managed_access, CONCURRENT_MANAGED_ACCESS),
    ROW(cooperative_launch, COOPERATIVE_LAUNCH),
    ROW(cooperative_multi_device_launch, COOPERATIVE_MULTI_DEVICE_LAUNCH),
    ROW(deferred_mapping_cuda_array_supported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    ROW(direct_managed_mem_access_from_host, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    ROW(dma_buf_supported, DMA_BUF_SUPPORTED),
    ROW(ecc_enabled, ECC_ENABLED),
    ROW(generic_compression_supported, GENERIC_COMPRESSION_SUPPORTED),
    ROW(global_l1_cache_supported, GLOBAL_L1_CACHE_SUPPORTED),
    ROW(global_memory_bus_width, GLOBAL_MEMORY_BUS_WIDTH),
    ROW(gpu_direct_rdma_flush_writes_options, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    ROW(gpu_direct_rdma_supported, GPU_DIRECT_RDMA_SUPPORTED),
    ROW(gpu_direct_rdma_with_cuda_vmm_supported, GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED),
    ROW(gpu_direct_rdma_writes_ordering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    ROW(gpu_overlap, GPU_OVERLAP),
    ROW(gpu_pci_device_id, GPU_PCI_DEVICE_ID),
    ROW(handle_type_fabric_supported, HANDLE_TYPE_FABRIC_SUPPORTED),
    ROW(handle_type_posix_file_descriptor_supported, HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
    ROW(handle_type_win32_handle_supported, HANDLE_TYPE_WIN32_HANDLE_SUPPORTED),
    ROW(handle_type_win32_kmt_handle_supported, HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED),
    ROW(host_native_atomic_supported, HOST_NATIVE_ATOMIC_SUPPORTED),
    ROW(host_numa_id, HOST_NUMA_ID),
    ROW(host_register_supported, HOST_REGISTER_SUPPORTED),
    ROW(integrated, INTEGRATED),
    ROW(ipc_event_supported, IPC_EVENT_SUPPORTED),
    ROW(kernel_exec_timeout, KERNEL_EXEC_TIMEOUT),
    ROW(l2_cache_size, L2_CACHE_SIZE),
    ROW(local_l1_cache_supported, LOCAL_L1_CACHE_SUPPORTED),
    ROW(managed_memory, MANAGED_MEMORY),
    ROW(max_access_policy_window_size, MAX_ACCESS_POLICY_WINDOW_SIZE),
    ROW(max_block_dim_x, MAX_BLOCK_DIM_X),
    ROW(max_block_dim_y, MAX_BLOCK_DIM_Y),
    ROW(max_block_dim_z, MAX_BLOCK_DIM_Z),
    ROW(max_blocks_per_multiprocessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    ROW(max_grid_dim_x, MAX_GRID_DIM_X),
    ROW(max_grid_dim_y, MAX_GRID_DIM_Y),
    ROW(max_grid_dim_z, MAX_GRID_DIM_Z),
    ROW(max_persisting_l2_cache_size, MAX_PERSISTING_L2_CACHE_SIZE),
    ROW(max_pitch, MAX_PITCH),
    ROW(max_registers_per_block, MAX_REGISTERS_PER_BLOCK),
    ROW(max_registers_per_multiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    ROW(max_shared_memory_per_block, MAX_SHARED_MEMORY_PER_BLOCK),
    ROW(max_shared_memory_per_block_optin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    ROW(max_shared_memory_per_multiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    ROW(max_threads_per_block, MAX_THREADS_PER_BLOCK),
    ROW(max_threads_per_multiprocessor, MAX_THREADS_PER_MULTIPROCESSOR),
    ROW(maximum_surface1d_layered_layers, MAXIMUM_SURFACE1D_LAYERED_LAYERS),
    ROW(maximum_surface1d_layered_width, MAXIMUM_SURFACE1D_LAYERED_WIDTH),
    ROW(maximum_surface1d_width, MAXIMUM_SURFACE1D_WIDTH),
    ROW(maximum_surface2d_height, MAXIMUM_SURFACE2D_HEIGHT),
    ROW(maximum_surface2d_layered_height, MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
    ROW(maximum_surface2d_layered_layers, MAXIMUM_SURFACE2D_LAYERED_LAYERS),
    ROW(maximum_surface2d_layered_width, MAXIMUM_SURFACE2D_LAYERED_WIDTH),
    ROW(maximum_surface2d_width, MAXIMUM_SURFACE2D_WIDTH),
    ROW(maximum_surface3d_depth, MAXIMUM_SURFACE3D_DEPTH),
    ROW(maximum_surface3d_height, MAXIMUM_SURFACE3D_HEIGHT),
    ROW(maximum_surface3d_width, MAXIMUM_SURFACE3D_WIDTH),
    ROW(maximum_surfacecubemap_layered_layers, MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
    ROW(maximum_surfacecubemap_layered_width, MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    ROW(maximum_surfacecubemap_width, MAXIMUM_SURFACECUBEMAP_WIDTH),
    ROW(maximum_texture1d_layered_layers, MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
    ROW(maximum_texture1d_layered_width, MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
    ROW(maximum_texture1d_linear_width, MAXIMUM_TEXTURE1D_LINEAR_WIDTH),
    ROW(maximum_texture1d_mipmapped_width, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    ROW(maximum_texture1d_width, MAXIMUM_TEXTURE1D_WIDTH),
    ROW(maximum_texture2d_gather_height, MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
    ROW(maximum_texture2d_gather_width, MAXIMUM_TEXTURE2D_GATHER_WIDTH),
    ROW(maximum_texture2d_height, MAXIMUM_TEXTURE2D_HEIGHT),
    ROW(maximum_texture2d_layered_height, MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
    ROW(maximum_texture2d_layered_layers, MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
    ROW(maximum_texture2d_layered_width, MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
    ROW(maximum_texture2d_linear_height, MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
    ROW(maximum_texture2d_linear_pitch, MAXIMUM_TEXTURE2D_LINEAR_PITCH),
    ROW(maximum_texture2d_linear_width, MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
    ROW(maximum_texture2d_mipmapped_height, MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
    ROW(maximum_texture2d_mipmapped_width, MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
    ROW(maximum_texture2d_width, MAXIMUM_TEXTURE2D_WIDTH),
    ROW(maximum_texture3d_depth, MAXIMUM_TEXTURE3D_DEPTH),
    ROW(maximum_texture3d_depth_alternate, MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
    ROW(maximum_texture3d_height, MAXIMUM_TEXTURE3D_HEIGHT),
    ROW(maximum_texture3d_height_alternate, MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
    ROW(maximum_texture3d_width, MAXIMUM_TEXTURE3D_WIDTH),
    ROW(maximum_texture3d_width_alternate, MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
    ROW(maximum_texturecubemap_layered_layers, MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
    ROW(maximum_texturecubemap_layered_width, MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    ROW(maximum_texturecubemap_width, MAXIMUM_TEXTURECUBEMAP_WIDTH),
    ROW(mem_sync_domain_count, MEM_SYNC_DOMAIN_COUNT),
    ROW(memory_clock_rate, MEMORY_CLOCK_RATE),
    ROW(memory_pools_supported, MEMORY_POOLS_SUPPORTED),
    ROW(mempool_supported_handle_types, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    ROW(mps_enabled, MPS_ENABLED),
    ROW(multi_gpu_board, MULTI_GPU_BOARD),
    ROW(multi_gpu_board_group_id, MULTI_GPU_BOARD_GROUP_ID),
    ROW(multicast_supported, MULTICAST_SUPPORTED),
    ROW(multiprocessor_count, MULTIPROCESSOR_COUNT),
    ROW(numa_config, NUMA_CONFIG),
    ROW(pageable_memory_access, PAGEABLE_MEMORY_ACCESS),
    ROW(pageable_memory_access_uses_host_page_tables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    ROW(pci_bus_id, PCI_BUS_ID),
    ROW(pci_device_id, PCI_DEVICE_ID),
    ROW(pci_domain_id, PCI_DOMAIN_ID),
    ROW(reserved_shared_memory_per_block, RESERVED_SHARED_MEMORY_PER_BLOCK),
    ROW(single_to_double_precision_perf_ratio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    ROW(sparse_cuda_array_supported, SPARSE_CUDA_ARRAY_SUPPORTED),
    ROW(stream_priorities_supported, STREAM_PRIORITIES_SUPPORTED),
    ROW(surface_alignment, SURFACE_ALIGNMENT),
    ROW(tcc_driver, TCC_DRIVER),
    ROW(tensor_map_access_supported, TENSOR_MAP_ACCESS_SUPPORTED),
    ROW(texture_alignment, TEXTURE_ALIGNMENT),
    ROW(texture_pitch_alignment, TEXTURE_PITCH_ALIGNMENT),
    ROW(total_constant_memory, TOTAL_CONSTANT_MEMORY),
    ROW(unified_addressing, UNIFIED_ADDRESSING),
    ROW(unified_function_pointers, UNIFIED_FUNCTION_POINTERS),
    ROW(virtual_address_management_supported, VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED),
    ROW(warp_size, WARP_SIZE),
};

/* Returns a metric that is computed from cudaDeviceProp, because the driver has no such attribute. */
static double from_properties(const char *name, const struct cudaDeviceProp *device) {
  if (strcmp(name, "total_memory") == 0) return (double)device->totalGlobalMem;
  if (strcmp(name, "max_warps_per_multiprocessor") == 0) return (double)device->maxThreadsPerMultiProcessor / device->warpSize;
  return NAN;
}

double rl_device_attribute(int device_index, const char *metric, const char **reason) {
  const char *name = metric + strlen(PREFIX);
  *reason = "the driver has no attribute with this name";
  if (strncmp(metric, PREFIX, strlen(PREFIX)) != 0) return NAN;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    if (strcmp(attributes[i].name, name) != 0) continue;
    int value = 0; /* cudaDeviceAttr and CUdevice_attribute have the same values */
    *reason = "the driver does not report this attribute";
    cudaError_t status = cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)attributes[i].attribute, device_index);
    return status == cudaSuccess ? value : NAN;
  }
  struct cudaDeviceProp device;
  return cudaGetDeviceProperties(&device, device_index) == cudaSuccess ? from_properties(name, &device) : NAN;
}
