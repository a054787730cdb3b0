// Names of the classes of a trace's time, by the API's name of the class.
export const classNames = {
  compute: 'Kernels', compute_and_copy: 'Kernels and copies', copy: 'Copies alone',
  idle_host_work: 'Idle: the host works between launches', idle_launch_latency: 'Idle: a launch call is in progress',
  idle_first_launch: 'Idle: the driver loads code, or a first launch is slow',
  idle_synchronization: 'Idle: the host synchronises', idle_copy: 'Idle: a copy starts',
  idle_graph: 'Idle: between graph launches', idle_device_latency: 'Idle: the device starts queued work',
  idle_profiler: 'Idle: the profiler works', idle_unknown: 'Idle: cause unknown',
};

/** Short names of the idle classes, for marks in the timeline. */
export const idleTitles = {
  idle_host_work: 'host works', idle_launch_latency: 'launch call', idle_first_launch: 'first launch',
  idle_synchronization: 'host synchronises', idle_copy: 'copy starts', idle_graph: 'between graphs',
  idle_device_latency: 'device starts work', idle_profiler: 'profiler', idle_unknown: 'cause unknown',
};
