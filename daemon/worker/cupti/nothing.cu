/* Code to load, for the sake of loading. */
extern "C" __global__ void rl_nothing() {}
