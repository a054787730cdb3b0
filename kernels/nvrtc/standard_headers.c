/* Implements standard_headers.h: the table of headers and their texts. */
#include "nvrtc/standard_headers.h"

/* The macros CPP_HEADER, C_HEADER and BUILT_IN_HEADER call X(name, text) for the headers that they define. USE_IN_STD makes the
 * names of cuda::std visible in std. */
#define USE_IN_STD "namespace cuda { namespace std {} }\nnamespace std { using namespace cuda::std; }\n"
/* The header <NAME> of C++, which CCCL has as <cuda/std/NAME>. */
#define CPP_HEADER(X, NAME) X(#NAME, "#include <cuda/std/" #NAME ">\n" USE_IN_STD)
/* The headers <cNAME> of C++ and <NAME.h> of C. CCCL has <cuda/std/cNAME>, whose types and functions are in the global namespace
 * too. MACROS: definitions of the header's macros that CCCL lacks when NVRTC compiles. */
#define C_HEADER(X, NAME, MACROS)                                    \
  X("c" #NAME, MACROS "#include <cuda/std/c" #NAME ">\n" USE_IN_STD) \
  X(#NAME ".h", MACROS "#include <cuda/std/c" #NAME ">\n")
/* Empty headers <cNAME> and <NAME.h>: NVRTC itself declares what kernels use of them (assert, printf). */
#define BUILT_IN_HEADER(X, NAME) X("c" #NAME, "") X(#NAME ".h", "")

/* The CCCL of CUDA 13.0 has <algorithm> only under an internal name. */
#define ALGORITHM                             \
  "#if __has_include(<cuda/std/algorithm>)\n" \
  "#include <cuda/std/algorithm>\n"           \
  "#else\n"                                   \
  "#include <cuda/std/__algorithm_>\n"        \
  "#endif\n" USE_IN_STD

/* The types of the driver API that kernels have as parameters. Its functions are host functions, which NVRTC refuses. */
#define DRIVER_TYPES                                                                             \
  "#ifndef CUDA_VERSION\n"                                                                       \
  "#define CUDA_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)\n"             \
  "typedef unsigned long long CUdeviceptr;\n"                                                    \
  "typedef struct CUtensorMap_st { alignas(128) unsigned long long opaque[16]; } CUtensorMap;\n" \
  "#endif\n"

/* IEEE 754 binary32 and binary64, as in C's <float.h>. */
#define FLOAT_MACROS                             \
  "#ifndef FLT_MAX\n"                            \
  "#define FLT_RADIX 2\n"                        \
  "#define FLT_MANT_DIG 24\n"                    \
  "#define FLT_DIG 6\n"                          \
  "#define FLT_MIN_EXP (-125)\n"                 \
  "#define FLT_MAX_EXP 128\n"                    \
  "#define FLT_MAX 3.402823466e+38f\n"           \
  "#define FLT_MIN 1.175494351e-38f\n"           \
  "#define FLT_EPSILON 1.192092896e-07f\n"       \
  "#define DBL_MANT_DIG 53\n"                    \
  "#define DBL_DIG 15\n"                         \
  "#define DBL_MIN_EXP (-1021)\n"                \
  "#define DBL_MAX_EXP 1024\n"                   \
  "#define DBL_MAX 1.7976931348623157e+308\n"    \
  "#define DBL_MIN 2.2250738585072014e-308\n"    \
  "#define DBL_EPSILON 2.2204460492503131e-16\n" \
  "#endif\n"

/* The constants of POSIX's <math.h>. */
#define MATH_MACROS                             \
  "#ifndef M_PI\n"                              \
  "#define M_E 2.7182818284590452354\n"         \
  "#define M_LOG2E 1.4426950408889634074\n"     \
  "#define M_LOG10E 0.43429448190325182765\n"   \
  "#define M_LN2 0.69314718055994530942\n"      \
  "#define M_LN10 2.30258509299404568402\n"     \
  "#define M_PI 3.14159265358979323846\n"       \
  "#define M_PI_2 1.57079632679489661923\n"     \
  "#define M_PI_4 0.78539816339744830962\n"     \
  "#define M_1_PI 0.31830988618379067154\n"     \
  "#define M_2_PI 0.63661977236758134308\n"     \
  "#define M_2_SQRTPI 1.12837916709551257390\n" \
  "#define M_SQRT2 1.41421356237309504880\n"    \
  "#define M_SQRT1_2 0.70710678118654752440\n"  \
  "#endif\n"

/* clang-format off */
#define STANDARD_HEADERS(X)                                                                                                    \
  X("algorithm", ALGORITHM) X("new", "") X("stdbool.h", "") X("cuda.h", DRIVER_TYPES) CPP_HEADER(X, array)                     \
  CPP_HEADER(X, atomic) CPP_HEADER(X, bit) CPP_HEADER(X, complex) CPP_HEADER(X, concepts) CPP_HEADER(X, expected)              \
  CPP_HEADER(X, functional) CPP_HEADER(X, initializer_list) CPP_HEADER(X, iterator) CPP_HEADER(X, limits)                      \
  CPP_HEADER(X, memory) CPP_HEADER(X, numbers) CPP_HEADER(X, numeric) CPP_HEADER(X, optional) CPP_HEADER(X, ratio)             \
  CPP_HEADER(X, span) CPP_HEADER(X, tuple) CPP_HEADER(X, type_traits) CPP_HEADER(X, utility) CPP_HEADER(X, variant)            \
  C_HEADER(X, float, FLOAT_MACROS) C_HEADER(X, limits, "") C_HEADER(X, math, MATH_MACROS) C_HEADER(X, stddef, "")              \
  C_HEADER(X, stdint, "") C_HEADER(X, stdlib, "") C_HEADER(X, string, "") BUILT_IN_HEADER(X, assert) BUILT_IN_HEADER(X, stdio)
/* clang-format on */

#define NAME_OF(NAME, TEXT) NAME,
#define TEXT_OF(NAME, TEXT) TEXT,
static const char *const names[] = {STANDARD_HEADERS(NAME_OF)};
static const char *const texts[] = {STANDARD_HEADERS(TEXT_OF)};
#define NAME_AND_TEXT(NAME, TEXT) NAME "\n" TEXT
static const char names_and_texts[] = STANDARD_HEADERS(NAME_AND_TEXT);

rl_standard_headers rl_standard_headers_get(void) {
  return (rl_standard_headers){.count = (int)(sizeof names / sizeof *names), .names = names, .texts = texts};
}

void rl_standard_headers_hash(char hex[RL_SHA256_SIZE]) { rl_sha256(names_and_texts, sizeof names_and_texts, hex); }
