/* Tests each rule on both sides of its threshold. A case has metrics with which the rule must have a finding, whose estimated
 * speedup was calculated by hand, and a change of one metric with which the rule must have no finding. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/catalogue.h"
#include "section_bits.h"
#include "analyze/rules.h"

typedef struct rule_case {
  const char *rule;
  const char *triggering; /* "name=value ...": every input of the rule */
  double speedup_pct;     /* NAN: none */
  const char *change;     /* the new value of one input with which the rule has no finding */
} rule_case;

#define SHARED_ATOMICS                                                                                            \
  "atomics=100 all_conflicts=1275 ld_conflicts=1000 st_conflicts=200 copy_conflicts=50 shared=1000 ld=150 st=50 " \
  "instructions=1000 "                                                                                            \
  "shared_pipe=80"
#define UNCOALESCED "requests=100 instructions=1000 memory=90 dram=80 l2=70 pipe=30 shared_pipe=10 "
#define DRAM_SECTORS "used_bytes=8 loaded=1000 loaded_from_l2=1000 dram=40 "
#define LOCAL_MEMORY                                                                                            \
  "loads=100 stores=100 instructions=1000 registers=255 local_ld=300 local_st=300 global_ld=100 global_st=100 " \
  "dram=10 l2=80 pipe=30 shared_pipe=10 "
#define L2_SLICES "average_lookups=40 sent=30 average_sent=20 received=10 average_received=5 atomic=59 "
#define UNFUSED "compute=90 memory=59.9"
#define LONG_SCOREBOARD "stalled=6 latency=20 issued=0.5 compute=40 memory=20"

#define STALL_CASE(reason, change) \
  { "stall_" reason, "stalled=6 latency=20 issued=0.5 compute=40 memory=20", 30, change }

static const rule_case cases[] = {
    {"bound_memory", "dram=75 compute=40 memory=75", NAN, "memory=59.9"},
    {"bound_memory", "dram=1 compute=70 memory=80", NAN, "compute=70.1"},
    {"bound_compute", "compute=74.04 memory=46.14", NAN, "compute=59.9"},
    {"bound_balanced", "compute=69.9 memory=60", NAN, "compute=70"},
    {"bound_balanced", "compute=55 memory=60", NAN, "memory=59.9"},
    {"near_peak", "compute=75 memory=20", NAN, "compute=74.9"},
    {"low_utilization", "compute=59.9 memory=10", NAN, "compute=60"},
    {"dram_saturated", "dram=90 rate=4e12", NAN, "dram=74.9"},
    {"launch_too_small", "blocks=33 sms=132 dram=20", 75, "blocks=132"},
    {"launch_too_small", "blocks=88 sms=132 dram=74.9", 100.0 / 3, "dram=75"}, /* decoding reads weights at DRAM's rate */
    {"partial_wave", "blocks=132 sms=132 waves=0.125 compute=20 memory=59.9", NAN, "waves=0.9"},
    {"partial_wave", "blocks=132 sms=132 waves=0.125 compute=20 memory=59.9", NAN, "blocks=131"},
    {"partial_wave", "blocks=132 sms=132 waves=0.125 compute=20 memory=59.9", NAN, "memory=60"},
    {"tail_effect", "blocks=1056 waves=1.5", 25, "waves=1.81"},
    {"tail_effect", "blocks=1056 waves=1.5", 25, "waves=0.5"},
    {"block_not_whole_warps", "threads=48 warp_size=32 blocks=132 sms=132", 25, "threads=64"},
    {"block_not_whole_warps", "threads=1 warp_size=32 blocks=80 sms=132", 96.875, "blocks=79"},
    {"short_kernel", "duration_ns=9999", NAN, "duration_ns=10000"},
    {"launch_overhead", "duration_ns=5000 longest=800 elapsed=1000", 20, "longest=801"},
    {"launch_bound", "gap=0.2", NAN, "gap=0.19"},
    {"occupancy_registers", "theoretical=50 registers=4 shared=8 blocks=32 barriers=32 warps=8 waves=4 compute=40 memory=20", 50,
     "shared=3"},
    {"occupancy_registers", "theoretical=33.33 registers=4 shared=5 blocks=16 barriers=16 warps=12 waves=4 compute=40 memory=20",
     66.67, "theoretical=80"},
    {"occupancy_shared", "theoretical=25 registers=4 shared=2 blocks=32 barriers=32 warps=8 waves=4 compute=40 memory=20", 75,
     "shared=5"},
    {"occupancy_shared", "theoretical=12.5 registers=4 shared=1 blocks=32 barriers=32 warps=8 waves=4 compute=40 memory=20", 87.5,
     "shared=0"},
    {"occupancy_blocks", "theoretical=50 registers=64 shared=64 blocks=32 barriers=64 warps=64 waves=4 compute=40 memory=20", 50,
     "blocks=65"},
    {"occupancy_barriers", "theoretical=25 registers=16 shared=16 blocks=32 barriers=4 warps=16 waves=4 compute=40 memory=20", 75,
     "barriers=17"},
    {"occupancy_barriers", "theoretical=25 registers=16 shared=16 blocks=32 barriers=4 warps=16 waves=4 compute=40 memory=20", 75,
     "blocks=4"},
    {"occupancy_registers", "theoretical=50 registers=4 shared=8 blocks=32 barriers=32 warps=8 waves=4 compute=40 memory=20", 50,
     "compute=60"}, /* a busy unit limits the kernel */
    {"occupancy_registers", "theoretical=50 registers=4 shared=8 blocks=32 barriers=32 warps=8 waves=1 compute=40 memory=20", 50,
     "waves=0.9"}, /* the grid is the limit */
    {"occupancy_warps", "theoretical=75 registers=3 shared=9 blocks=32 barriers=32 warps=2 waves=4 compute=40 memory=20", 25,
     "warps=4"},
    {"occupancy_achieved", "theoretical=100 achieved=33.5 waves=1 compute=13.8 memory=9.9", 66.5, "achieved=80.1"},
    {"occupancy_achieved", "theoretical=100 achieved=33.5 waves=1 compute=13.8 memory=9.9", 66.5, "waves=0.9"},
    {"occupancy_achieved", "theoretical=100 achieved=33.5 waves=1 compute=40 memory=59.9", 40.1, "memory=60"},
    {"issue_slots", "issued=0.15 active=5.4 eligible=0.19 warp_slots=16 compute=14 memory=10", NAN, "issued=0.6"},
    {"issue_slots", "issued=0.15 active=5.4 eligible=0.19 warp_slots=16 compute=14 memory=10", NAN, "memory=60"},
    {"stall_long_scoreboard", LONG_SCOREBOARD " loaded=100 reads=50 writes=100", 30, "stalled=5.9"},
    {"stall_long_scoreboard", LONG_SCOREBOARD " loaded=0 reads=11 writes=100", 30, "reads=10"}, /* stores alone */
    {"stall_long_scoreboard", LONG_SCOREBOARD " loaded=100 reads=50 writes=100", 30, "memory=60"},
    {"dependent_loads", LONG_SCOREBOARD " dependent=30 loads=100", 30, "dependent=29"},
    {"dependent_loads", LONG_SCOREBOARD " dependent=30 loads=100", 30, "stalled=5.9"},
    {"shallow_cp_async", LONG_SCOREBOARD " copies=50 requests=100", 30, "copies=49"},
    {"shallow_cp_async", LONG_SCOREBOARD " copies=50 requests=100", 30, "memory=60"},
    {"shallow_tma", LONG_SCOREBOARD " copied=50 sectors=100", 30, "copied=49"},
    {"shallow_tma", LONG_SCOREBOARD " copied=50 sectors=100", 30, "memory=60"},
    {"tensor_waits_for_shared", "queued=4 loading=2 latency=20 tensor=20 shared=70", 30, "loading=1.9"},
    {"tensor_waits_for_shared", "queued=4 loading=2 latency=20 tensor=59 shared=70", 30, "tensor=60"},
    {"tensor_waits_for_shared", "queued=4 loading=2 latency=20 tensor=20 shared=10", 30, "shared=9.9"},
    STALL_CASE("short_scoreboard", "stalled=5.9"),
    STALL_CASE("mio_throttle", "stalled=5.9"),
    STALL_CASE("lg_throttle", "stalled=5.9"),
    STALL_CASE("tex_throttle", "stalled=5.9"),
    {"stall_math_pipe_throttle", "stalled=6 latency=20", NAN, "stalled=5.9"},
    STALL_CASE("barrier", "stalled=5.9"),
    STALL_CASE("membar", "stalled=5.9"),
    STALL_CASE("wait", "stalled=5.9"),
    STALL_CASE("branch_resolving", "stalled=5.9"),
    STALL_CASE("no_instruction", "stalled=5.9"),
    STALL_CASE("imc_miss", "stalled=5.9"),
    STALL_CASE("drain", "stalled=5.9"),
    STALL_CASE("sleeping", "stalled=5.9"),
    STALL_CASE("dispatch_stall", "stalled=5.9"),
    STALL_CASE("gmma", "stalled=5.9"),
    STALL_CASE("misc", "stalled=5.9"),
    {"stall_long_scoreboard", "stalled=18 latency=20 issued=0.7 compute=20 memory=20 loaded=9 reads=9 writes=0", 30,
     "issued=0.8"}, /* limited by idle slots */
    {"stall_long_scoreboard", "stalled=18 latency=20 issued=0.1 compute=20 memory=59.5 loaded=9 reads=9 writes=0", 40.5,
     "stalled=5"}, /* limited by RL_HEADROOM */
    {"stall_not_selected", "stalled=6 latency=20", NAN, "stalled=5.9"},
    {"thread_divergence", "threads=16 warp_size=32 compute=80", 40, "threads=28.1"},
    {"thread_divergence", "threads=48 warp_size=64 compute=100", 25, "threads=56.1"},
    {"predication", "threads=32 predicated_on=24 warp_size=32 issued=0.8 compute=80", 20, "predicated_on=28.1"},
    {"predication", "threads=32 predicated_on=24 warp_size=32 issued=0.7 compute=80", 17.5, "issued=0.69"},
    {"predication", "threads=32 predicated_on=24 warp_size=32 issued=0.6 compute=60", 15, "issued=0.59"},
    {"branch_divergence", "uniform=50 divergent=10 branches=20 instructions=1000", NAN, "uniform=90"},
    {"branch_divergence", "uniform=50 divergent=10 branches=20 instructions=1000", NAN, "instructions=2001"},
    {"fp64_slow_device", "fp64=50 ratio=64", 49.21875, "fp64=9.9"},
    {"fp64_slow_device", "fp64=50 ratio=64", 49.21875, "ratio=2"},
    {"fp64_dominates", "fp64=60 fma=10 tensor=0 issue=40 ratio=2", 30, "fma=60"},
    {"fp64_dominates", "fp64=60 fma=10 tensor=0 issue=40 ratio=2", 30, "fp64=59.9"},
    {"not_fused_fp32", "fused=0 additions=500 multiplications=500 peak=10000 busy=90 " UNFUSED, 45, "peak=10001"},
    {"not_fused_fp32", "fused=0 additions=500 multiplications=500 peak=10000 busy=55 compute=58 memory=59.9", 27.5,
     "memory=68"}, /* memory limits the kernel */
    {"not_fused_fp32", "fused=0 additions=500 multiplications=500 peak=10000 busy=55 compute=58 memory=67.9", 27.5,
     "compute=57.9"},
    {"not_fused_fp64", "fused=800 additions=100 multiplications=100 peak=8000 busy=50 " UNFUSED, 5, "additions=99"},
    {"not_fused_fp16", "fused=1000 additions=1000 multiplications=500 peak=16896 busy=100 " UNFUSED, 20, "multiplications=0"},
    {"tensor_unused", "fused=9000 additions=0 multiplications=0 peak=10000 tensor=90", NAN, "tensor=95"},
    {"tensor_unused", "fused=4000 additions=0 multiplications=0 peak=10000 tensor=0", NAN, "additions=1001"},
    {"tensor_unused", "fused=4000 additions=0 multiplications=0 peak=10000 tensor=0", NAN, "fused=999"},
    {"tensor_underused", "fused=0 additions=0 multiplications=0 peak=10000 tensor=25 compute=25 memory=30", 35, "tensor=60"},
    {"tensor_underused", "fused=0 additions=0 multiplications=0 peak=10000 tensor=25 compute=25 memory=30", 35, "memory=60"},
    {"tensor_underused", "fused=0 additions=0 multiplications=0 peak=10000 tensor=25 compute=25 memory=30", 35, "additions=2001"},
    {"tensor_underused", "fused=0 additions=0 multiplications=0 peak=10000 tensor=25 compute=59.9 memory=30", 35, "compute=60"},
    {"tensor_saturated", "fused=100 additions=0 multiplications=0 peak=10000 tensor=95", NAN, "fused=2001"},
    {"pipe_alu_saturated", "busy=75", NAN, "busy=74.9"},
    {"pipe_fma_saturated", "busy=75", NAN, "busy=74.9"},
    {"pipe_fp64_saturated", "busy=75", NAN, "busy=74.9"},
    {"pipe_xu_saturated", "busy=75", NAN, "busy=74.9"},
    {"pipe_lsu_saturated", "busy=75", NAN, "busy=74.9"},
    {"uncoalesced_ld", UNCOALESCED "used_bytes=4 sectors=3200 others=0 reached_l2=3200 l2_sectors=3200", 70, "used_bytes=24"},
    {"uncoalesced_ld", UNCOALESCED "used_bytes=4 sectors=3200 others=0 reached_l2=3200 l2_sectors=3200", 70, "sectors=199"},
    {"uncoalesced_ld", UNCOALESCED "used_bytes=4 sectors=3200 others=0 reached_l2=3200 l2_sectors=3200", 70,
     "used_bytes=0"}, /* cp.async alone: the bytes are not counted */
    {"uncoalesced_ld", UNCOALESCED "used_bytes=4 sectors=3200 others=0 reached_l2=3200 l2_sectors=6400", 35,
     "requests=4"}, /* the TMA moves as many sectors */
    {"uncoalesced_ld", UNCOALESCED "used_bytes=4 sectors=3200 others=0 reached_l2=400 l2_sectors=400", 17.5,
     "requests=4"}, /* L1 serves the other bytes of each sector, and is busy for 20 % of the time */
    {"uncoalesced_st", UNCOALESCED "used_bytes=8 sectors=1600 others=1600 reached_l2=1600 l2_sectors=3200", 30,
     "instructions=20001"},
    {"l2_sectors_excess", "sectors=1000 ideal=500 local=0 l2_sectors=1000 memory=90 dram=80 l2=20", 40, "ideal=951"},
    {"l2_sectors_excess", "sectors=1000 ideal=500 local=0 l2_sectors=1000 memory=90 dram=20 l2=80", 40, "ideal=1000"},
    {"l2_sectors_excess", "sectors=1000 ideal=500 local=0 l2_sectors=1000 memory=90 dram=20 l2=80", 40,
     "l2_sectors=520"}, /* L1 serves the excess */
    {"l2_sectors_excess", "sectors=1000 ideal=500 local=1000 l2_sectors=2000 memory=70 dram=20 l2=80", 17.5, "local=1500"},
    {"dram_sector_use", DRAM_SECTORS "missed=800 requested=1000", 27.5, "missed=99"},
    {"dram_sector_use", DRAM_SECTORS "missed=800 requested=1000", 27.5, "used_bytes=0"},
    {"dram_sector_use", DRAM_SECTORS "missed=800 requested=1000", 27.5, "dram=9.9"},
    {"dram_sector_use", DRAM_SECTORS "missed=1000 requested=1000", 30, "loaded=499"},
    {"dram_sector_use", DRAM_SECTORS "missed=2000 requested=1000", 35, "used_bytes=0"}, /* each miss reads two sectors */
    {"dram_sector_use", DRAM_SECTORS "missed=1000 requested=1000", 30, "used_bytes=30.5"},
    {"dram_sector_use", "used_bytes=4 loaded=1e6 loaded_from_l2=1e6 missed=1e6 requested=1e6 dram=60", 52.5,
     "loaded=8e6"},                                                                           /* L1 serves the other bytes */
    {"dram_sector_use", DRAM_SECTORS "missed=1000 requested=1000", 30, "missed=260"},         /* L2 serves the other bytes */
    {"dram_sector_use", DRAM_SECTORS "missed=2000 requested=2000", 15, "loaded_from_l2=200"}, /* the TMA loads the rest */
    {"traffic_above_model", "read=150 written=50 needed=100 dram=80", 40, "needed=161"},
    {"traffic_above_model", "read=150 written=50 needed=100 dram=80", 40, "dram=29.9"},
    {"bank_conflicts_ld", "conflicts=3100 wavefronts=3200 shared=6400 requests=100 instructions=1000 shared_pipe=80", 38.75,
     "conflicts=319"},
    {"bank_conflicts_st", "conflicts=100 wavefronts=200 shared=200 requests=100 instructions=1000 shared_pipe=50", 25,
     "instructions=20001"},
    {"l1_hit_low", "sectors=1000 hits=100 l2_sectors=900 l2_hits=850 l2=60", NAN, "hits=500"},
    {"l1_hit_low", "sectors=1000 hits=100 l2_sectors=900 l2_hits=850 l2=60", NAN, "l2=39.9"},
    {"l2_hit_low", "sectors=1000 hits=100 dram=70", NAN, "hits=500"},
    {"l2_hit_low", "sectors=1000 hits=100 dram=70", NAN, "dram=49.9"},
    {"local_memory", LOCAL_MEMORY "local_ld_missed=300 l2_sectors=800 memory=80", 60, "instructions=20001"},
    {"local_memory", LOCAL_MEMORY "local_ld_missed=300 l2_sectors=6000 memory=80", 15, "instructions=20001"}, /* L1: 20 % busy */
    {"local_memory", LOCAL_MEMORY "local_ld_missed=60 l2_sectors=400 memory=80", 72, "instructions=20001"},
    {"register_spills", "bytes=4e6 loads=100 stores=100 instructions=1000 registers=32", NAN, "bytes=0"},
    {"register_spills", "bytes=4e6 loads=100 stores=100 instructions=1000 registers=32", NAN, "instructions=20001"},
    {"global_atomics", "atomic=60 average=1 atomics=0 reductions=1000", 60, "atomic=59.9"},
    {"global_atomics", "atomic=95 average=47 atomics=0 reductions=1000", 95, "average=47.5"},
    {"global_atomics_spread", "atomic=95 average=90 atomics=0 reductions=1000", 95, "average=47"},
    {"global_atomics_spread", "atomic=60 average=50 atomics=0 reductions=1000", 60, "atomic=59.9"},
    {"shared_atomics", SHARED_ATOMICS, 64, "all_conflicts=1274"},
    {"shared_atomics", SHARED_ATOMICS, 64, "instructions=20001"},
    {"l2_compression", "success=10", NAN, "success=50"},
    {"l2_compression", "success=10", NAN, "success=0"},
    {"imbalance_sm", "longest=1000 average=500 elapsed=1000 blocks=132 sms=132", 50, "average=851"},
    {"imbalance_sm", "longest=1000 average=500 elapsed=1000 blocks=132 sms=132", 50, "elapsed=2001"},
    {"imbalance_sm", "longest=1000 average=250 elapsed=1000 blocks=66 sms=132", 50,
     "blocks=33"}, /* idle multiprocessors don't count */
    {"imbalance_l2", L2_SLICES "lookups=95", 55, "average_sent=77"},
    {"imbalance_l2", L2_SLICES "lookups=95", 55, "atomic=60"},
    {"imbalance_l2", L2_SLICES "lookups=60", 20, "lookups=59.9"},
    {"imbalance_dram", "longest=1000 average=500 shortest=100 elapsed=2000", 25, "average=901"},
    {"timeline_host_work", "idle=5 idle_us=50 gaps=3", 5, "idle=4.9"},
    {"timeline_launch_latency", "idle=40 idle_us=50 gaps=3", 40, "idle=4.9"},
    {"timeline_synchronization", "idle=40 idle_us=50 gaps=3", 40, "idle=4.9"},
    {"timeline_blocking_copies", "idle=40 idle_us=50 gaps=3", 40, "idle=4.9"},
    {"timeline_graph_gaps", "idle=40 idle_us=50 gaps=3", 40, "idle=4.9"},
    {"timeline_small_kernels", "kernels=10 time=30 idle=5", 5, "kernels=9"},
    {"timeline_small_kernels", "kernels=10 time=30 idle=5", 5, "idle=4.9"},
    {"timeline_small_launches", "kernels=10 time=30 launch=5", NAN, "kernels=9"},
    {"timeline_small_launches", "kernels=10 time=30 launch=5", NAN, "launch=4.9"},
    {"timeline_first_launch", "idle=5 idle_us=1200 gaps=1", NAN, "idle=4.9"},
    {"timeline_critical_path", "host=50 kernels=40", NAN, "host=49.9"},
    {"timeline_profiler", "idle=5 idle_us=1200 gaps=1", NAN, "idle=4.9"},
    {"timeline_pageable_copies", "copies=3 bytes=3e8 time=5 rate=6e9", NAN, "time=4.9"},
    {"timeline_pinned_rate", "time=5 rate=6e9 pinned=24e9", 75, "time=4.9"},
    {"timeline_pinned_rate", "time=5 rate=6e9 pinned=24e9", 75, "pinned=6.29e9"},
    {"timeline_independent_launches", "launches=3 time=5 blocks=60 memory=50 saving=30", 30, "time=4.9"},
    {"timeline_copies_alone", "copy=5 beside=2", NAN, "copy=4.9"},
    {"timeline_device_copies_alone", "copy=5", NAN, "copy=4.9"},
    {"timeline_empty_queue", "idle=5 median=0", NAN, "idle=4.9"},
    {"timeline_unknown", "idle=99 idle_us=990 gaps=1 unrecorded=100", NAN, "idle=4.9"},
};
enum { CASE_COUNT = sizeof cases / sizeof *cases };

/* --- metrics of a case ------------------------------------------------------------------------------------------------- */

typedef struct metrics {
  rl_metric_value items[RL_RULE_MAX_INPUTS];
  size_t count;
} metrics;

static rl_metric_values sort_metrics(metrics *unsorted) {
  rl_metric_values_sort(unsorted->items, unsorted->count);
  return (rl_metric_values){unsorted->items, unsorted->count};
}

static bool apply_rule(const rl_rule *rule, metrics *inputs, rl_finding *finding) {
  rl_metric_values values = sort_metrics(inputs);
  return rl_rule_apply(rule, &values, finding);
}

static const char *metric_of_input(const rl_rule *rule, const char *name) {
  for (const rl_rule_input *input = rule->inputs; input->name; input++)
    if (strcmp(input->name, name) == 0) return input->metric;
  fail_msg("%s has no input %s", rule->id, name);
  return NULL;
}

/* Sets the inputs that are listed in the text: "name=value ...". */
static void set_inputs(metrics *inputs, const rl_rule *rule, const char *text) {
  char name[32];
  double value;
  for (int read; sscanf(text, " %31[^=]=%lf%n", name, &value, &read) == 2; text += read) {
    const char *metric = metric_of_input(rule, name);
    size_t i = 0;
    while (i < inputs->count && strcmp(inputs->items[i].name, metric) != 0) i++;
    inputs->items[i] = (rl_metric_value){metric, value, NULL};
    if (i == inputs->count) inputs->count++;
  }
}

static metrics make_inputs(const rl_rule *rule, const char *text) {
  metrics inputs = {0};
  set_inputs(&inputs, rule, text);
  return inputs;
}

static const rl_rule *rule_of_case(const rule_case *c) {
  const rl_rule *rule = rl_rule_find(c->rule);
  if (!rule) fail_msg("there is no rule %s", c->rule);
  return rule;
}

static size_t input_count(const rl_rule *rule) {
  size_t count = 0;
  while (rule->inputs[count].name) count++;
  return count;
}

/* --- all rules --------------------------------------------------------------------------------------------------------- */

static bool for_each_rule(bool (*visit)(const rl_rule *rule)) {
  for (const rl_rule_group *group = rl_rule_groups; group->title; group++)
    for (const rl_rule *rule = group->rules; rule->id; rule++)
      if (!visit(rule)) return false;
  return true;
}

static bool has_case(const rl_rule *rule) {
  for (size_t i = 0; i < CASE_COUNT; i++)
    if (strcmp(cases[i].rule, rule->id) == 0) return true;
  fail_msg("%s has no case here", rule->id);
  return false;
}

static bool is_valid(const rl_rule *rule) {
  rl_error err = {0};
  if (rl_rule_check(rule, &err) < 0) fail_msg("%s: %s", rule->id, err.message);
  assert_true(rl_rule_find(rule->id) == rule); /* ids are unique */
  assert_true(rule->version >= 1 && rule->title && rule->message);
  return true;
}

/* A rule about a kernel that recommends a change has one advice, except occupancy_achieved: other rules are about its reasons. */
static bool has_advice_after_its_fact(const rl_rule *rule) {
  const char *advice = rl_rule_advice(rule), *fact_end = rule->message + rl_rule_fact_length(rule);
  bool needs_advice =
      rule->kind == RL_FINDING_OPTIMIZATION && rule->cause != RL_CAUSE_NONE && strcmp(rule->id, "occupancy_achieved") != 0;
  if (needs_advice && !*advice) fail_msg("%s has no advice", rule->id);
  if (strchr(advice, '|')) fail_msg("%s has two advices", rule->id);
  if (*advice && strncmp(fact_end - 2, ". |", 3) != 0) fail_msg("%s: the advice does not follow a sentence", rule->id);
  return true;
}

static void every_rule_is_valid_and_has_a_case(void **state) {
  (void)state;
  for_each_rule(is_valid);
  for_each_rule(has_advice_after_its_fact);
  for_each_rule(has_case);
}

static bool is_run_metric(const char *metric) {
  return strncmp(metric, "activity__", 10) == 0 || strncmp(metric, "model__", 7) == 0;
}

static bool is_collected(const char *metric, uint32_t section) {
  const rl_raw_metric *found = rl_raw_metric_find(metric);
  return found != NULL && (found->sections & section) != 0;
}

static bool reads_only_metrics_of_its_section(const rl_rule *rule) {
  bool is_of_timeline = strcmp(rule->section, RL_RULE_TIMELINE_SECTION) == 0;
  for (const rl_rule_input *input = rule->inputs; input->name; input++)
    assert_int_equal(strncmp(input->metric, "timeline__", 10) == 0, is_of_timeline);
  if (is_of_timeline) return true;
  uint32_t section = section_bit(rule->section);
  for (const rl_rule_input *input = rule->inputs; input->name; input++)
    if (!is_run_metric(input->metric) && !is_collected(input->metric, section))
      fail_msg("%s: %s is not collected for %s", rule->id, input->metric, rule->section);
  return true;
}

static void sections_collect_the_inputs_of_their_rules(void **state) {
  (void)state;
  for_each_rule(reads_only_metrics_of_its_section);
}

/* --- findings ---------------------------------------------------------------------------------------------------------- */

static void a_finding_has_its_inputs_and_estimate(void **state) {
  (void)state;
  for (size_t i = 0; i < CASE_COUNT; i++) {
    const rl_rule *rule = rule_of_case(&cases[i]);
    metrics triggering = make_inputs(rule, cases[i].triggering);
    rl_finding finding;
    if (triggering.count != input_count(rule)) fail_msg("%s: %s is not every input", rule->id, cases[i].triggering);
    if (!apply_rule(rule, &triggering, &finding)) fail_msg("%s is not triggered by %s", rule->id, cases[i].triggering);
    assert_true(finding.rule == rule && finding.kind == rule->kind);
    assert_int_equal(finding.input_count, input_count(rule));
    rl_metric_values values = sort_metrics(&triggering);
    for (int k = 0; k < finding.input_count; k++) {
      assert_string_equal(finding.inputs[k].name, rule->inputs[k].metric);
      assert_true(finding.inputs[k].value == rl_metric_values_get(&values, finding.inputs[k].name));
    }
    bool as_expected =
        isnan(cases[i].speedup_pct) ? isnan(finding.speedup_pct) : fabs(finding.speedup_pct - cases[i].speedup_pct) < 1e-9;
    if (!as_expected)
      fail_msg("%s on %s: %g%%, not %g%%", rule->id, cases[i].triggering, finding.speedup_pct, cases[i].speedup_pct);
    if (strpbrk(finding.message, "{}") || strstr(finding.message, " nan") ||
        strlen(finding.message) > RL_FINDING_MESSAGE_SIZE - 24)
      fail_msg("%s: %s", rule->id, finding.message);
  }
}

static void beyond_its_threshold_a_rule_has_no_finding(void **state) {
  (void)state;
  for (size_t i = 0; i < CASE_COUNT; i++) {
    const rl_rule *rule = rule_of_case(&cases[i]);
    metrics silent = make_inputs(rule, cases[i].triggering);
    set_inputs(&silent, rule, cases[i].change);
    rl_finding finding;
    if (apply_rule(rule, &silent, &finding)) fail_msg("%s is triggered at %s: %s", rule->id, cases[i].change, finding.message);
  }
}

static void an_unavailable_input_prevents_a_finding(void **state) {
  (void)state;
  static const char reason[] = "this chip has none";
  for (size_t i = 0; i < CASE_COUNT; i++) {
    const rl_rule *rule = rule_of_case(&cases[i]);
    for (size_t k = 0; k < input_count(rule); k++) {
      metrics partial = make_inputs(rule, cases[i].triggering);
      const char *missing = partial.items[k].name;
      partial.items[k] = (rl_metric_value){missing, NAN, reason};
      rl_finding finding;
      bool has_finding = apply_rule(rule, &partial, &finding);
      if (has_finding != rule->reports_missing_inputs)
        fail_msg("%s has %s finding without %s", rule->id, has_finding ? "a" : "no", missing);
      if (!has_finding) continue;
      assert_int_equal(finding.kind, RL_FINDING_INFO);
      assert_true(isnan(finding.speedup_pct));
      assert_non_null(strstr(finding.message, missing));
      assert_non_null(strstr(finding.message, reason));
    }
  }
}

/* With extreme metrics, estimates stay between 0 and 100 % and messages fit into their buffer. */
static void extreme_inputs_are_safe(void **state) {
  (void)state;
  static const double extreme[] = {0, -1, 1e-300, 1e300, INFINITY, 42};
  enum { EXTREMES = sizeof extreme / sizeof *extreme };
  for (size_t i = 0; i < CASE_COUNT; i++) {
    const rl_rule *rule = rule_of_case(&cases[i]);
    for (unsigned round = 0; round < 512; round++) {
      metrics inputs = make_inputs(rule, cases[i].triggering);
      for (size_t k = 0, rest = round; k < inputs.count; k++, rest = rest / EXTREMES + k)
        inputs.items[k].value = extreme[rest % EXTREMES];
      rl_finding finding;
      if (!apply_rule(rule, &inputs, &finding)) continue;
      assert_true(isnan(finding.speedup_pct) || (finding.speedup_pct >= 0 && finding.speedup_pct <= 100));
      assert_true(strlen(finding.message) < RL_FINDING_MESSAGE_SIZE);
    }
  }
}

static void an_input_that_was_not_requested_is_not_reported(void **state) {
  (void)state;
  for (size_t i = 0; i < CASE_COUNT; i++) {
    const rl_rule *rule = rule_of_case(&cases[i]);
    metrics partial = make_inputs(rule, cases[i].triggering);
    partial.count--;
    rl_finding finding;
    assert_false(apply_rule(rule, &partial, &finding));
  }
}

/* A kernel without what a rule is about has no finding, which is a decision. */
static void an_undefined_input_is_not_reported(void **state) {
  (void)state;
  for (size_t i = 0; i < CASE_COUNT; i++) {
    const rl_rule *rule = rule_of_case(&cases[i]);
    metrics partial = make_inputs(rule, cases[i].triggering);
    rl_metric_values values = sort_metrics(&partial);
    rl_finding finding;
    assert_true(rl_rule_can_decide(rule, &values));
    partial.items[0] = (rl_metric_value){partial.items[0].name, NAN, RL_METRIC_UNDEFINED};
    assert_false(rl_rule_apply(rule, &values, &finding));
    assert_true(rl_rule_can_decide(rule, &values));
    partial.items[0].reason = "this chip has none";
    assert_false(rl_rule_can_decide(rule, &values));
    values.count--, values.items++;
    assert_false(rl_rule_can_decide(rule, &values));
  }
}

static void no_metrics_give_no_findings(void **state) {
  (void)state;
  rl_metric_values none = {NULL, 0};
  rl_finding finding;
  assert_int_equal(rl_rules_apply(&none, &finding, 1), 0);
}

static void findings_beyond_the_capacity_are_counted(void **state) {
  (void)state;
  rl_metric_value items[] = {{"sm__throughput.avg.pct_of_peak_sustained_elapsed", 10, NULL},
                             {"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", 90, NULL},
                             {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 1, NULL},
                             {"launch__grid_size", 1, NULL},
                             {"launch__sm_count", 132, NULL}};
  rl_metric_values values = {items, sizeof items / sizeof *items};
  rl_metric_values_sort(items, values.count);
  rl_finding findings[2] = {{0}};
  assert_int_equal(rl_rules_apply(&values, findings, 1), 3); /* memory bound, near the peak, too small */
  assert_string_equal(findings[0].rule->id, "bound_memory");
  assert_non_null(strstr(findings[0].message, "works at 90.0 % of its peak (DRAM 1.0 %), the multiprocessors at 10.0 %"));
  assert_null(findings[1].rule);
}

static void durations_in_messages_have_the_unit_of_their_size(void **state) {
  (void)state;
  static const struct {
    const char *rule, *inputs, *text;
  } texts[] = {
      {"timeline_host_work", "idle=20 idle_us=12667.3 gaps=3", "is idle for 12.67 ms, 20.0 % of the window, in 3 intervals,"},
      {"timeline_host_work", "idle=20 idle_us=25 gaps=1", "is idle for 25.00 µs, "},
      {"short_kernel", "duration_ns=880", "runs for 880.0 ns. Below 10 µs,"}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const rl_rule *rule = rl_rule_find(texts[i].rule);
    metrics given = make_inputs(rule, texts[i].inputs);
    rl_finding finding;
    assert_true(apply_rule(rule, &given, &finding));
    if (strstr(finding.message, texts[i].text) == NULL) fail_msg("%s: %s", rule->id, finding.message);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rule_is_valid_and_has_a_case),
      cmocka_unit_test(sections_collect_the_inputs_of_their_rules),
      cmocka_unit_test(a_finding_has_its_inputs_and_estimate),
      cmocka_unit_test(durations_in_messages_have_the_unit_of_their_size),
      cmocka_unit_test(beyond_its_threshold_a_rule_has_no_finding),
      cmocka_unit_test(an_unavailable_input_prevents_a_finding),
      cmocka_unit_test(an_input_that_was_not_requested_is_not_reported),
      cmocka_unit_test(an_undefined_input_is_not_reported),
      cmocka_unit_test(extreme_inputs_are_safe),
      cmocka_unit_test(no_metrics_give_no_findings),
      cmocka_unit_test(findings_beyond_the_capacity_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
