#include "worker/cupti/metrics.h"

const rl_metric rl_metrics[] = {
    {"gpu__time_duration.sum", "ns", "time on the device under replay with cold caches: turns the counts below into rates"},
    {"sm__cycles_elapsed.avg.per_second", "Hz", "SM clock while it ran: percentages of peak refer to it"},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "busiest unit of the SMs against its peak"},
    {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "%", "busiest part of the memory path against its peak"},
    {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", "device memory against its peak"},
    {"dram__bytes.sum", "byte", "traffic with device memory: the roofline's denominator"},
    {"dram__bytes_read.sum", "byte", "of that, read"},
    {"dram__bytes_write.sum", "byte", "of that, written; what stays dirty in L2 is not in it"},
    {"dram__bytes.sum.per_second", "byte/s", "bandwidth of device memory"},
    {"dram__bytes_read.sum.per_second", "byte/s", "of that, reading"},
    {"dram__bytes_write.sum.per_second", "byte/s", "of that, writing"},
    {"l1tex__t_sector_hit_rate.pct", "%", "sectors found in L1"},
    {"lts__t_sector_hit_rate.pct", "%", "sectors found in L2"},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", "%", "achieved occupancy"},
    {"sm__inst_executed.avg.per_cycle_active", "1/cycle", "instructions of a warp per cycle and SM (IPC)"},
    {"smsp__inst_executed.sum", "1", "instructions of a warp: what the program determines exactly"},
    {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%", "tensor cores busy; HFMA2.MMA, by which compilers load constants, counts as well"},
};
const size_t rl_metric_count = sizeof rl_metrics / sizeof *rl_metrics;
