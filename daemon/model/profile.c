#include "model/profile.h"

#include <string.h>

#include "model/catalogue.h"

const char *const rl_profile_set_names[] = {"auto", "basic", "detailed", "full", NULL};

const rl_field rl_profile_fields[] = {
    RL_FIELD(rl_profile, sections, RL_FIELD_CHOICES, .names = rl_section_names, .may_be_empty = true),
    RL_FIELD(rl_profile, metrics, RL_FIELD_NAMES),
    RL_FIELD(rl_profile, kernels, RL_FIELD_TEXT),
    RL_FIELD(rl_profile, launch, RL_FIELD_INT),
    {0}};

/* The default profile is the set "basic" with these metrics, which show whether a kernel is memory-bound or compute-bound and
 * place it in the roofline. */
static const char default_metrics[] =
    "gpu__time_duration.sum\nsm__cycles_elapsed.avg.per_second\nsm__throughput.avg.pct_of_peak_sustained_elapsed\n"
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed\ngpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\n"
    "dram__bytes.sum\ndram__bytes_read.sum\ndram__bytes_write.sum\ndram__bytes.sum.per_second\ndram__bytes_read.sum.per_second\n"
    "dram__bytes_write.sum.per_second\nl1tex__t_sector_hit_rate.pct\nlts__t_sector_hit_rate.pct\n"
    "sm__warps_active.avg.pct_of_peak_sustained_active\nsm__inst_executed.avg.per_cycle_active\nsmsp__inst_executed.sum\n"
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active";
_Static_assert(sizeof default_metrics <= RL_PROFILE_METRICS_SIZE, "the default metrics must fit into a profile");

static uint32_t sections_of_set(const char *set) {
  for (size_t i = 0; i < rl_section_set_count; i++)
    if (strcmp(rl_section_sets[i].name, set) == 0) return rl_section_sets[i].sections;
  return 0;
}

rl_profile rl_profile_resolve(int set, const rl_profile *requested) {
  rl_profile profile = *requested;
  if (set != RL_PROFILE_SET_AUTO) profile.sections |= sections_of_set(rl_profile_set_names[set]);
  if (profile.sections == 0 && profile.metrics[0] == '\0') {
    profile.sections = sections_of_set("basic");
    memcpy(profile.metrics, default_metrics, sizeof default_metrics);
  }
  return profile;
}
