"""Parameters of Optuna, and their counterparts in a study of the tuner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from ._codec import ParamValue
from ._presence import MOST_VALUES, Value
from ._space import MOST_CHOICES, Categorical, Float, Int, Parameter

NEAR = 1e-3  # of a range, what parallel workers must not propose at once
EDGE = 1e-9  # of a range, how far values that Optuna gets are inside
EXACT = 2**53  # largest integer of an axis, beyond it doubles skip integers


def representable(d: BaseDistribution) -> bool:
    if isinstance(d, CategoricalDistribution):
        return len(d.choices) <= MOST_CHOICES
    if isinstance(d, (FloatDistribution, IntDistribution)):
        integral = isinstance(d, IntDistribution) or d.step is not None
        return math.isfinite(d.high - d.low) and not (
            integral and max(abs(d.low), abs(d.high)) / (d.step or 1) > EXACT
        )
    return False


@dataclass(frozen=True)
class Axis:
    """A parameter of Optuna and its counterpart in the copy.

    A categorical becomes its index, since Optuna's choices may be None or lists. A
    parameter with a step becomes the number of steps.
    """

    name: str  # in the copy, since Optuna's names may hold anything
    distribution: BaseDistribution

    def parameter(self, when: Mapping[str, Sequence[Value]] | None = None) -> Parameter:
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return Categorical([f"c{i}" for i in range(len(d.choices))], when=when)
        assert isinstance(d, (FloatDistribution, IntDistribution))
        if self._stepped():
            return Int(0, round((d.high - d.low) / (d.step or 1)), when=when)
        kind = Int if isinstance(d, IntDistribution) else Float
        return kind(d.low, d.high, log=d.log, when=when)

    def _stepped(self) -> bool:
        d = self.distribution
        if isinstance(d, IntDistribution):
            return d.step > 1
        return isinstance(d, FloatDistribution) and d.step is not None

    def discrete(self) -> bool:
        """Tell whether the parameter can decide whether another is present."""
        p = self.parameter()
        return isinstance(p, Categorical) or isinstance(p, Int) and p.high - p.low < MOST_VALUES

    def encode(self, value: Any) -> Value | float | None:
        """Return a value as the copy has it, or None if it is out of range."""
        d = self.distribution
        try:
            v = d.to_internal_repr(value)
        except (ValueError, TypeError):
            return None
        if not d._contains(v):
            return None
        if isinstance(d, CategoricalDistribution):
            return f"c{int(v)}"
        assert isinstance(d, (FloatDistribution, IntDistribution))
        if self._stepped():
            return round((v - d.low) / (d.step or 1))
        if isinstance(d, IntDistribution):
            return int(v)
        low, high = self._inside(d)  # what stands for an end is the end again
        return d.low if v <= low else d.high if v >= high else float(v)

    def decode(self, value: ParamValue) -> Any:
        """Return a value of the copy as Optuna has it."""
        d = self.distribution
        if isinstance(d, CategoricalDistribution):
            return d.choices[int(str(value)[1:])]
        assert isinstance(d, (FloatDistribution, IntDistribution))
        assert not isinstance(value, str)
        if isinstance(d, FloatDistribution) and d.step is None:
            low, high = self._inside(d)
            return min(max(float(value), low), high)
        v = d.low + value * (d.step or 1) if self._stepped() else value
        v = min(max(v, d.low), d.high)
        return int(v) if isinstance(d, IntDistribution) else float(v)

    @staticmethod
    def _inside(d: FloatDistribution) -> tuple[float, float]:
        """Return the values that Optuna gets for the ends of a range.

        BKB proposes the ends. The samplers of Optuna hardly ever do, and objectives that
        were written for them divide by a value or take its logarithm.
        """
        if d.log:
            share = math.exp(EDGE * (math.log(d.high) - math.log(d.low)))
            return d.low * share, d.high / share
        return d.low + EDGE * (d.high - d.low), d.high - EDGE * (d.high - d.low)


def near(p: Parameter, a: ParamValue, b: ParamValue) -> bool:
    assert isinstance(p, Float)
    x, y, low, high = float(a), float(b), float(p.low), float(p.high)
    if p.log:
        x, y, low, high = map(math.log, (x, y, low, high))
    return abs(x - y) < NEAR * (high - low)
