/* How well each level of memory is used. */
#include "analyze/rules_tables.h"

#define SECTOR "32" /* bytes */
#define INSTRUCTIONS \
  { "instructions", "smsp__inst_executed.sum" }

/* Of each sector that an access moves only part is used. One sector for a whole warp is as good as it gets. */
#define PATTERN(op, what)                                                                                                    \
  {                                                                                                                          \
    .id = "uncoalesced_" #op, .version = 1, .section = "MemoryWorkloadAnalysis_Tables",                                      \
    .title = "Global " what " are not coalesced",                                                                            \
    .inputs = {{"used", "smsp__sass_average_data_bytes_per_sector_mem_global_op_" #op ".ratio"},                             \
               {"sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_" #op ".sum"},                                           \
               {"requests", "l1tex__t_requests_pipe_lsu_mem_global_op_" #op ".sum"},                                         \
               INSTRUCTIONS,                                                                                                 \
               RL_MEMORY_PCT},                                                                                               \
    .when = "requests >= 0.005 * instructions && sectors >= 2 * requests && used < 24",                                      \
    .speedup = "memory * (1 - used / " SECTOR ")", .scope = RL_SPEEDUP_GLOBAL, .kind = RL_FINDING_OPTIMIZATION,              \
    .message = "Global " what " use {used} of the " SECTOR                                                                   \
               " bytes of a sector, with {sectors / requests} sectors for each "                                             \
               "request of a warp. Let neighbouring threads touch neighbouring addresses: change the layout, or go through " \
               "shared memory."                                                                                              \
  }

#define CONFLICTS(op, what)                                                                                                   \
  {                                                                                                                           \
    .id = "bank_conflicts_" #op, .version = 1, .section = "MemoryWorkloadAnalysis_Tables",                                    \
    .title = "Shared " what " conflict on banks",                                                                             \
    .inputs = {{"conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_" #op ".sum"},                                \
               {"wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" #op ".sum"},                                   \
               {"requests", "smsp__sass_inst_executed_op_shared_" #op ".sum"},                                                \
               INSTRUCTIONS,                                                                                                  \
               {"pipe", "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"}},                                \
    .when = "requests >= 0.005 * instructions && conflicts >= 0.1 * wavefronts && conflicts >= 0.1 * requests",               \
    .speedup = "pipe * conflicts / wavefronts", .scope = RL_SPEEDUP_GLOBAL, .kind = RL_FINDING_OPTIMIZATION,                  \
    .message = "{requests:0} shared " what                                                                                    \
               " take {wavefronts:0} wavefronts, {wavefronts / requests} each; {conflicts:0} of "                             \
               "them ({100 * conflicts / wavefronts:0}%) only because threads want different words of one bank. Pad rows by " \
               "one word, or permute the columns."                                                                            \
  }

const rl_rule rl_rules_memory[] = {
    PATTERN(ld, "loads"),
    PATTERN(st, "stores"),
    {.id = "l2_sectors_excess",
     .version = 1,
     .section = "SourceCounters",
     .title = "More L2 sectors than needed",
     .inputs = {{"sectors", "memory_l2_theoretical_sectors_global"},
                {"ideal", "memory_l2_theoretical_sectors_global_ideal"},
                RL_MEMORY_PCT},
     .terms = {{"excess", "sectors - ideal"}},
     .when = "excess >= 0.05 * sectors && excess > 0",
     .speedup = "memory * excess / sectors",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "{excess:0} of {sectors:0} sectors ({100 * excess / sectors:0}%) that global accesses ask of L2 would not be "
                "needed if the threads of a warp touched as few sectors as their data has. The per-instruction counts show "
                "which accesses cause them."},
    {.id = "dram_sector_use",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "DRAM fetches bytes that nobody uses",
     .inputs = {{"used", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"},
                {"missed", "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum"},
                {"asked", "lts__t_sectors_srcunit_tex_op_read.sum"},
                RL_DRAM_PCT},
     .terms = {{"waste", "100 * (1 - used * min(missed, asked) / (" SECTOR " * missed))"}},
     .when = "missed >= 0.1 * asked && waste >= 5 && dram >= 10",
     .speedup = "dram * waste / 100",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "Loads use {used} of the " SECTOR " bytes of a sector; {asked:0} sectors are asked of L2 and {missed:0} fetched "
                "from DRAM for them, two at a time where one is missing. So {waste:0}% of what DRAM delivers is bytes that "
                "nobody uses. A stride between threads does that: change the layout."},
    {.id = "traffic_above_model",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "More DRAM traffic than the work needs",
     .inputs = {{"read", "dram__bytes_read.sum"}, {"written", "dram__bytes_write.sum"}, {"model", "model__bytes"}, RL_DRAM_PCT},
     .terms = {{"moved", "read + written"}},
     .when = "model > 0 && moved >= 1.25 * model && dram >= 30",
     .speedup = "dram * (1 - model / moved)",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "DRAM moved {moved / 1000000} MB where the work needs {model / 1000000} MB: {moved / model:2} times as much. "
                "Data is fetched more than once, or sectors are used in part: block the loops so that it is used while it is "
                "in a cache."},
    CONFLICTS(ld, "loads"),
    CONFLICTS(st, "stores"),
    {.id = "l1_hit_low",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "L1 misses what L2 has",
     .inputs = {{"sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
                {"hits", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"},
                {"l2_asked", "lts__t_sectors_srcunit_tex_op_read.sum"},
                {"l2_hits", "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"},
                {"l2", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"}},
     .when = "sectors > 0 && hits < 0.5 * sectors && l2_hits >= 0.5 * l2_asked && l2 >= 40",
     .kind = RL_FINDING_WARNING,
     .message = "{100 * hits / sectors:0}% of the loaded sectors are found in L1, but {100 * l2_hits / l2_asked:0}% of what is "
                "asked of L2 is there: data is used again, too late for L1, and L2 works at {l2}% of its peak. Smaller tiles "
                "for each block, or shared memory, keep it near."},
    {.id = "l2_hit_low",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "L2 misses most of what is read",
     .inputs = {{"asked", "lts__t_sectors_srcunit_tex_op_read.sum"},
                {"hits", "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"},
                RL_DRAM_PCT},
     .when = "asked > 0 && hits < 0.5 * asked && dram >= 50",
     .kind = RL_FINDING_INFO,
     .message = "{100 * hits / asked:0}% of the sectors that are read from L2 are found there, and DRAM works at {dram}%. That "
                "is right for a stream that uses each byte once. If data is used again, let blocks that share it run at the "
                "same time, and in an order that fits L2."},
    {.id = "local_memory",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "Registers spill, or arrays lie in local memory",
     .inputs = {{"loads", "smsp__sass_inst_executed_op_local_ld.sum"},
                {"stores", "smsp__sass_inst_executed_op_local_st.sum"},
                INSTRUCTIONS,
                {"registers", "launch__registers_per_thread"}},
     .terms = {{"local", "loads + stores"}},
     .when = "local >= 0.01 * instructions && local > 0",
     .speedup = "100 * local / instructions",
     .scope = RL_SPEEDUP_LOCAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "{loads:0} loads and {stores:0} stores of local memory are {100 * local / instructions}% of the instructions, "
                "with {registers:0} registers a thread. Give a thread more registers, shorten live ranges, and index small "
                "arrays by constants (unroll) so that they stay in registers."},
    {.id = "l2_compression",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Chart",
     .title = "L2 compression is tried in vain",
     .inputs = {{"success", "lts__average_gcomp_input_sector_success_rate.pct"}},
     .when = "success > 0 && success < 50",
     .kind = RL_FINDING_WARNING,
     .message = "The memory is allocated as compressible, but only {success}% of the sectors that went through the compressor "
                "became smaller. Allocate data that does not compress as ordinary memory."},
    {NULL},
};
