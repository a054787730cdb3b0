/* Computes Nsight Compute's metrics device__attribute_* from attributes of the driver and cudaDeviceProp. */
#ifndef RL_CUPTI_DEVICE_ATTRIBUTES_H
#define RL_CUPTI_DEVICE_ATTRIBUTES_H

/* Returns the metric's value. If it is unknown, returns NAN and sets *reason to a static string. */
double rl_device_attribute(int device_index, const char *metric, const char **reason);

#endif
