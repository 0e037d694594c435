"""Values of parameters, and parameters that a running objective changes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from ._codec import ParamValue
from ._errors import InvalidRequest
from ._space import Categorical, Constant, Float, Int, Ordinal, Parameter


def fit(
    params: Mapping[str, ParamValue], space: Mapping[str, Parameter]
) -> dict[str, ParamValue] | None:
    """Return the active parameters of a space, or None if they are not all there."""
    config: dict[str, ParamValue] = {}
    left = dict(space)
    while left:
        ready = [n for n in left if not any(parent in left for parent in left[n].when or {})]
        for name in ready:
            p = left.pop(name)
            if all(
                parent in config and _agrees(config[parent], values)
                for parent, values in (p.when or {}).items()
            ):
                if name not in params:
                    return None
                config[name] = p.coerce(params[name])
                if not contains(p, config[name]):
                    return None
    return config


def _agrees(value: ParamValue, values: Any) -> bool:
    several = values if isinstance(values, (list, tuple)) else [values]
    return any(type(value) is type(v) and value == v for v in several)


def merge(name: str, a: Parameter, b: Parameter) -> Parameter:
    """Return a parameter with the ranges of both, which must be alike otherwise."""
    alike = type(a) is type(b)
    if alike and isinstance(a, (Float, Int)) and isinstance(b, (Float, Int)):
        alike = (a.log, a.scale, a.step) == (b.log, b.scale, b.step)
        if alike and a.step is not None:
            steps = (a.low - b.low) / a.step
            alike = abs(steps - round(steps)) < 1e-9
        if alike:
            low, high = min(a.low, b.low), max(a.high, b.high)
            return dataclasses.replace(a, low=low, high=high)
    elif alike and isinstance(a, (Categorical, Ordinal)) and isinstance(b, (Categorical, Ordinal)):
        alike = [(type(v), v) for v in a.names] == [(type(v), v) for v in b.names]
    if alike:
        return a
    raise InvalidRequest(
        f"parameter {name!r} is {_text(b)} and was {_text(a)} before, only the range of a number "
        "may change, so give the parameter another name"
    )


def _text(p: Parameter) -> str:
    given = {f.name: getattr(p, f.name) for f in dataclasses.fields(p)}
    fields = {k: v for k, v in given.items() if k != "when" and v is not None and v is not False}
    return f"{type(p).__name__}({', '.join(f'{k}={v!r}' for k, v in fields.items())})"


def covers(a: Parameter, b: Parameter) -> bool:
    """Tell whether a has all values of b, which is of the same kind."""
    if isinstance(a, (Float, Int)) and isinstance(b, (Float, Int)):
        return a.low <= b.low and b.high <= a.high
    return True


def contains(p: Parameter, value: ParamValue) -> bool:
    """Tell whether a parameter has a value."""
    if isinstance(p, (Categorical, Ordinal)):
        return p.index(value) >= 0
    if isinstance(p, Constant):
        return p.value == value
    if isinstance(value, (str, bool)) or not p.low <= value <= p.high:
        return False
    steps = (value - p.low) / p.step if p.step else 0.0
    return abs(steps - round(steps)) < 1e-9 and (isinstance(p, Float) or float(value).is_integer())


def at(p: Parameter, u: float) -> ParamValue:
    """Return the value at a share u below 1 of a parameter."""
    if isinstance(p, (Categorical, Ordinal)):
        first = 0 if isinstance(p, Categorical) and u == 0.5 else int(u * len(p.names))
        chosen: ParamValue = p.names[first]
        return chosen
    if isinstance(p, Constant):
        return p.value
    if p.step or isinstance(p, Int) and not p.log:
        step = p.step or 1
        n = math.floor((p.high - p.low) / step + 1e-9) + 1
        from decimal import Decimal

        # In decimals, as the server computes the grid.
        v = float(Decimal(repr(p.low)) + Decimal(repr(step)) * int(u * n))
    elif p.log:
        low, high = math.log(p.low), math.log(p.high)
        v = math.exp(low + u * (high - low))
    else:
        v = p.low + u * (p.high - p.low)
    v = min(max(v, p.low), p.high)
    return round(v) if isinstance(p, Int) else float(v)
