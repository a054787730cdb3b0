// Which change of a metric is better. Metrics without a direction (registers, grid, utilization) are neither better nor worse.

/* Patterns of a row's metric or a measurement's name. */
const lowerIsBetter = [
  /^gpu__time_duration/, /cycles_elapsed\.(max|avg|sum)$/, /warps_issue_stalled_(?!selected)/, /average_warp_latency/,
  /bank_conflicts/, /_excessive/, /lookup_miss/, /spill/, /local_bytes/, /divergent/, /(^|_)(us|ms)(_median|_min|_max)?$/,
  /_memory_bytes$/, /^peak_.*_bytes$/, /^relative_error$/, /^perturbation_ratio$/, /^launch_gap_ratio$/, /_loss$/,
];
const higherIsBetter = [
  /hit_rate/, /branch_targets_threads_uniform/, /inst_(executed|issued)\.avg\.per_cycle/,
  /thread_inst_executed.*_per_inst_executed/, /bytes_per_sector/,
  /^(images|achieved_bytes|.*_operations|.*_bytes)_per_s$/, /accuracy/, /^share_.*_ratio$/,
];

/** Returns "lower", "higher" or null: which values of the metric are better. */
function betterDirection(metric) {
  if (!metric) return null;
  if (higherIsBetter.some((pattern) => pattern.test(metric))) return 'higher';
  return lowerIsBetter.some((pattern) => pattern.test(metric)) ? 'lower' : null;
}

const MIN_CHANGE = 0.01; // smaller relative changes count as "same"

/** Returns "better", "worse", "same" or null (no direction, or unknown) for a relative change of the metric. */
export function judge(metric, relative) {
  const direction = betterDirection(metric);
  if (direction === null || relative === null || relative === undefined) return null;
  if (Math.abs(relative) < MIN_CHANGE) return 'same';
  return (relative < 0) === (direction === 'lower') ? 'better' : 'worse';
}
