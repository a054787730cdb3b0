#!/usr/bin/python3
"""Writes tests/data/rank_test.csv, the expected values of the rank test of daemon/analyze, computed by SciPy:

- two-sided p-values of the Mann-Whitney test of two samples a and b. Without ties, by SciPy's exact method; with ties, by its
  permutation test, which tries every way to divide the values into two samples of these sizes;
- Hodges-Lehmann intervals of the factor between the samples, found by testing factors (function interval).

Made with SciPy 1.10.1: tests/reference/rank_test.py > tests/data/rank_test.csv"""
import random

import numpy
from scipy import stats

RANDOM = random.Random(16)  # the samples are the same in every run
ALPHAS = (0.05, 0.01)  # error probabilities of the 95 % and the 99 % interval


def exact_p(a, b):
    """Returns the exact two-sided p-value of the Mann-Whitney test."""
    if len(set(a + b)) == len(a + b):
        return stats.mannwhitneyu(a, b, method="exact").pvalue
    return stats.permutation_test((a, b), lambda x, y, axis: stats.mannwhitneyu(x, y, axis=axis, method="asymptotic").statistic,
                                  vectorized=True, n_resamples=numpy.inf, batch=20000).pvalue


def interval(a, b, alpha):
    """Returns the smallest and largest factor by which a can be multiplied so that the test at level alpha accepts that both
    samples have one distribution. The test's result changes only at a quotient of a value of b and one of a, so it is enough to
    test one factor between each two neighbouring quotients."""
    quotients = sorted(y / x for x in a for y in b)
    factors = [quotients[0] / 2] + [(p * q) ** 0.5 for p, q in zip(quotients, quotients[1:])] + [quotients[-1] * 2]
    accepted = [stats.mannwhitneyu([factor * x for x in a], b, method="exact").pvalue > alpha for factor in factors]
    first, last = accepted.index(True), len(accepted) - 1 - accepted[::-1].index(True)
    return (0 if first == 0 else quotients[first - 1]), (float("inf") if last == len(quotients) else quotients[last])


def lognormal(count, factor, spread):
    """Returns random values around `factor`, whose logarithms have the standard deviation `spread`."""
    return [float(f"{factor * RANDOM.lognormvariate(0, spread):.9g}") for _ in range(count)]


def cases():
    """Yields the kind of each case, "distinct" or "ties", and its two samples."""
    for n, m in ((1, 1), (1, 6), (2, 3), (3, 3), (4, 7), (5, 5), (7, 7), (7, 14), (8, 8), (7, 35), (12, 9), (20, 20), (35, 14),
                 (40, 40)):
        for factor in (1, 1.02, 1.3):
            yield "distinct", lognormal(n, 20, 0.05), lognormal(m, 20 * factor, 0.05)
    for n, m in ((2, 2), (2, 3), (3, 4), (5, 5), (7, 7), (7, 9), (10, 10), (4, 14)):
        for values in (2, 3, 6):
            for shift in (0, 1):
                yield "ties", [float(RANDOM.randrange(values) + 1) for _ in range(n)], [
                    float(RANDOM.randrange(values) + 1 + shift) for _ in range(m)]
    yield "ties", [3.0] * 7, [3.0] * 7
    yield "ties", [3.0] * 7, [4.0] * 7


def main():
    print("kind,a,b,u,p,ratio,low_95,high_95,low_99,high_99")
    for kind, a, b in cases():
        ratio = float(numpy.exp(numpy.median(numpy.log([y / x for x in a for y in b]))))
        with_interval = kind == "distinct" and len(a) * len(b) <= 400
        bounds = [bound for alpha in ALPHAS for bound in interval(a, b, alpha)] if with_interval else []
        numbers = [stats.mannwhitneyu(a, b, method="asymptotic").statistic, exact_p(a, b), ratio] + bounds
        print(kind, " ".join(map(repr, a)), " ".join(map(repr, b)), *(repr(float(x)) for x in numbers), sep=",")


main()
