/* Includes LOOPS, the loops of a family, for T double and for T float: what they call IN_T(name) is name_double and name_float.
 * SUM is what sums are taken in where T would lose digits; functions of tgmath.h follow their arguments' type. No guard: a file
 * may have several. */
#include <tgmath.h>

#define T double
#define SUM long double
#define IN_T(NAME) NAME##_double
#include LOOPS
#undef T
#undef SUM
#undef IN_T

#define T float
#define SUM double
#define IN_T(NAME) NAME##_float
#include LOOPS
#undef T
#undef SUM
#undef IN_T
#undef LOOPS
