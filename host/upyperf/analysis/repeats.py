"""Several runs of one test as one statement: centre, spread, and how sure it is.

Statistics are scipy's. scipy is imported where it is used, since it takes seconds to load.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

CONFIDENCE = 0.95
RESAMPLES = 9999
_SEED = 20260101  # the same data always gives the same interval


@dataclass(frozen=True)
class Summary:
    """Repeats of one figure, in the figure's own unit; the raw values are kept in order.

    `mad` is the median absolute deviation from the median (not scaled). `trimmed` is the mean without
    the best and the worst value, which needs three. `ci` is the 95 % bootstrap interval (BCa) of the mean,
    which needs three values as well; None where it cannot be told.
    """

    values: tuple[float, ...]
    mean: float
    median: float
    mad: float
    low: float
    high: float
    trimmed: float | None
    ci: tuple[float, float] | None

    @property
    def n(self) -> int:
        """How many values."""
        return len(self.values)

    @property
    def half_width(self) -> float | None:
        """Half the width of the confidence interval, the figure behind the ±."""
        return (self.ci[1] - self.ci[0]) / 2 if self.ci else None


def summarise(values: Sequence[float]) -> Summary:
    """Summary of at least one finite value. Raises ValueError for none, or for one that is not finite."""
    if not values:
        raise ValueError("no values to summarise")
    if not all(math.isfinite(v) for v in values):
        raise ValueError("a value is not a finite number")
    middle = median(values)
    ordered = sorted(values)
    return Summary(
        values=tuple(values),
        mean=fmean(values),
        median=middle,
        mad=median(abs(v - middle) for v in values),
        low=ordered[0],
        high=ordered[-1],
        trimmed=fmean(ordered[1:-1]) if len(ordered) > 2 else None,
        ci=mean_interval(values),
    )


def _bootstrap(data: tuple[Sequence[float], ...], statistic: Any) -> tuple[float, float] | None:
    """95 % interval of a statistic; BCa, and the plain percentile interval where BCa is not defined."""
    import numpy as np
    from scipy import stats

    for method in ("BCa", "percentile"):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = stats.bootstrap(
                data,
                statistic,
                n_resamples=RESAMPLES,
                confidence_level=CONFIDENCE,
                method=method,
                vectorized=True,
                rng=np.random.default_rng(_SEED),
            )
        low, high = float(result.confidence_interval.low), float(result.confidence_interval.high)
        if math.isfinite(low) and math.isfinite(high):
            return low, high
    return None


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """95 % bootstrap interval of the mean; None for fewer than three values."""
    if len(values) < 3:
        return None
    if min(values) == max(values):
        return values[0], values[0]
    import numpy as np

    return _bootstrap((values,), np.mean)


def change_interval(base: Sequence[float], new: Sequence[float]) -> tuple[float, float] | None:
    """95 % bootstrap interval of mean(new)/mean(base) - 1; None for fewer than three values on a side.

    None too where the base may be zero, of which no ratio can be told.
    """
    if len(base) < 3 or len(new) < 3 or min(base) <= 0:
        return None
    if min(base) == max(base) and min(new) == max(new):
        change = new[0] / base[0] - 1
        return change, change

    def ratio(n: Any, b: Any, axis: int) -> Any:
        return n.mean(axis=axis) / b.mean(axis=axis) - 1

    return _bootstrap((new, base), ratio)


def smallest_p(n_base: int, n_new: int) -> float:
    """The smallest two-sided p that a rank test can give for these counts: 2 / C(n+m, n), at most 1.

    With 3 against 3 it is 0.1, with 4 against 4 0.029: below four a side nothing can be significant.
    """
    if n_base < 1 or n_new < 1:
        return 1.0
    return min(1.0, 2 / math.comb(n_base + n_new, n_base))


def p_value(base: Sequence[float], new: Sequence[float]) -> float:
    """Two-sided p of the Mann–Whitney U test, exact where ties or counts allow, else by permutation.

    Raises ValueError when a side is empty.
    """
    if not base or not new:
        raise ValueError("a side has no values")
    if len({*base, *new}) == 1:
        return 1.0
    import numpy as np
    from scipy import stats

    if len({*base, *new}) == len(base) + len(new) and max(len(base), len(new)) <= 200:
        method: Any = "exact"
    else:
        # The exact distribution knows no ties; permuting the data does (all ways where they are few).
        method = stats.PermutationMethod(n_resamples=RESAMPLES, rng=np.random.default_rng(_SEED))
    return float(stats.mannwhitneyu(base, new, alternative="two-sided", method=method).pvalue)
