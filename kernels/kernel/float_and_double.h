/* Compiles the file LOOPS twice: for T double and for T float. It defines TYPED(name) as name_double and as name_float, and uses
 * ACCUMULATOR, a wider type, for long sums. Functions of tgmath.h follow the type of their arguments. No include guard: a file
 * may include several LOOPS. */
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
