"""Search spaces in the words of scikit-learn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._codec import plain
from .._errors import InvalidRequest
from .._space import Categorical, Constant, Float, Int, Ordinal, Parameter, Space, of_list

TAIL = 0.001  # probability that is cut off where a distribution has no bound
SUBSPACE = "subspace"  # name of the parameter that chooses one dict of a list


@dataclass(frozen=True)
class Dimension:
    """A parameter of the estimator, and its parameter in the study."""

    name: str
    param: str
    parameter: Parameter
    decode: Callable[[Any], Any] = lambda v: v
    encode: Callable[[Any], Any] = lambda v: v


def read_space(space: Any) -> list[Dimension]:
    """Read a dict of parameters, or a list of such dicts."""
    if isinstance(space, Mapping):
        return _read_dict(space, "")
    if not isinstance(space, Sequence) or isinstance(space, str) or not space:
        raise InvalidRequest(f"space is {space!r}, give a dict of parameters, or a list of dicts")
    for i, part in enumerate(space):
        if not isinstance(part, Mapping):
            raise InvalidRequest(f"item {i} of space is {part!r}, give a dict of parameters")
    if len(space) == 1:
        return _read_dict(space[0], "")
    choice = Categorical([str(i) for i in range(len(space))])
    found = [Dimension(SUBSPACE, "", choice)]
    for i, part in enumerate(space):
        for d in _read_dict(part, f"@{i}"):
            when = {SUBSPACE: str(i), **(d.parameter.when or {})}
            found.append(replace(d, parameter=replace(d.parameter, when=when)))
    return found


def _read_dict(space: Mapping[str, Any], suffix: str) -> list[Dimension]:
    if not space:
        raise InvalidRequest("space has no parameters, give one or more")
    for name in space:
        if not isinstance(name, str):
            raise InvalidRequest(f"parameter {name!r} of space is no text, give a name")
    found = {name: _read(name, name + suffix, given) for name, given in space.items()}
    return [_rename_parents(d, found) for d in found.values()]


def _rename_parents(d: Dimension, found: Mapping[str, Dimension]) -> Dimension:
    """Write the condition of a parameter in the names and values of the study."""
    if not d.parameter.when:
        return d
    when = {}
    for parent, values in d.parameter.when.items():
        if parent not in found:
            raise InvalidRequest(
                f"parameter {d.param!r} depends on {parent!r}, which is not in the space"
            )
        many = values if isinstance(values, (list, tuple)) else [values]
        when[found[parent].name] = [found[parent].encode(v) for v in many]
    return replace(d, parameter=replace(d.parameter, when=when))


def _read(param: str, name: str, given: Any) -> Dimension:
    if isinstance(given, (Float, Int, Categorical, Ordinal, Constant)):
        return Dimension(name, param, given)
    if isinstance(given, tuple):
        return Dimension(name, param, _range(param, given))
    if isinstance(given, range) and len(given) > 1 and given.step > 0:
        step = given.step if given.step > 1 else None
        return Dimension(name, param, Int(given[0], given[-1], step=step))
    if isinstance(given, (list, range, np.ndarray)):
        return Dimension(name, param, of_list(list(given), param))
    if all(hasattr(given, a) for a in ("rvs", "ppf", "support")):
        return _distribution(param, name, given)
    raise InvalidRequest(
        f"parameter {param!r} of space is {given!r}, give a list of values, a range, a tuple of "
        "low and high, a distribution of scipy.stats, or a parameter of bkb"
    )


def _range(param: str, given: tuple[Any, ...]) -> Parameter:
    bounds = [plain(v) for v in given[:2]]
    scale = given[2] if len(given) == 3 else None
    are_numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in bounds)
    if len(given) not in (2, 3) or not are_numbers or not isinstance(scale, (str, type(None))):
        raise InvalidRequest(
            f"parameter {param!r} of space is the tuple {given!r}, give (low, high) or "
            "(low, high, 'log'), or a list if these are choices"
        )
    low, high = bounds
    whole = isinstance(low, int) and isinstance(high, int)
    kind: Any = Int if whole else Float
    try:
        made: Int | Float = kind(low, high, scale=scale)
    except InvalidRequest as e:
        raise InvalidRequest(f"parameter {param!r} of space is wrong, {e}") from None
    return made


def _distribution(param: str, name: str, given: Any) -> Dimension:
    low, high = (float(v) for v in given.support())
    if hasattr(given, "pmf"):
        low = low if math.isfinite(low) else float(given.ppf(TAIL))
        high = high if math.isfinite(high) else float(given.ppf(1 - TAIL))
        return Dimension(name, param, Int(int(low), int(high)))
    kind = getattr(getattr(given, "dist", None), "name", "")
    if kind == "uniform":
        return Dimension(name, param, Float(low, high))
    if kind in ("loguniform", "reciprocal") and math.isclose(
        float(given.ppf(0.5)), math.sqrt(low * high)
    ):
        return Dimension(name, param, Float(low, high, log=True))
    # The study has the probability, so that it searches where the distribution is.
    least = 0.0 if math.isfinite(low) else TAIL
    most = 1.0 if math.isfinite(high) else 1 - TAIL
    return Dimension(
        name,
        param,
        Float(least, most),
        lambda p: float(given.ppf(p)),
        lambda v: float(given.cdf(v)),
    )


def study_space(dimensions: Sequence[Dimension]) -> Space:
    """Return the space of the study."""
    return Space({d.name: d.parameter for d in dimensions})


def candidate(dimensions: Sequence[Dimension], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the estimator for a configuration of the study."""
    return {d.param: d.decode(config[d.name]) for d in dimensions if d.param and d.name in config}


def size(dimensions: Sequence[Dimension]) -> float:
    """Return the number of configurations, infinity where it is not easily known."""
    n = 1.0
    for d in dimensions:
        p = d.parameter
        if p.when or isinstance(p, Float):
            return math.inf
        if isinstance(p, Int):
            n *= (p.high - p.low) // (p.step or 1) + 1
        elif not isinstance(p, Constant):
            n *= len(p.values)
    return n
