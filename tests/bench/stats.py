# SPDX-License-Identifier: Apache-2.0
"""Medians, percentiles and bootstrap intervals; no more statistics than the report states."""

import math
import random
import statistics

RESAMPLES = 2000


def median(values):
    return statistics.median(values)


def percentile(values, p):
    """The nearest-rank percentile: always a value that was really measured."""
    ordered = sorted(values)
    rank = max(1, -(-len(ordered) * p // 100))
    return ordered[int(rank) - 1]


def bootstrap(values, resamples=RESAMPLES):
    """95 % interval of the median. The seed is fixed: same samples, same interval."""
    rng = random.Random(20000)
    n = len(values)
    medians = sorted(statistics.median(rng.choices(values, k=n)) for _ in range(resamples))
    return medians[int(0.025 * resamples)], medians[int(0.975 * resamples) - 1]


def ratios(top, bottom):
    """Ratio per round, over the rounds in which both were measured. Arguments: {round: value}."""
    return [top[r] / bottom[r] for r in sorted(top) if r in bottom]


def summary(samples):
    """{round: ns} to the figures the report shows, in milliseconds."""
    ms = [ns / 1e6 for ns in samples.values()]
    return {"n": len(ms), "median": median(ms), "p90": percentile(ms, 90), "min": min(ms)}


def paired(top, bottom):
    r = ratios(top, bottom)
    low, high = bootstrap(r)
    return {"n": len(r), "median": median(r), "low": low, "high": high}


def typical(values):
    """The Hodges-Lehmann estimate (the median of the averages of all pairs) with its 95 % interval from Wilcoxon's signed ranks:
    as robust as the median against single wild values, and much narrower."""
    n = len(values)
    pairs = sorted((a + b) / 2 for i, a in enumerate(values) for b in values[i:])
    k = max(0, math.floor(n * (n + 1) / 4 - 1.96 * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)))
    return {"n": n, "typical": statistics.median(pairs), "low": pairs[k], "high": pairs[-1 - k]}
