"""Statistics of a sitting: lines through measurements, Student's t, Welch's interval of a difference of means."""
import math
import statistics


def incomplete_beta(a, b, x):
    """The regularised incomplete beta function, by Lentz's continued fraction."""
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


def student_cdf(t, freedom):
    tail = incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2
    return 1 - tail if t > 0 else tail


def student_quantile(probability, freedom):
    """t with student_cdf(t) = probability, for probabilities of at least one half."""
    low, high = 0.0, 1.0
    while student_cdf(high, freedom) < probability:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, freedom) < probability else (low, middle)
    return (low + high) / 2


def difference_of_means(ours, theirs, confidence=0.95):
    """Welch: {"difference", "low", "high", "freedom"} of mean(ours) - mean(theirs), without assuming equal variances."""
    difference = statistics.fmean(ours) - statistics.fmean(theirs)
    if min(len(ours), len(theirs)) < 2:
        return {"difference": difference, "low": None, "high": None, "freedom": None}
    parts = [statistics.variance(values) / len(values) for values in (ours, theirs)]
    error = math.sqrt(sum(parts))
    if error == 0:
        return {"difference": difference, "low": difference, "high": difference, "freedom": None}
    freedom = sum(parts) ** 2 / sum(part ** 2 / (len(values) - 1) for part, values in zip(parts, (ours, theirs)))
    reach = student_quantile((1 + confidence) / 2, freedom) * error
    return {"difference": difference, "low": difference - reach, "high": difference + reach, "freedom": freedom}


def line(xs, ys, confidence=0.95):
    """Least squares: {"begin", "end", "growth_ratio", "low", "high"}: the line's values over the span of xs, how much it grows
    from begin to end relative to begin, and the interval of that growth."""
    middle_x, middle_y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((x - middle_x) ** 2 for x in xs)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys)) / spread
    begin, end = (middle_y + slope * (x - middle_x) for x in (min(xs), max(xs)))
    left = sum((y - middle_y - slope * (x - middle_x)) ** 2 for x, y in zip(xs, ys))
    freedom = len(xs) - 2
    reach = student_quantile((1 + confidence) / 2, freedom) * math.sqrt(left / freedom / spread) if freedom > 0 else math.inf
    span = (max(xs) - min(xs)) / begin if begin else math.nan
    return {"begin": begin, "end": end, "growth_ratio": slope * span, "low": (slope - reach) * span,
            "high": (slope + reach) * span}
