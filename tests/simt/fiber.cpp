/* Threads of the machine as fibers: a stack each, and the switch between it and the machine's own. */
#include "machine_parts.h"
#include "pool.h"

uint3 threadIdx, blockIdx;

namespace simt {

/* simt_switch(save, to): what calls must keep (System V ABI, x86-64) goes on the old stack, its pointer into *save; then the same
 * back from `to`. */
extern "C" void simt_switch(void **save, void *to);
asm(".text\n.globl simt_switch\n.type simt_switch, @function\nsimt_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n.size simt_switch, .-simt_switch\n");

enum : size_t { STACK_BYTES = 128 << 10, CANARY = 0x5aa5c33cf00f1ee1 };
static pool stacks = {STACK_BYTES};

static struct { /* the stack that launches run on */
  void *pointer = NULL, *fake_stack = NULL;
  const void *bottom = NULL;
  size_t size = 0;
} home;

void leave(bool for_good) {
  thread &t = self();
  SIMT_ASAN(__sanitizer_start_switch_fiber(for_good ? NULL : &t.fake_stack, home.bottom, home.size));
  simt_switch(&t.stack_pointer, home.pointer);
  SIMT_ASAN(__sanitizer_finish_switch_fiber(t.fake_stack, NULL, NULL));
  (void)for_good;
}

void resume(thread &t) {
  machine.running = &t;
  threadIdx = t.index;
  blockIdx = t.of->of->index;
  SIMT_ASAN(__sanitizer_start_switch_fiber(&home.fake_stack, t.stack, STACK_BYTES));
  simt_switch(&home.pointer, t.stack_pointer);
  SIMT_ASAN(__sanitizer_finish_switch_fiber(home.fake_stack, NULL, NULL));
  machine.running = NULL;
}

static void run_thread() {
  SIMT_ASAN(__sanitizer_finish_switch_fiber(NULL, &home.bottom, &home.size));
  (*machine.body)();
  if (*(size_t *)self().stack != CANARY) die("a stack of %zu bytes is too small", (size_t)STACK_BYTES);
  end_thread();
  leave(true);
}

/* A stack from which simt_switch returns into run_thread. */
void begin_fiber(thread &t) {
  t.stack = stacks.take();
  *(size_t *)t.stack = CANARY;
  void **top = (void **)(t.stack + STACK_BYTES) - 2;
  top[0] = (void *)run_thread;
  top[1] = NULL;
  t.stack_pointer = top - 6;
}

void end_fiber(thread &t) { stacks.give_back(t.stack); }

}  // namespace simt
