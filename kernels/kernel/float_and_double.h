/* Includes the file RL_LOOPS_HEADER twice: with T double and with T float. That file names its functions TYPED(name), which
 * becomes name_double or name_float, and uses ACCUMULATOR, a wider type, for long sums. Functions of tgmath.h have the type of
 * their arguments. There is no include guard, because a source file may include this header for several values of
 * RL_LOOPS_HEADER. */
#include <tgmath.h>

#define T double
#define ACCUMULATOR long double
#define TYPED(NAME) NAME##_double
#include RL_LOOPS_HEADER
#undef T
#undef ACCUMULATOR
#undef TYPED

#define T float
#define ACCUMULATOR double
#define TYPED(NAME) NAME##_float
#include RL_LOOPS_HEADER
#undef T
#undef ACCUMULATOR
#undef TYPED
#undef RL_LOOPS_HEADER
