/* Conversions between float and IEEE 754 binary16 (round to nearest even) in plain C. */
#ifndef RL_KERNELS_HALF_H
#define RL_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint16_t rl_half_from_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* at least 65520: infinity */
  if (magnitude < 0x38800000) {                                  /* subnormal: adding 0.5 rounds to a multiple of 2^-24 */
    float shifted;
    memcpy(&shifted, &magnitude, sizeof shifted);
    shifted += 0.5f;
    memcpy(&magnitude, &shifted, sizeof magnitude);
    return (uint16_t)(sign | (magnitude - 0x3f000000));
  }
  magnitude += 0xfff + (magnitude >> 13 & 1);
  return (uint16_t)(sign | (magnitude - 0x38000000) >> 13);
}

static inline float rl_half_to_float(uint16_t half) {
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff, bits;
  float value;
  if (magnitude < 0x400) {
    value = (float)magnitude * 0x1p-24f;
    memcpy(&bits, &value, sizeof bits);
  } else {
    bits = magnitude >= 0x7c00 ? magnitude << 13 | 0x7f800000 : (magnitude << 13) + 0x38000000;
  }
  bits |= sign;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
