// Marks of idle intervals with their causes in the timeline.
import { idleTitles } from '/lib/time_class_names.js';

/** Returns the longest idle intervals of the classes of time, by start: {class, title, from, to, interval}. */
export const marksOf = (classes) => (classes ?? []).flatMap((item) => (item.longest ?? []).map((interval) => (
  { class: item.class, title: idleTitles[item.class] ?? item.class, from: interval.start_ns, to: interval.end_ns, interval })))
  .sort((a, b) => a.from - b.from);
