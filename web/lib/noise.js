// The noise band of a history: the range in which the next value is expected, from the runs before a point.

const MAX_RUNS = 10, MIN_RUNS = 3; // number of runs before a point from which its band is computed
const DEVIATIONS = 3;
const MAD_TO_SIGMA = 1.4826; // standard deviation / median absolute deviation, of a normal distribution

export const BAND_WORDS = `band: median ± ${DEVIATIONS} × ${MAD_TO_SIGMA} × MAD of up to ${MAX_RUNS} earlier runs`;

function median(values) {
  const sorted = [...values].sort((a, b) => a - b), middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Returns [low, high] around the median of the values, or null for fewer than MIN_RUNS. */
export function bandOf(values) {
  if (values.length < MIN_RUNS) return null;
  const centre = median(values);
  const width = DEVIATIONS * MAD_TO_SIGMA * median(values.map((value) => Math.abs(value - centre)));
  return [centre - width, centre + width];
}

/** Adds to each point its band, from the earlier points that are not suspect, and whether the point is outside of it. */
export function withNoise(points) {
  const before = [];
  return points.map((point) => {
    const band = bandOf(before);
    if (!point.suspect) before.push(point.value);
    if (before.length > MAX_RUNS) before.shift();
    return { ...point, band, isOutside: band !== null && (point.value < band[0] || point.value > band[1]) };
  });
}
