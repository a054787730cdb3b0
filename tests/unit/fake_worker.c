/* A worker for the supervisor's tests that does as FAKE_WORKER says: a well-behaved one by default, else one that breaks the
 * protocol in one way. Each process that serves a device adds its id as a line to the file FAKE_STARTS, and to FAKE_RELEASES when
 * it is asked to let go. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/wire.h"

enum { OUT = STDOUT_FILENO };
static rl_error err;

static const char *setting(const char *name) { return getenv(name) != NULL ? getenv(name) : ""; }
static bool told(const char *what) { return strcmp(setting("FAKE_WORKER"), what) == 0; }

static void say_hello(const char *device, const char *role) {
  rl_hello hello = {.protocol = RL_WIRE_VERSION,
                    .program = "fake",
                    .commit = "none",
                    .usable = !told("unusable"),
                    .facts = "{\"name\":\"fake\"}"};
  snprintf(hello.device, sizeof hello.device, "%s", told("other-device") ? "gpu9" : device);
  snprintf(hello.role, sizeof hello.role, "%s", role);
  if (told("unusable")) strcpy(hello.reason, "the device fell off the bus");
  rl_message_write(OUT, RL_FRAME_HELLO, rl_hello_fields, &hello, &err);
}

static int list(void) {
  if (told("list-crash")) {
    fprintf(stderr, "starting\nlibfake.so.9: cannot open shared object file\n");
    return 127;
  }
  if (told("list-garbage")) return puts("cpu") < 0;
  say_hello("cpu", "any");
  return 0;
}

static void good_answer(void) {
  rl_records records = {.has_facts = true};
  rl_epoch epoch = {.device_ms = 1, .host_ms = 1, .images = 64, .train_loss = NAN, .unavailable = "{\"train_loss\":\"fake\"}"};
  strcpy(records.facts.engine, "fake");
  snprintf(records.facts.commit, sizeof records.facts.commit, "mnist %s threads %s", setting("ROOFLINED_MNIST_DIR"),
           setting("ROOFLINED_THREADS"));
  rl_records_add(&records, RL_RECORD_EPOCH, &epoch, 1, &err);
  if (told("twice")) rl_records_add(&records, RL_RECORD_EPOCH, &epoch, 1, &err);
  rl_records_send(OUT, &records, &err);
  rl_frame_write(OUT, RL_FRAME_DONE, NULL, 0, &err);
  rl_records_clear(&records);
}

static bool first_start(void) { /* only this process stands in the file */
  char text[64] = "";
  FILE *file = fopen(setting("FAKE_STARTS"), "re");
  size_t size = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file != NULL) fclose(file);
  return size > 0 && strchr(text, '\n') == text + size - 1;
}

static void wait_for_cancel(rl_frame_reader *reader) {
  rl_frame frame;
  if (rl_frame_read(reader, -1, &frame, &err) < 0) exit(0);
  if (frame.type == RL_FRAME_CANCEL) rl_frame_write(OUT, RL_FRAME_CANCELLED, NULL, 0, &err);
}

static void serve(rl_frame_reader *reader) {
  rl_failure failure = {.domain = "cuda", .code = 700, .message = "an illegal memory access"};
  rl_run_facts facts = {.engine = "fake"};
  rl_progress progress = {.pass = "timing", .phase = "epoch", .train_loss = NAN};
  rl_activity_row row = {.name = 3};
  char babble[9000];
  memset(babble, 'a', sizeof babble);
  if (told("crash") || (told("crash-once") && first_start())) raise(SIGKILL);
  if (told("exit")) exit(3);
  if (told("print")) printf("hello from a kernel\n"), fflush(stdout);
  if (told("done-first")) rl_frame_write(OUT, RL_FRAME_DONE, NULL, 0, &err);
  if (told("cancelled-unasked")) rl_frame_write(OUT, RL_FRAME_CANCELLED, NULL, 0, &err);
  if (told("hello-again")) say_hello("cpu", "any");
  if (told("half")) exit(write(OUT, "RLFW\3", 5) != 5);
  if (told("bad-row")) {
    rl_message_write(OUT, RL_FRAME_FACTS, rl_run_facts_fields, &facts, &err);
    rl_frame_write(OUT, RL_FRAME_ROWS, &row, sizeof row, &err);
  }
  if (told("fail")) rl_message_write(OUT, RL_FRAME_FAILED, rl_failure_fields, &failure, &err);
  if (told("unavailable")) rl_message_write(OUT, RL_FRAME_UNAVAILABLE, rl_failure_fields, &failure, &err);
  while (told("flood")) {
    if (rl_message_write(OUT, RL_FRAME_PROGRESS, rl_progress_fields, &progress, &err) < 0) exit(0);
  }
  while (told("babble")) {
    if (rl_frame_write(OUT, RL_FRAME_LOG, babble, sizeof babble, &err) < 0) exit(0);
  }
  while (told("deaf")) pause();
  if (told("slow")) wait_for_cancel(reader);
  if (told("") || told("crash-once") || told("chatter") || told("twice") || told("keeps")) good_answer();
  if (told("chatter")) rl_frame_write(OUT, RL_FRAME_DONE, NULL, 0, &err);
}

static void sign(const char *where) {
  FILE *file = fopen(setting(where), "ae");
  if (file == NULL) return;
  fprintf(file, "%d\n", (int)getpid());
  fclose(file);
}

static void release(void) {
  sign("FAKE_RELEASES");
  if (!told("keeps")) rl_frame_write(OUT, RL_FRAME_RELEASED, NULL, 0, &err);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) return list();
  if (argc != 5) return 64;
  sign("FAKE_STARTS");
  if (told("mute")) pause();
  say_hello(argv[2], argv[4]);
  rl_frame_reader *reader = rl_frame_reader_new(STDIN_FILENO);
  for (rl_frame frame; rl_frame_read(reader, -1, &frame, &err) == 0;) {
    if (frame.type == RL_FRAME_REQUEST) serve(reader);
    if (frame.type == RL_FRAME_RELEASE) release();
  }
  rl_frame_reader_free(reader);
  return 0;
}
