/* device__attribute_*: what the driver says of the device, under ncu's names. */
#ifndef RL_CUPTI_ATTRIBUTES_H
#define RL_CUPTI_ATTRIBUTES_H

/* NAN with *reason, a text that stays. */
double rl_attribute_of_device(int device_index, const char *metric, const char **reason);

#endif
