/* Implements counter_packing.h. A raw counter belongs to a hardware unit (a domain), which has few slots in each pass. Units do
 * not compete for slots, so the counters of each part of the GPU (L2, SMs, ...) are first packed alone, into as few bins as
 * possible. Then the bins of different parts are merged into passes. */
#include "worker/cupti/counter_packing.h"

#include <nvperf_cuda_host.h>
#include <nvperf_host.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "worker/cupti/raw_counters.h"

namespace {

enum { MAX_ROUNDS = 400, ROUNDS_OF_ORDER = 16, MAX_RATIO_COUNTERS = 3, MAX_RATIO_USERS = 20 };

/* Domains in the order of preference. A counter of the SMs can often be collected in several domains. The registers of SM_A take
 * 17 ms in each pass that uses it, those of the others 1 ms (H200). */
const uint32_t preferred_domains[] = {NVPW_RAW_COUNTER_DOMAIN_GPU_SM_C, NVPW_RAW_COUNTER_DOMAIN_GPU_SM_B,
                                      NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_SM_A, NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_C_SM_A};

struct raw_counter {
  std::string name;
  uint32_t domain;
};
typedef std::vector<size_t> counter_set; /* indices of raw counters */

#define NEW_PARAMS(TYPE, NAME) NVPW_##TYPE##_Params NAME = {NVPW_##TYPE##_Params_STRUCT_SIZE}

/* A configuration that is being made. `status` is not 0 after a failure. */
struct raw_config {
  NVPW_RawCounterConfig *handle = NULL;
  std::vector<NVPW_RawCounterDomain> domains; /* of the chip */
  int status;

  explicit raw_config(const char *chip) {
    NEW_PARAMS(CUDA_RawCounterConfig_Create, create);
    NEW_PARAMS(RawCounterConfig_GetAllAvailableRawCounterDomains, available);
    create.pChipName = chip;
    create.activityKind = NVPA_ACTIVITY_KIND_PROFILER;
    status = NVPW_CUDA_RawCounterConfig_Create(&create);
    available.pRawCounterConfig = handle = create.pRawCounterConfig;
    if (status == 0) status = NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains(&available);
    domains.resize(available.numAvailableDomains);
    available.pAvailableDomains = domains.data();
    if (status == 0) status = NVPW_RawCounterConfig_GetAllAvailableRawCounterDomains(&available);
  }
  ~raw_config() {
    NEW_PARAMS(RawCounterConfig_Destroy, destroy);
    destroy.pRawCounterConfig = handle;
    if (handle != NULL) NVPW_RawCounterConfig_Destroy(&destroy);
  }
  raw_config(const raw_config &) = delete;
  raw_config &operator=(const raw_config &) = delete;

  void begin_pass() {
    NEW_PARAMS(RawCounterConfig_BeginPassGroup, begin);
    begin.pRawCounterConfig = handle;
    begin.numDomains = domains.size();
    begin.pDomains = domains.data();
    if (status == 0) status = NVPW_RawCounterConfig_BeginPassGroup(&begin);
  }
  void end_pass() {
    NEW_PARAMS(RawCounterConfig_EndPassGroup, end);
    end.pRawCounterConfig = handle;
    end.numDomains = domains.size();
    end.pDomains = domains.data();
    if (status == 0) status = NVPW_RawCounterConfig_EndPassGroup(&end);
  }
  void add(const raw_counter &counter) {
    NVPW_RawCounterRequest request = {};
    NEW_PARAMS(RawCounterConfig_AddRawCounters, add);
    request.pRawCounterName = counter.name.c_str();
    request.domain = counter.domain;
    add.pRawCounterConfig = handle;
    add.rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE;
    add.numRawCounterRequests = 1;
    add.pRawCounterRequests = &request;
    if (status == 0) status = NVPW_RawCounterConfig_AddRawCounters(&add);
  }
  /* Returns whether the open pass has room for the counters. */
  bool has_room(const std::vector<raw_counter> &counters, const counter_set &set) {
    std::vector<NVPW_RawCounterRequest> requests(set.size());
    NEW_PARAMS(RawCounterConfig_AreRawCountersSchedulable, check);
    for (size_t i = 0; i < set.size(); i++) {
      requests[i].pRawCounterName = counters[set[i]].name.c_str();
      requests[i].domain = counters[set[i]].domain;
    }
    check.pRawCounterConfig = handle;
    check.rawCounterRequestStructSize = NVPW_RAW_COUNTER_REQUEST_STRUCT_SIZE;
    check.numRawCounterRequests = requests.size();
    check.pRawCounterRequests = requests.data();
    check.disallowAddingExtraPasses = true;
    if (status == 0) status = NVPW_RawCounterConfig_AreRawCountersSchedulable(&check);
    return status == 0 && check.schedulable;
  }
  size_t count_passes() {
    NEW_PARAMS(RawCounterConfig_GetNumPasses, passes);
    passes.pRawCounterConfig = handle;
    if (status == 0) status = NVPW_RawCounterConfig_GetNumPasses(&passes);
    return status == 0 ? passes.numPasses : SIZE_MAX;
  }
  std::vector<uint8_t> make_image() {
    NEW_PARAMS(RawCounterConfig_GenerateConfigImage, generate);
    NEW_PARAMS(RawCounterConfig_GetConfigImage, get);
    generate.pRawCounterConfig = handle;
    get.pRawCounterConfig = handle;
    if (status == 0) status = NVPW_RawCounterConfig_GenerateConfigImage(&generate);
    if (status == 0) status = NVPW_RawCounterConfig_GetConfigImage(&get);
    std::vector<uint8_t> image(get.bytesCopied);
    get.bytesAllocated = image.size();
    get.pBuffer = image.data();
    if (status == 0) status = NVPW_RawCounterConfig_GetConfigImage(&get);
    return image;
  }
  /* Returns the domains that can collect the counter, while a pass is open. */
  std::vector<uint32_t> domains_of(const char *name) {
    NEW_PARAMS(RawCounterConfig_GetRawCounterProperties, properties);
    properties.pRawCounterConfig = handle;
    properties.pRawCounterName = name;
    if (NVPW_RawCounterConfig_GetRawCounterProperties(&properties) != NVPA_STATUS_SUCCESS) return {};
    std::vector<NVPW_RawCounterDomain> single(properties.numSupportedDomains);
    std::vector<uint32_t> groups(properties.numSupportedCdgDomains);
    properties.pSupportedDomains = single.data();
    properties.pSupportedCdgDomains = groups.data();
    if (NVPW_RawCounterConfig_GetRawCounterProperties(&properties) != NVPA_STATUS_SUCCESS) return {};
    groups.insert(groups.begin(), single.begin(), single.end());
    return groups;
  }
};

/* Owns a metric evaluator. `status` is not 0 after a failure. */
struct evaluator {
  rl_metric_evaluator *handle;
  int status;

  explicit evaluator(const char *chip)
      : handle(rl_metric_evaluator_open(chip)), status(handle != NULL ? NVPA_STATUS_SUCCESS : NVPA_STATUS_ERROR) {}
  ~evaluator() { rl_metric_evaluator_close(handle); }
  evaluator(const evaluator &) = delete;
  evaluator &operator=(const evaluator &) = delete;

  std::vector<const char *> raw_counters(const char *metric) {
    const char *names[RL_MAX_RAW_COUNTERS];
    size_t count = 0;
    if (status == 0) status = rl_raw_counters_of(handle, metric, names, &count);
    return {names, names + count};
  }
};

/* Returns the domain whose slots a counter of the domain needs. */
uint32_t part_of(uint32_t domain) {
  switch (domain) {
    case NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_B_SM_A: return NVPW_RAW_COUNTER_DOMAIN_GPU_SM_B;
    case NVPW_RAW_COUNTER_DOMAIN_CDG_GPU_SM_C_SM_A: return NVPW_RAW_COUNTER_DOMAIN_GPU_SM_C;
    default: return domain;
  }
}

/* Returns the position of a part in the order in which bins are merged: parts that conflict with fewer parts come later, so that
 * the expensive ones share passes. Instrumented code (SASS) shares its pass with no other part. */
int merge_rank(uint32_t domain) {
  switch (part_of(domain)) {
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SM_A: return 0;
    case NVPW_RAW_COUNTER_DOMAIN_GPU_LTS: return 1;
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SM_C: return 3;
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SM_B: return 4;
    case NVPW_RAW_COUNTER_DOMAIN_GPU_SASS: return 5;
    default: return 2;
  }
}

struct packer {
  const char *chip;
  std::vector<raw_counter> counters;
  std::map<std::string, size_t> index; /* of each raw counter */
  const rl_metric_selection *selection;
  std::vector<counter_set> sums;   /* the terms of each skipped metric */
  std::vector<counter_set> ratios; /* counters of metrics that are computed from two or three counters */
  int status = 0;

  packer(const char *chip_name, const rl_metric_selection *selected) : chip(chip_name), selection(selected) {}

  static uint32_t choose_domain(const std::vector<uint32_t> &domains) {
    for (uint32_t preferred : preferred_domains)
      if (std::find(domains.begin(), domains.end(), preferred) != domains.end()) return preferred;
    return domains.front();
  }

  /* Adds the raw counters of a metric, except those that are in the list already, and returns all of them. A counter that no
   * domain has is skipped: CUPTI does not collect it either. */
  counter_set add_counters(evaluator &metrics, raw_config &config, const char *metric) {
    counter_set needed;
    for (const char *name : metrics.raw_counters(metric)) {
      const std::vector<uint32_t> domains = config.domains_of(name);
      if (domains.empty()) continue;
      if (index.count(name) == 0) {
        index[name] = counters.size();
        counters.push_back({name, choose_domain(domains)});
      }
      needed.push_back(index[name]);
    }
    return needed;
  }

  /* Lists the raw counters of the metrics, and which of them belong together. */
  void list_counters(const rl_counter_group &group) {
    evaluator metrics(chip);
    raw_config config(chip);
    std::map<size_t, size_t> users;
    config.begin_pass();
    for (size_t i = 0; i < group.count && metrics.status == 0 && config.status == 0; i++) {
      ratios.push_back(add_counters(metrics, config, group.names[i]));
      for (size_t counter : ratios.back()) users[counter]++;
    }
    for (size_t i = selection->counter_count; i < selection->count && metrics.status == 0; i++) {
      const rl_selected_metric *metric = &selection->items[i];
      counter_set terms;
      for (size_t t = 0; t < metric->term_count; t++)
        for (size_t counter : add_counters(metrics, config, metric->terms[t])) terms.push_back(counter);
      sums.push_back(terms);
    }
    status = metrics.status != 0 ? metrics.status : config.status;
    for (counter_set &ratio : ratios)
      ratio.erase(std::remove_if(ratio.begin(), ratio.end(), [&](size_t c) { return users[c] > MAX_RATIO_USERS; }), ratio.end());
  }

  bool fit(const counter_set &set) {
    raw_config config(chip);
    config.begin_pass();
    for (size_t counter : set) config.add(counters[counter]);
    config.end_pass();
    return config.count_passes() == 1;
  }

  /* Returns the sums of a part, those with common counters united. */
  std::vector<counter_set> unite_sums(const counter_set &part) {
    std::vector<counter_set> united;
    for (counter_set sum : sums) {
      if (sum.empty() || std::find(part.begin(), part.end(), sum[0]) == part.end()) continue;
      for (size_t i = united.size(); i-- > 0;) {
        if (std::find_first_of(sum.begin(), sum.end(), united[i].begin(), united[i].end()) == sum.end()) continue;
        sum.insert(sum.end(), united[i].begin(), united[i].end());
        united.erase(united.begin() + (ptrdiff_t)i);
      }
      std::sort(sum.begin(), sum.end());
      sum.erase(std::unique(sum.begin(), sum.end()), sum.end());
      united.push_back(sum);
    }
    return united;
  }

  /* Splits a part into units, whose counters get into one pass if that has room: the terms of sums, without which a difference
   * could be negative; the counters of a ratio, which is then more accurate; and single counters. */
  std::vector<counter_set> make_units(const counter_set &part) {
    std::vector<counter_set> units, related = unite_sums(part);
    std::vector<bool> taken(counters.size(), true);
    for (size_t counter : part) taken[counter] = false;
    for (const counter_set &ratio : ratios)
      if (ratio.size() >= 2 && ratio.size() <= MAX_RATIO_COUNTERS) related.push_back(ratio);
    for (const counter_set &set : related) {
      bool is_free = true;
      for (size_t counter : set) is_free = is_free && !taken[counter];
      if (!is_free || !fit(set)) continue;
      units.push_back(set);
      for (size_t counter : set) taken[counter] = true;
    }
    for (size_t counter : part)
      if (!taken[counter]) units.push_back({counter});
    return units;
  }

  /* Puts each unit into the first bin with room, and returns the bins. */
  std::vector<counter_set> first_fit(const std::vector<counter_set> &units, std::vector<size_t> &bin_of_unit) {
    std::vector<counter_set> bins;
    std::vector<std::unique_ptr<raw_config>> configs;
    for (size_t u = 0; u < units.size(); u++) {
      size_t bin = 0;
      while (bin < bins.size() && !configs[bin]->has_room(counters, units[u])) bin++;
      if (bin == bins.size()) {
        bins.push_back({});
        configs.emplace_back(new raw_config(chip));
        configs[bin]->begin_pass();
      }
      for (size_t c : units[u]) configs[bin]->add(counters[c]);
      if (configs[bin]->status != 0) status = configs[bin]->status;
      bins[bin].insert(bins[bin].end(), units[u].begin(), units[u].end());
      bin_of_unit[u] = bin;
    }
    return bins;
  }

  /* Returns whether no packing has fewer bins, if no bin can have more counters than the largest one. */
  static bool is_full(const std::vector<counter_set> &bins, size_t counter_count) {
    size_t largest = 1;
    for (const counter_set &bin : bins) largest = std::max(largest, bin.size());
    return bins.size() <= (counter_count + largest - 1) / largest;
  }

  /* Packs a part. After each round, the units of the last two bins come first in the next round, so that they find room. After
   * ROUNDS_OF_ORDER rounds without improvement, a new random order is tried. */
  std::vector<counter_set> pack(const counter_set &part) {
    std::vector<counter_set> units = make_units(part), best;
    std::vector<size_t> bin_of_unit(units.size());
    std::minstd_rand random; /* has the same seed in each run, so that each build makes the same plans */
    for (size_t round = 0, improved = 0; round < MAX_ROUNDS && (best.empty() || !is_full(best, part.size())); round++) {
      const std::vector<counter_set> bins = first_fit(units, bin_of_unit);
      if (best.empty() || bins.size() < best.size() || (bins.size() == best.size() && bins.back().size() < best.back().size())) {
        best = bins;
        improved = round;
      }
      std::vector<counter_set> early, late;
      for (size_t u = 0; u < units.size(); u++) (bin_of_unit[u] + 2 >= bins.size() ? late : early).push_back(units[u]);
      late.insert(late.end(), early.begin(), early.end());
      units = late;
      if ((round - improved) % ROUNDS_OF_ORDER == ROUNDS_OF_ORDER - 1) std::shuffle(units.begin(), units.end(), random);
    }
    return best;
  }

  std::vector<counter_set> split_into_parts() const {
    std::map<uint32_t, counter_set> parts;
    for (size_t c = 0; c < counters.size(); c++) parts[part_of(counters[c].domain)].push_back(c);
    std::vector<counter_set> sets;
    for (const auto &part : parts) sets.push_back(part.second);
    std::stable_sort(sets.begin(), sets.end(), [this](const counter_set &a, const counter_set &b) {
      return merge_rank(counters[a[0]].domain) < merge_rank(counters[b[0]].domain);
    });
    return sets;
  }

  /* Merges the bins of all parts into passes: the bins of a part come one after the other, each in the first pass with room. So
   * the first passes count in most parts, and the last ones only in the SMs; a pass that counts outside the SMs takes 6 ms longer
   * to stop (H200). */
  std::vector<counter_set> make_passes() {
    std::vector<counter_set> passes;
    for (const counter_set &part : split_into_parts()) {
      size_t pass = 0;
      for (const counter_set &bin : pack(part)) {
        for (; pass < passes.size(); pass++) {
          counter_set both = passes[pass];
          both.insert(both.end(), bin.begin(), bin.end());
          if (fit(both)) break;
        }
        if (pass == passes.size()) passes.push_back({});
        passes[pass].insert(passes[pass].end(), bin.begin(), bin.end());
        pass++;
      }
    }
    return passes;
  }

  /* Replaces the configuration of the group if the packed one is smaller. */
  void apply_to(rl_counter_group *group) {
    raw_config config(chip);
    list_counters(*group);
    const std::vector<counter_set> passes = make_passes();
    for (const counter_set &pass : passes) {
      config.begin_pass();
      for (size_t counter : pass) config.add(counters[counter]);
      config.end_pass();
    }
    const size_t pass_count = config.count_passes();
    const std::vector<uint8_t> image = config.make_image();
    if (status == 0) status = config.status;
    if (status != 0 || pass_count > group->passes || (pass_count == group->passes && image.size() >= group->config_image_size))
      return;
    uint8_t *copy = (uint8_t *)malloc(image.size());
    if (copy == NULL) return;
    memcpy(copy, image.data(), image.size());
    free(group->config_image);
    group->config_image = copy;
    group->config_image_size = image.size();
    group->passes = pass_count;
  }
};

}  // namespace

int rl_counter_packing_apply(const char *chip, const rl_metric_selection *selection, rl_counter_plan *plan, rl_error *err) {
  plan->passes = 0;
  for (size_t g = 0; g < plan->group_count; g++) {
    packer packing(chip, selection);
    packing.apply_to(&plan->groups[g]);
    if (packing.status != 0) return rl_fail(err, RL_CUPTI, packing.status, "libnvperf_host: error %d", packing.status);
    plan->passes += plan->groups[g].passes;
  }
  return 0;
}
