/* ncu's metrics device__attribute_*, from the driver and the device's properties. */
#ifndef RL_CUPTI_DEVICE_ATTRIBUTES_H
#define RL_CUPTI_DEVICE_ATTRIBUTES_H

/* Returns the metric's value, or NAN with *reason, a static string. */
double rl_device_attribute(int device_index, const char *metric, const char **reason);

#endif
