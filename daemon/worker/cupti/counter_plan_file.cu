/* Saves counter plans to files and loads them (counter_plan.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "worker/cupti/counter_plan_internal.h"

/* Format: key and names; reasons; groups. Numbers and lengths are 64-bit in native byte order, because programs and plans are
 * built for one architecture. */
static const char FILE_MAGIC[] = "rooflined counter plan 2";

struct plan_writer {
  FILE *file;
  void write_number(uint64_t value) { fwrite(&value, sizeof value, 1, file); }
  void write_bytes(const void *data, size_t size) {
    write_number(size);
    fwrite(data, 1, size, file);
  }
  void write_text(const char *value) { write_bytes(value, strlen(value)); }
};

static std::string format_key(const char *key, const char *const *names, size_t count) {
  std::string text = std::string(FILE_MAGIC) + "\n" + key + "\n";
  for (size_t i = 0; i < count; i++) text += std::string(names[i]) + "\n";
  return text;
}

static void write_plan(plan_writer writer, const rl_counter_plan *plan) {
  for (size_t i = 0; i < plan->metric_count; i++) writer.write_text(plan->missing_reasons[i].text);
  writer.write_number(plan->group_count);
  for (size_t g = 0; g < plan->group_count; g++) {
    const rl_counter_group *group = &plan->groups[g];
    writer.write_number(group->passes);
    writer.write_bytes(group->metrics, group->count * sizeof *group->metrics);
    writer.write_bytes(group->config_image, group->config_image_size);
  }
}

int rl_counter_plan_save(const rl_counter_plan *plan, const char *const *names, const char *key, const char *path,
                         rl_error *err) {
  std::string temporary = std::string(path) + "." + std::to_string(getpid());
  FILE *file = fopen(temporary.c_str(), "we");
  if (file == NULL) return rl_fail_errno(err, "%s", temporary.c_str());
  plan_writer writer = {file};
  writer.write_text(format_key(key, names, plan->metric_count).c_str());
  write_plan(writer, plan);
  bool failed = ferror(file) != 0;
  failed = fclose(file) != 0 || failed;
  if (!failed && rename(temporary.c_str(), path) == 0) return 0;
  rl_fail_errno(err, "%s", path);
  remove(temporary.c_str());
  return -1;
}

/* Reads the bytes of a file in order. Reading past the end sets `damaged`. */
struct plan_reader {
  const std::string &data;
  size_t offset;
  bool damaged;

  uint64_t read_number() {
    uint64_t value = 0;
    if (data.size() - offset < sizeof value) damaged = true;
    else memcpy(&value, data.data() + offset, sizeof value), offset += sizeof value;
    return value;
  }
  std::string read_bytes() {
    uint64_t size = read_number();
    if (damaged || size > data.size() - offset) {
      damaged = true;
      return "";
    }
    offset += size;
    return data.substr(offset - size, size);
  }
};

static int read_group(plan_reader &reader, const char *chip, const char *const *names, rl_counter_plan *plan, rl_error *err) {
  size_t passes = reader.read_number();
  std::string metrics = reader.read_bytes(), image = reader.read_bytes();
  rl_counter_group *group = rl_counter_plan_add_group(plan, metrics.size() / sizeof(size_t), err);
  if (group == NULL) return -1;
  group->config_image = (uint8_t *)malloc(image.size() + 1);
  if (group->config_image == NULL) return rl_fail(err, RL_ERRNO, ENOMEM, "out of memory for a counter configuration");
  memcpy(group->config_image, image.data(), group->config_image_size = image.size());
  memcpy(group->metrics, metrics.data(), group->count * sizeof *group->metrics);
  for (size_t i = 0; i < group->count; i++) {
    if (group->metrics[i] >= plan->metric_count) return rl_fail(err, RL_INPUT, 0, "the index of a metric is out of range");
    group->names[i] = names[group->metrics[i]];
  }
  plan->passes += group->passes = passes;
  return rl_profiler_host_open(chip, &group->host, err);
}

static int read_plan(plan_reader &reader, const char *chip, const char *const *names, const char *key, rl_counter_plan *plan,
                     rl_error *err) {
  if (reader.read_bytes() != format_key(key, names, plan->metric_count))
    return rl_fail(err, RL_INPUT, 0, "the file has the plan of another chip, version of CUPTI or list of metrics");
  for (size_t i = 0; i < plan->metric_count; i++)
    snprintf(plan->missing_reasons[i].text, sizeof plan->missing_reasons[i].text, "%s", reader.read_bytes().c_str());
  for (uint64_t groups = reader.read_number(); groups > 0 && !reader.damaged; groups--)
    if (read_group(reader, chip, names, plan, err) < 0) return -1;
  return reader.damaged || reader.offset != reader.data.size() ? rl_fail(err, RL_INPUT, 0, "it is damaged") : 0;
}

int rl_counter_plan_load(const char *chip, const char *const *names, size_t count, const char *key, const char *path,
                         rl_counter_plan **plan, rl_error *err) {
  std::ifstream file(path, std::ios::binary);
  std::string data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  plan_reader reader = {data, 0, false};
  rl_counter_plan *made = NULL;
  if (rl_counter_plan_new(count, &made, err) < 0) return -1;
  if (read_plan(reader, chip, names, key, made, err) < 0) {
    rl_counter_plan_close(made);
    return rl_wrap(err, "%s", path);
  }
  *plan = made;
  return 0;
}
