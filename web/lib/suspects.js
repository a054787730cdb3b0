// Notes about times that are faster than their floor, or were measured while the device was throttled.

/** Returns a note for each group of times of which some are suspect, with the reason of the first, and then one for each likely
 * cause. groups: [{run, name, times}]; name: what the times are, in plural. */
export function suspectNotes(groups) {
  const marked = groups.map((group) => ({ ...group, suspects: group.times.filter(({ suspect }) => suspect) }))
    .filter(({ suspects }) => suspects.length > 0);
  const causes = new Set(marked.map(({ run }) => run.summary.suspect_cause).filter(Boolean));
  return [...marked.map(({ run, name, times, suspects }) => `${run.variant}, ${suspects.length} of ${times.length} ${name} are \
suspect: ${suspects[0].suspect_reason}`), ...causes].map((text) => ({ text, bad: true }));
}

/** Shortens the reason for a missing ratio, "fp32 is suspect: 6.2 s is faster than …", because a note has the rest. */
export const withoutComputation = (reason) => reason.replace(/^(.+? is suspect): .*/s, '$1');
