"""Statistics: fitted lines, Student's t distribution, Welch's confidence interval of a difference of means."""
import math
import statistics


def incomplete_beta(a, b, x):
    """Returns the regularised incomplete beta function, by Lentz's continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny, c, d, fraction = 1e-300, 1.0, 0.0, 1.0
    for i in range(400):
        m = i // 2
        if i == 0:
            numerator = 1.0
        elif i % 2 == 0:
            numerator = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            numerator = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + numerator * d or tiny)
        c = 1 + numerator / c or tiny
        fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * (fraction - 1)


def student_cdf(t, degrees_of_freedom):
    """Returns the value at t of the cumulative distribution function of Student's t distribution."""
    tail = incomplete_beta(degrees_of_freedom / 2, 0.5, degrees_of_freedom / (degrees_of_freedom + t * t)) / 2
    return 1 - tail if t > 0 else tail


def student_quantile(probability, degrees_of_freedom):
    """Returns t with student_cdf(t) = probability; probability must be at least 0.5."""
    low, high = 0.0, 1.0
    while student_cdf(high, degrees_of_freedom) < probability:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, degrees_of_freedom) < probability else (low, middle)
    return (low + high) / 2


def difference_of_means(ours, theirs, confidence=0.95):
    """Returns mean(ours) - mean(theirs) as {"difference", "low", "high", "freedom"}: the difference, the ends of its confidence
    interval by Welch's method, which does not assume equal variances, and the degrees of freedom. "low" and "high" are None if a
    list has only one value. "freedom" is None in this case and if neither list has any variance."""
    difference = statistics.fmean(ours) - statistics.fmean(theirs)
    if min(len(ours), len(theirs)) < 2:
        return {"difference": difference, "low": None, "high": None, "freedom": None}
    squared_errors = [statistics.variance(values) / len(values) for values in (ours, theirs)]
    error = math.sqrt(sum(squared_errors))
    if error == 0:
        return {"difference": difference, "low": difference, "high": difference, "freedom": None}
    degrees_of_freedom = sum(squared_errors) ** 2 / sum(squared ** 2 / (len(values) - 1)
                                                        for squared, values in zip(squared_errors, (ours, theirs)))
    margin = student_quantile((1 + confidence) / 2, degrees_of_freedom) * error
    return {"difference": difference, "low": difference - margin, "high": difference + margin, "freedom": degrees_of_freedom}


def fit_line(xs, ys, confidence=0.95):
    """Fits a line by least squares and returns {"begin", "end", "growth_ratio", "low", "high"}: "begin" and "end" are the line's
    values at the smallest and the largest x, "growth_ratio" is (end - begin) / begin, and "low" and "high" are the ends of the
    confidence interval of "growth_ratio"."""
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    sum_squares_x = sum((x - mean_x) ** 2 for x in xs)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / sum_squares_x
    begin, end = (mean_y + slope * (x - mean_x) for x in (min(xs), max(xs)))
    residual = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in zip(xs, ys))
    degrees_of_freedom = len(xs) - 2
    margin = math.inf
    if degrees_of_freedom > 0:
        slope_error = math.sqrt(residual / degrees_of_freedom / sum_squares_x)
        margin = student_quantile((1 + confidence) / 2, degrees_of_freedom) * slope_error
    span = (max(xs) - min(xs)) / begin if begin else math.nan
    return {"begin": begin, "end": end, "growth_ratio": slope * span, "low": (slope - margin) * span,
            "high": (slope + margin) * span}
