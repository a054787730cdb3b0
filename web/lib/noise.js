// The noise band of a history: what the runs before a point would let it be.

const WINDOW = 10, LEAST = 3; // runs before a point: at most, and the fewest that give a band
const DEVIATIONS = 3;
const NORMAL = 1.4826; // median absolute deviation -> standard deviation of a normal distribution

export const BAND_WORDS = `band: median ± ${DEVIATIONS} × ${NORMAL} × MAD of up to ${WINDOW} runs before`;

function median(values) {
  const sorted = [...values].sort((a, b) => a - b), middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Returns [low, high] around the median of the values, or null for fewer than LEAST. */
export function bandOf(values) {
  if (values.length < LEAST) return null;
  const centre = median(values);
  const width = DEVIATIONS * NORMAL * median(values.map((value) => Math.abs(value - centre)));
  return [centre - width, centre + width];
}

/** Adds to each point the band of the points before it, without suspect ones, and whether it is outside. */
export function withNoise(points) {
  const before = [];
  return points.map((point) => {
    const band = bandOf(before);
    if (!point.suspect) before.push(point.value);
    if (before.length > WINDOW) before.shift();
    return { ...point, band, isOutside: band !== null && (point.value < band[0] || point.value > band[1]) };
  });
}
