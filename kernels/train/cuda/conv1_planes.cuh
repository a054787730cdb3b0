/* Images in shared memory for conv1 in FP16 on tensor cores (mma.sync m16n8k16), and the products that give conv1's gradients.
 *
 * An image, or some of its rows, is stored with the border as FP16 (conv1_exact.cuh) in four planes. Element x of plane c is
 * column 2x + c of a row, so most columns are stored twice. Adjacent pooled pixels are two columns apart; so the pixels that they
 * need for one tap are adjacent elements of one plane. If the distance between planes is 4 banks more than a multiple of 32
 * banks, the loads of the nine taps for eight pooled pixels are free of bank conflicts. */
#ifndef RL_TRAIN_CUDA_CONV1_PLANES_H
#define RL_TRAIN_CUDA_CONV1_PLANES_H

#include "train/cuda/conv1_exact.cuh"
#include "train/cuda/mma.cuh"

enum {
  POSITIONS = 4 /* positions of a pooling window */,
  TAPS = 9,
  ROW_WORDS = RL_IMAGE_SIDE / 4 /* 32-bit words of an image row */,
  PLANES = 4,
  PLANE_PITCH = 24 /* FP16 values from a row of a plane to the next */
};

/* Stores the four pixels of word w of an image row, which are the columns 4w + 1 to 4w + 4 of the row with its border. PLANE:
 * FP16 values from a plane to the next. to: element 2w of plane 0 of the row. */
template <int PLANE> static __device__ __forceinline__ void store_word(uint32_t pixels, int w, __half *to) {
  const __half2 odd = minus_middle(pixels, 0x4240), even = minus_middle(pixels, 0x4341); /* pixels in odd, and in even, columns */
  *(__half2 *)&to[PLANE] = odd;
  *(__half2 *)&to[2 * PLANE] = even;
  to[1] = __low2half(even);
  to[2] = __high2half(even);
  if (w > 0) to[3 * PLANE - 1] = __low2half(odd);
  to[3 * PLANE] = __high2half(odd);
}

/* Adds the products for 16 pooled pixels and one position of their windows: gradients whose argmax is this position, times the
 * pixels under the taps. PLANE, PITCH: FP16 values from a plane, and a row of a plane, to the next; HALF: from the pixels of the
 * first eight pooled pixels to those of the others. gradient: fragments of operand A for TILES tiles of 16 channels × 16 pixels.
 * Both bytes of each 16 bits of `argmax` are the argmax of the gradient in the same 16 bits. row: the planes, from the first
 * image row under the windows on. Columns of sum[tile][0] are taps 0 to 7. Of the columns of sum[tile][1], the first is tap 8,
 * the second has ones for the bias, and the others are not used. */
template <int PLANE, int PITCH, int HALF, int TILES>
static __device__ __forceinline__ void add_position(const uint32_t gradient[TILES][4], const uint32_t argmax[TILES][4],
                                                    int position, const __half *row, float sum[TILES][2][4]) {
  const int lane = threadIdx.x % 32, tap = lane / 4;
  const __half *first = &row[tap % 3 * PLANE + tap / 3 * PITCH + lane % 4 * 2],
               *last = &row[2 * PLANE + 2 * PITCH + lane % 4 * 2];
  const int shift = position % 2 * PLANE + position / 2 * PITCH;
  const __half2 position_bytes = half2_from_bits(position * 0x01010101u), one = __float2half2_rn(1.0f);
  uint32_t taps[2][2], selected[4];
  for (int i = 0; i < 2; i++) {
    taps[0][i] = *(const uint32_t *)&first[shift + i * HALF];
    taps[1][i] = tap == 1 ? half2_bits(one) : *(const uint32_t *)&last[shift + i * HALF];
  }
  for (int m = 0; m < TILES; m++) {
    for (int i = 0; i < 4; i++) selected[i] = gradient[m][i] & __heq2_mask(half2_from_bits(argmax[m][i]), position_bytes);
    for (int n = 0; n < 2; n++) mma_m16n8k16(sum[m][n], selected, taps[n]);
  }
}

/* Stores the sums of a warp in a row of gradients. channel_of(tile, half): the channel of the lane's row of a tile, in its first
 * or second eight rows. Returns whether the sums of the biases are finite; if they are, every gradient was finite. */
template <int TILES, class ChannelOf> static __device__ __forceinline__ bool store_sums(const float sum[TILES][2][4],
                                                                                        float row[RL_CONV1_PARAMETERS],
                                                                                        ChannelOf channel_of) {
  const int lane = threadIdx.x % 32;
  bool finite = true;
  for (int m = 0; m < TILES; m++)
    for (int half = 0; half < 2; half++) {
      const int channel = channel_of(m, half);
      const float bias = __shfl_sync(0xffffffffu, sum[m][1][half * 2 + 1], lane / 4 * 4);
      for (int i = 0; i < 2; i++)
        row[channel * TAPS + lane % 4 * 2 + i] = fmaf(sum[m][0][half * 2 + i], PIXEL_SLOPE, PIXEL_INTERCEPT * bias);
      if (lane % 4 == 0) {
        row[channel * TAPS + 8] = fmaf(sum[m][1][half * 2], PIXEL_SLOPE, PIXEL_INTERCEPT * bias);
        row[RL_CONV1_CHANNELS * TAPS + channel] = bias;
      }
      finite &= isfinite(bias);
    }
  return finite;
}

#endif
