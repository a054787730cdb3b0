/* Includes the file LOOPS twice: with T double and with T float. LOOPS names its functions TYPED(name), which becomes name_double
 * or name_float, and uses ACCUMULATOR, a wider type, for long sums. Functions of tgmath.h have the type of their arguments. There
 * is no include guard: a file may include several LOOPS. */
#include <tgmath.h>

#define T double
#define ACCUMULATOR long double
#define TYPED(NAME) NAME##_double
#include LOOPS
#undef T
#undef ACCUMULATOR
#undef TYPED

#define T float
#define ACCUMULATOR double
#define TYPED(NAME) NAME##_float
#include LOOPS
#undef T
#undef ACCUMULATOR
#undef TYPED
#undef LOOPS
