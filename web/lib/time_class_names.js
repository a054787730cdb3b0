// The classes of a trace's time, as the API names them.
export const classNames = {
  compute: 'Kernels', compute_and_copy: 'Kernels and copies', copy: 'Copies alone',
  idle_host_work: 'Idle: the host works between launches', idle_launch_latency: 'Idle: a launch call is in progress',
  idle_first_launch: 'Idle: the driver loads code, or a first launch is slow',
  idle_synchronization: 'Idle: the host synchronises', idle_copy: 'Idle: a copy starts',
  idle_graph: 'Idle: between graph launches', idle_device_latency: 'Idle: the device starts queued work',
  idle_profiler: 'Idle: the profiler works', idle_unknown: 'Idle: cause unknown',
};
