/* Tests rl_library_of_kernel with names that libraries use, and with similar names of kernels of no library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/library_kernel.h"

static const struct {
  const char *name, *library;
} cases[] = {
    {"nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "cuBLAS"},
    {"nvjet_sm90_tst_64x8_64x16_4x2_h_bz_TNT", "cuBLAS"},
    {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __half>(cublasLt::cublasSplitKParams<float>)", "cuBLAS"},
    {"void splitKreduce_kernel<__half, __half>(cublasSplitKParams<__half>, __half const *)", "cuBLAS"},
    {"void gemmSN_TN_kernel<float, 128, 16>(cublasGemmSmallNParams<float>)", "cuBLAS"},
    {"void gemv2T_kernel_val<int, int, float>(float)", "cuBLAS"},
    {"void internal::gemvx::kernel<int, int, float>(float)", "cuBLAS"},
    {"sm80_xmma_fprop_implicit_gemm_indexed_wo_smem_f32f32_tf32f32_f32", "cuDNN"},
    {"sm90_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x64", "cuBLAS or cuDNN"},
    /* names from a profile on an H100 of cuBLASLt's GEMM and cuDNN's convolution in fp64, fp32, tf32, fp16 and bf16 */
    {"nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT", "cuBLAS"},
    {"sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas",
     "cuBLAS"},
    {"sm90_xmma_gemm_f64f64_f64f64_f64_nn_n_tilesize128x64x16_stage3_warpsize2x2x1_tensor16x8x8_execute_kernel__5x_cublas",
     "cuBLAS"},
    {"void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm_256x128_8x4_nn_align1::Params)",
     "cuBLAS or cuDNN"},
    {"sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize256x64x32_warpgroupsize1x1x1_g1_execute_segment_k_"
     "off_kernel__5x_cudnn",
     "cuDNN"},
    {"sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize256x64x8_stage3_warpsize2x2x1_g1_ffma_aligna4_"
     "alignc4_"
     "execute_kernel__5x_cudnn",
     "cuDNN"},
    {"void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false, true, "
     "(cudnnKernelDataType_t)0>(cudnn::engines_"
     "precompiled::nchw2nhwc_params_t<float>, float const*, float*)",
     "cuDNN"},
    {"void cudnn::ops::nchwToNhwcKernel<__half, __half, float>(int)", "cuDNN"},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16", "cuDNN"},
    {"_5x_cudnn_ampere_fp16_scudnn_fp16_128x64_relu_medium_nn_v1", "cuDNN"},
    {"ampere_scudnn_128x64_relu_medium_nn_v1", "cuDNN"},
    {"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_64x64>(int)", "cuDNN"},
    {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_32x6_nn_align4>(int)", "cuBLAS or cuDNN"},
    {"cutlass_80_simt_sgemm_256x128_8x4_nt_align1", "cuBLAS or cuDNN"},
    {"ampere_sgemm_64x32_sliced1x4_tn", "cuBLAS or cuDNN"},
    {"volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "cuBLAS or cuDNN"},
    {"void cutlass::Kernel2<cutlass_tensorop_s1688gemm_128x128_32x3_nn_align4>(int)", NULL},
    {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int>>(int)", NULL},
    {"gemm(const float *, const float *, float *)", NULL},
    {"my_nvjet_gemm", NULL},
    {"ampere_gemm(const float *, float *)", NULL},
    {"ampere_sgemm_128x32_3stage", NULL},
    {"void gemmSNAP_kernel<float>(float *)", NULL},
    {"void mine::splitKreduce_kernel<float>(float *)", NULL},
    {"xmma_gemm", NULL},
    {"cudnn_like_conv(float *)", NULL},
    {"relu(const __half *, __half *, unsigned long)", NULL},
    {"void ", NULL},
    {"", NULL},
};

static void only_names_of_libraries_match(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *library = rl_library_of_kernel(cases[i].name), *expected = cases[i].library;
    if (expected ? !library || strcmp(library, expected) != 0 : library != NULL)
      fail_msg("%s: the library is %s, not %s", cases[i].name, library ? library : "none", expected ? expected : "none");
  }
}

static void every_bound_has_different_advice(void **state) {
  (void)state;
  for (int a = RL_KERNEL_BOUND_UNKNOWN; rl_kernel_bound_names[a]; a++)
    for (int b = RL_KERNEL_BOUND_UNKNOWN; b <= a; b++) {
      const char *advice = rl_library_advice(&(rl_kernel_verdict){.bound = (rl_kernel_bound)a});
      assert_true(advice && strlen(advice) < 300); /* fits into a message after the library's name */
      assert_true(a == b || strcmp(advice, rl_library_advice(&(rl_kernel_verdict){.bound = (rl_kernel_bound)b})) != 0);
    }
}

/* Only a kernel that the FMA pipeline limits gets the advice to use tensor cores. The pipeline xu can limit attention, and the
 * issue slots a matrix product, although both use tensor cores. */
static void advice_about_a_pipeline_depends_on_the_pipeline(void **state) {
  (void)state;
  static const struct {
    const char *pipeline, *advice, *not_advised;
  } expected[] = {{"fma", "Use tensor cores", "lower precision"}, {"fp64", "a lower precision, such as FP32", "Use tensor cores"},
                  {"fp64", "FP64 tensor cores", "FP8"},           {"tensor", "Use a lower precision", "tensor cores"},
                  {"xu", "another algorithm", "tensor cores"},    {"issue", "another algorithm", "tensor cores"}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    const rl_kernel_verdict verdict = {.bound = RL_KERNEL_BOUND_PIPELINE, .pipeline = expected[i].pipeline};
    assert_non_null(strstr(rl_library_advice(&verdict), expected[i].advice));
    assert_null(strstr(rl_library_advice(&verdict), expected[i].not_advised));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(only_names_of_libraries_match),
                                     cmocka_unit_test(every_bound_has_different_advice),
                                     cmocka_unit_test(advice_about_a_pipeline_depends_on_the_pipeline)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
