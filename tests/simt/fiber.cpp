/* Runs emulated threads as fibers: each emulated thread has its own stack. The scheduler runs on the stack of the caller of
 * launch(). */
#include "emulator_internal.h"
#include "pool.h"

uint3 threadIdx, blockIdx;

namespace simt {

/* simt_switch(save, to): pushes the callee-saved registers (System V ABI, x86-64) on the current stack, stores the stack pointer
 * in *save, and pops the same registers from the stack `to`. It jumps to the return address, because the processor would predict
 * that `ret` returns to the caller on the other stack. */
extern "C" void simt_switch(void **save, void *to);
asm(".text\n.globl simt_switch\n.type simt_switch, @function\nsimt_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\npop %rcx\njmp *%rcx\n.size simt_switch, .-simt_switch\n");

/* If the size were a power of two, the tops of all stacks would share a few sets of the caches, and each switch of threads would
 * wait for memory. An odd number of further cache lines spreads them over all sets. */
enum : size_t { CACHE_LINE = 64, STACK_BYTES = (128 << 10) + 9 * CACHE_LINE, CANARY = 0x5aa5c33cf00f1ee1 };
static pool stacks = {STACK_BYTES};

static struct { /* stack of the caller of launch() */
  void *pointer = NULL, *fake_stack = NULL;
  const void *bottom = NULL;
  size_t size = 0;
} scheduler_stack;

void suspend(bool exits) {
  thread_state &thread = running_thread();
  SIMT_ASAN(__sanitizer_start_switch_fiber(exits ? NULL : &thread.fake_stack, scheduler_stack.bottom, scheduler_stack.size));
  simt_switch(&thread.stack_pointer, scheduler_stack.pointer);
  SIMT_ASAN(__sanitizer_finish_switch_fiber(thread.fake_stack, NULL, NULL));
  (void)exits;
}

void resume(thread_state &thread) {
  emulator.running = &thread;
  threadIdx = thread.index;
  blockIdx = thread.warp->block->index;
  SIMT_ASAN(__sanitizer_start_switch_fiber(&scheduler_stack.fake_stack, thread.stack, STACK_BYTES));
  simt_switch(&scheduler_stack.pointer, thread.stack_pointer);
  SIMT_ASAN(__sanitizer_finish_switch_fiber(scheduler_stack.fake_stack, NULL, NULL));
  emulator.running = NULL;
}

static void run_thread() {
  SIMT_ASAN(__sanitizer_finish_switch_fiber(NULL, &scheduler_stack.bottom, &scheduler_stack.size));
  (*emulator.body)();
  if (*(size_t *)running_thread().stack != CANARY) die("a stack of %zu bytes is too small", (size_t)STACK_BYTES);
  exit_thread();
  suspend(true);
}

/* Prepares a stack from which simt_switch returns into run_thread. */
void create_fiber(thread_state &thread) {
  thread.stack = stacks.allocate();
  *(size_t *)thread.stack = CANARY;
  void **top = (void **)(thread.stack + STACK_BYTES) - 2;
  top[0] = (void *)run_thread;
  top[1] = NULL;
  thread.stack_pointer = top - 6; /* simt_switch pops six registers, then returns to top[0] */
}

void destroy_fiber(thread_state &thread) { stacks.release(thread.stack); }

}  // namespace simt
