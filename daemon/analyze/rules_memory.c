/* Rules about the memory hierarchy: coalescing, bank conflicts, hit rates, DRAM traffic. The input used_bytes is in bytes per
 * sector; pipe, shared_pipe, memory, dram and l2 are percentages of the sustained peak. */
#include "analyze/rules_tables.h"

#define SECTOR "32" /* bytes */
#define INSTRUCTIONS \
  { "instructions", "smsp__inst_executed.sum" }

/* How busy L2 or DRAM is: the busier of both. `memory` is the busiest unit of all, also of L1 and shared memory. It limits l2,
 * which also counts the eviction of what previous kernels left in L2. */
#define L2_OR_DRAM_PCT "min(memory, max(dram, l2))"
#define L2_OR_DRAM_INPUTS \
  RL_INPUT_MEMORY_PCT, RL_INPUT_DRAM_PCT, { "l2", "lts__throughput.avg.pct_of_peak_sustained_elapsed" }
/* All sectors that L1 reads from L2 and writes to it, also those of the TMA and of textures. */
#define L2_SECTORS \
  { "l2_sectors", "lts__t_sectors_srcunit_tex.sum" }
/* How busy L1's data stage is with accesses to global and local memory. */
#define L1_PCT "(pipe - shared_pipe)"
#define SHARED_PIPE \
  { "shared_pipe", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed" }
#define L1_INPUTS {"pipe", "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"}, SHARED_PIPE

/* One rule for loads and one for stores: accesses use only part of each sector that they transfer. Requests of one sector (such
 * as a broadcast) are excluded, because they cannot be improved. The bytes fit into `packed` sectors. If L1 hits leave fewer
 * sectors than that to L2, only L1 has too much work. */
#define UNCOALESCED_RULE(op, accesses, other_op, l2_metric, sass)                                                                \
  {                                                                                                                              \
    .id = "uncoalesced_" #op, .version = 4, .section = "MemoryWorkloadAnalysis_Tables",                                          \
    .title = "Global " accesses " are not coalesced", .cause = RL_CAUSE_COALESCING,                                              \
    .inputs = {{"used_bytes", "smsp__sass_average_data_bytes_per_sector_mem_global_op_" #op ".ratio"},                           \
               {"sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_" #op ".sum"},                                               \
               {"others", "l1tex__t_sectors_pipe_lsu_mem_global_op_" other_op ".sum"},                                           \
               {"reached_l2", l2_metric},                                                                                        \
               {"requests", "l1tex__t_requests_pipe_lsu_mem_global_op_" #op ".sum"},                                             \
               INSTRUCTIONS,                                                                                                     \
               L2_SECTORS,                                                                                                       \
               L2_OR_DRAM_INPUTS,                                                                                                \
               L1_INPUTS},                                                                                                       \
    .terms = {{"packed", "sectors * used_bytes / " SECTOR},                                                                      \
              {"saved_in_l2", L2_OR_DRAM_PCT " * (min(sectors, reached_l2) - packed) / l2_sectors"},                             \
              {"saved_in_l1", L1_PCT " * (sectors - packed) / (sectors + others)"}},                                             \
    .condition = "requests >= 0.005 * instructions && sectors >= 2 * requests && used_bytes > 0 && used_bytes < 24",             \
    .speedup = "max(saved_in_l2, saved_in_l1)", .scope = RL_SPEEDUP_GLOBAL, .kind = RL_FINDING_OPTIMIZATION, .opcodes = sass,    \
    .message = "Global " accesses " use {used_bytes} of the " SECTOR                                                             \
               " bytes of each sector, and each request of a warp needs {sectors / requests} "                                   \
               "sectors. |Let neighbouring threads access neighbouring addresses: change the data layout, or go through shared " \
               "memory."                                                                                                         \
  }

/* One rule for loads and one for stores of shared memory. Their estimates add up to at most the busy time of the pipeline. */
#define BANK_CONFLICTS_RULE(op, accesses, sass)                                                                                  \
  {                                                                                                                              \
    .id = "bank_conflicts_" #op, .version = 3, .section = "MemoryWorkloadAnalysis_Tables",                                       \
    .title = "Shared-memory " accesses " have bank conflicts", .cause = RL_CAUSE_BANK_CONFLICTS,                                 \
    .inputs = {{"conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_" #op ".sum"},                                   \
               {"wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" #op ".sum"},                                      \
               {"shared", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},                                                     \
               {"requests", "smsp__sass_inst_executed_op_shared_" #op ".sum"},                                                   \
               INSTRUCTIONS,                                                                                                     \
               SHARED_PIPE},                                                                                                     \
    .condition = "requests >= 0.005 * instructions && conflicts >= 0.1 * wavefronts && conflicts >= 0.1 * requests",             \
    .speedup = "shared_pipe * conflicts / shared", .scope = RL_SPEEDUP_GLOBAL, .kind = RL_FINDING_OPTIMIZATION, .opcodes = sass, \
    .message =                                                                                                                   \
        "{requests:0} shared-memory " accesses                                                                                   \
        " take {wavefronts:0} wavefronts, {wavefronts / requests} each. {conflicts:0} of these "                                 \
        "wavefronts ({100 * conflicts / wavefronts:0} %) are due to threads that access different words of one bank. |Pad rows " \
        "by one word, or permute the columns."                                                                                   \
  }

#define GLOBAL_ATOMICS_INPUTS                                                                                   \
  RL_INPUT_ATOMIC_UNIT_PCT, {"average", "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed"}, \
      {"atomics", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"}, {                                       \
    "reductions", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"                                            \
  }
#define GLOBAL_ATOMICS_OPCODES "ATOM ATOMG RED REDG"
#define COMBINE_UPDATES "Combine values in registers, in a warp (__reduce_add_sync) or in shared memory first"

const rl_rule rl_rules_memory[] = {
    UNCOALESCED_RULE(ld, "loads", "st", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum", "LDG"),
    UNCOALESCED_RULE(st, "stores", "ld", "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum", "STG"),
    {.id = "l2_sectors_excess",
     .version = 2,
     .section = "SourceCounters",
     .title = "Global accesses request more L2 sectors than needed",
     .cause = RL_CAUSE_COALESCING,
     .inputs = {{"sectors", "memory_l2_theoretical_sectors_global"},
                {"ideal", "memory_l2_theoretical_sectors_global_ideal"},
                {"local", "memory_l2_theoretical_sectors_local"},
                L2_SECTORS,
                L2_OR_DRAM_INPUTS},
     /* The theoretical counts include accesses that hit in L1. */
     .terms = {{"excess", "min(sectors, l2_sectors - local) - ideal"}},
     .condition = "excess >= 0.05 * l2_sectors && excess > 0",
     .speedup = L2_OR_DRAM_PCT " * excess / l2_sectors",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message =
         "{excess:0} of the {l2_sectors:0} sectors ({100 * excess / l2_sectors:0} %) that L1 reads from L2 or writes to it "
         "would not be needed if each warp's global accesses were packed into the fewest sectors that hold the data. |The "
         "per-instruction counts show which accesses cause them."},
    {.id = "dram_sector_use",
     .version = 3,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "DRAM reads bytes that no thread uses",
     .cause = RL_CAUSE_COALESCING,
     .inputs = {{"used_bytes", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"},
                {"loaded", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
                {"loaded_from_l2", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_miss.sum"},
                {"missed", "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum"},
                {"requested", "lts__t_sectors_srcunit_tex_op_read.sum"},
                RL_INPUT_DRAM_PCT},
     /* The most bytes that can be used: loads use each of their bytes once, and the TMA, textures and local memory whole
      * sectors. A sector that is loaded repeatedly, from L1 or L2, can be used completely. */
     .terms = {{"other_bytes", SECTOR " * max(0, requested - loaded_from_l2)"},
               {"most_bytes", "min(loaded * used_bytes + other_bytes, " SECTOR " * min(requested, missed))"},
               {"waste", "100 * (1 - most_bytes / (" SECTOR " * missed))"}},
     .condition = "used_bytes > 0 && loaded >= 0.5 * requested && missed >= 0.1 * requested && waste >= 5 && dram >= 10",
     .speedup = "dram * waste / 100",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "Loads use {used_bytes} of the " SECTOR
                " bytes of each sector. For the {requested:0} sectors that L1 requested from L2, {missed:0} were read from DRAM "
                "(a miss can read two), so at least {waste:0} % of the bytes that DRAM delivers are not used. A stride between "
                "threads causes this. |Change the data layout."},
    {.id = "traffic_above_model",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "More DRAM traffic than the workload needs",
     .cause = RL_CAUSE_TRAFFIC,
     .inputs =
         {{"read", "dram__bytes_read.sum"}, {"written", "dram__bytes_write.sum"}, {"needed", "model__bytes"}, RL_INPUT_DRAM_PCT},
     .terms = {{"moved", "read + written"}},
     .condition = "needed > 0 && moved >= 1.25 * needed && dram >= 30",
     .speedup = "dram * (1 - needed / moved)",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .message = "DRAM moved {moved / 1000000} MB; the workload needs {needed / 1000000} MB. That is {moved / needed:2} times as "
                "much. Data is fetched more than once, or only part of each sector is used. |Block the loops so that data is "
                "reused while it is cached."},
    BANK_CONFLICTS_RULE(ld, "loads", "LDS LDSM"),
    BANK_CONFLICTS_RULE(st, "stores", "STS STSM"),
    {.id = "l1_hit_low",
     .version = 2,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "L1 misses data that L2 holds",
     .cause = RL_CAUSE_CACHE_REUSE,
     .inputs = {{"sectors", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
                {"hits", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum"},
                {"l2_sectors", "lts__t_sectors_srcunit_tex_op_read.sum"},
                {"l2_hits", "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"},
                {"l2", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"}},
     .condition = "sectors > 0 && hits < 0.5 * sectors && l2_hits >= 0.5 * l2_sectors && l2 >= 40",
     .kind = RL_FINDING_WARNING,
     .message = "{100 * hits / sectors:0} % of the loaded sectors hit in L1, but {100 * l2_hits / l2_sectors:0} % of the sectors "
                "read from L2 hit there, and L2 works at {l2} % of its peak: several multiprocessors load the same data, or one "
                "loads it again after L1 has evicted it. |For data that blocks share, use larger tiles, or clusters with "
                "multicast. For data that one block reuses, use a smaller working set per block, or shared memory."},
    {.id = "l2_hit_low",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "Most reads miss in L2",
     .cause = RL_CAUSE_CACHE_REUSE,
     .inputs = {{"sectors", "lts__t_sectors_srcunit_tex_op_read.sum"},
                {"hits", "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum"},
                RL_INPUT_DRAM_PCT},
     .condition = "sectors > 0 && hits < 0.5 * sectors && dram >= 50",
     .kind = RL_FINDING_INFO,
     .message = "{100 * hits / sectors:0} % of the sectors read from L2 hit there, and DRAM works at {dram} % of its peak. This "
                "is expected of a stream that uses each byte once. |If data is reused, run the blocks that share it at the same "
                "time, in an order whose working set fits L2."},
    {.id = "local_memory",
     .version = 3,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "Registers spill, or arrays are in local memory",
     .cause = RL_CAUSE_LOCAL_MEMORY,
     .inputs = {{"loads", "smsp__sass_inst_executed_op_local_ld.sum"},
                {"stores", "smsp__sass_inst_executed_op_local_st.sum"},
                INSTRUCTIONS,
                {"registers", "launch__registers_per_thread"},
                {"local_ld", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"},
                {"local_ld_missed", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_miss.sum"},
                {"local_st", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"},
                {"global_ld", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"},
                {"global_st", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"},
                L2_SECTORS,
                L2_OR_DRAM_INPUTS,
                L1_INPUTS},
     .terms = {{"local", "loads + stores"},
               {"share", "(local_ld + local_st) / (local_ld + local_st + global_ld + global_st)"},
               {"l2_share", "min(1, (local_ld_missed + local_st) / l2_sectors)"}}, /* L1 writes through */
     .condition = "local >= 0.01 * instructions && local > 0",
     .speedup = "max(" L2_OR_DRAM_PCT " * l2_share, " L1_PCT " * share)",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .opcodes = "LDL STL",
     .message = "{loads:0} loads and {stores:0} stores of local memory are {100 * local / instructions} % of all instructions, "
                "and {100 * share:0} % of the sectors that L1 is asked for; each thread has {registers:0} registers. |Allow more "
                "registers per thread, shorten live ranges, and index small arrays with constants (unroll loops) so that they "
                "stay in registers."},
    {.id = "register_spills",
     .version = 1,
     .section = "SourceCounters",
     .title = "Registers spill",
     .cause = RL_CAUSE_LOCAL_MEMORY,
     .inputs = {{"bytes", "code__spilled_bytes"},
                {"loads", "sass__inst_executed_local_loads"},
                {"stores", "sass__inst_executed_local_stores"},
                INSTRUCTIONS,
                {"registers", "launch__registers_per_thread"}},
     .condition = "bytes > 0 && loads + stores >= 0.01 * instructions",
     .kind = RL_FINDING_WARNING,
     .opcodes = "LDL STL",
     .message = "Threads move {bytes / 1000000:2} MB between registers and the stack: with {registers:0} registers, the compiler "
                "cannot keep all values. |The instructions LDL and STL show in which lines. Allow more registers "
                "(__launch_bounds__, -maxrregcount), or keep fewer values alive at a time."},
    {.id = "global_atomics",
     .version = 2,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "Atomic operations on few addresses",
     .cause = RL_CAUSE_GLOBAL_ATOMICS,
     .inputs = {GLOBAL_ATOMICS_INPUTS},
     .condition = "atomic >= " RL_TEXT(RL_BUSY_PCT) " && average < 0.5 * atomic",
     .speedup = "atomic",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .opcodes = GLOBAL_ATOMICS_OPCODES,
     .message = "{atomics + reductions:0} atomic operations of warps keep the atomic unit of one L2 slice busy {atomic} % of the "
                "time; the average slice is busy {average} %. Operations on one address wait for each other. |" COMBINE_UPDATES
                ", or use several copies of the address."},
    /* Most slices have atomic operations, so copies of one address would help little. */
    {.id = "global_atomics_spread",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "Atomic operations keep many L2 slices busy",
     .cause = RL_CAUSE_ATOMIC_THROUGHPUT,
     .inputs = {GLOBAL_ATOMICS_INPUTS},
     .condition = "atomic >= " RL_TEXT(RL_BUSY_PCT) " && average >= 0.5 * atomic",
     .speedup = "atomic",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .opcodes = GLOBAL_ATOMICS_OPCODES,
     .message =
         "{atomics + reductions:0} atomic operations of warps keep the atomic units of L2 busy: {average} % of the time in "
         "the average slice, {atomic} % in the busiest one. |" COMBINE_UPDATES "."},
    {.id = "shared_atomics",
     .version = 2,
     .section = "MemoryWorkloadAnalysis_Tables",
     .title = "Atomic operations in shared memory conflict",
     .cause = RL_CAUSE_SHARED_ATOMICS,
     .inputs = {{"atomics", "smsp__inst_executed_op_shared_atom.sum"},
                {"all_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"},
                {"ld_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"},
                {"st_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"},
                {"copy_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum"},
                {"shared", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"},
                {"ld", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"},
                {"st", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"},
                INSTRUCTIONS,
                SHARED_PIPE},
     .terms = {{"conflicts", "all_conflicts - ld_conflicts - st_conflicts - copy_conflicts"}},
     .condition = "atomics >= 0.005 * instructions && conflicts >= 0.25 * atomics && conflicts > 0",
     .speedup = "shared_pipe * (shared - ld - st) / shared",
     .scope = RL_SPEEDUP_GLOBAL,
     .kind = RL_FINDING_OPTIMIZATION,
     .opcodes = "ATOMS",
     .message =
         "{atomics:0} atomic operations of warps in shared memory need {conflicts:0} further wavefronts, because threads address "
         "one word or one bank. |Combine values in registers or in the warp first, or give each warp its own copy of the words."},
    {.id = "l2_compression",
     .version = 1,
     .section = "MemoryWorkloadAnalysis_Chart",
     .title = "L2 compression rarely succeeds",
     .cause = RL_CAUSE_COMPRESSION,
     .inputs = {{"success", "lts__average_gcomp_input_sector_success_rate.pct"}},
     .condition = "success > 0 && success < 50",
     .kind = RL_FINDING_WARNING,
     .message = "The memory is allocated as compressible, but only {success} % of the sectors that the compressor processed "
                "became smaller. |Allocate data that does not compress as ordinary memory."},
    {NULL},
};
