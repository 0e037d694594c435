"""Values of parameters, and parameters that a running objective changes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from ._codec import ParamValue
from ._errors import InvalidRequest
from ._goals import Goals
from ._space import Categorical, Constant, Float, Int, Ordinal, Parameter, Space, coerce
from ._views import TrialView, check_over


def fit(
    params: Mapping[str, ParamValue], space: Mapping[str, Parameter]
) -> dict[str, ParamValue] | None:
    """Return the active parameters of a space, or None if they are not all there."""

    def given(name: str, p: Parameter) -> ParamValue | None:
        value = p.coerce(params[name]) if name in params else None
        return value if value is not None and contains(p, value) else None

    return _walk(space, given)


def complete(
    params: Mapping[str, ParamValue],
    space: Mapping[str, Parameter],
    best: Mapping[str, ParamValue],
    seed: str,
) -> dict[str, ParamValue]:
    """Return a configuration with some values, those of the best trial, and random ones."""
    import random  # which takes long to import

    source, wanted = random.Random(seed), dict(params)
    known = list(wanted)
    for name in known:  # its parents get values with which it is active
        for parent, values in (space[name].when or {}).items():
            if parent not in wanted:
                wanted[parent] = values[0] if isinstance(values, (list, tuple)) else values
                known.append(parent)

    def choose(name: str, p: Parameter) -> ParamValue:
        if name in wanted:
            return wanted[name]
        drawn = at(p, source.random())
        return best[name] if name in best and contains(p, best[name]) else drawn

    return _walk(space, choose) or {}


def nearby(
    config: Mapping[str, ParamValue],
    fixed: Mapping[str, ParamValue],
    space: Mapping[str, Parameter],
    count: int,
    seed: str,
) -> list[dict[str, ParamValue]]:
    """Return configurations that differ from one in a parameter that is not fixed."""
    free = [n for n in config if n not in fixed]
    others = [{k: v for k, v in config.items() if k != free[i % len(free)]} for i in range(count)]
    return [complete(fixed, space, o, f"{seed}/{i}/near") for i, o in enumerate(others)]


def _walk(
    space: Mapping[str, Parameter], choose: Callable[[str, Parameter], ParamValue | None]
) -> dict[str, ParamValue] | None:
    """Return the active parameters with chosen values, or None if one has none."""
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
                value = choose(name, p)
                if value is None:
                    return None
                config[name] = value
    return config


def check_fits(view: TrialView, space: Space, goals: Goals) -> None:
    """Refuse a trial of another study that does not fit a space and objectives."""
    check_over(view)
    params = coerce(space, view.params)
    check_values(params, space)
    config = fit(params, space)
    if config is None or config.keys() != params.keys():
        active = ", ".join(config or space) or "none"
        raise InvalidRequest(
            f"it has the parameters {', '.join(params) or 'none'}, and the space needs {active}"
        )
    missing = [n for n in goals.names if view.state == "completed" and not view.metrics.get(n)]
    if missing:
        raise InvalidRequest(f"it has no {', '.join(missing)}, which is an objective")


def check_values(params: Mapping[str, ParamValue], space: Mapping[str, Parameter]) -> None:
    """Refuse a value that its parameter does not have."""
    for name, value in params.items():
        if not contains(space[name], value):
            raise InvalidRequest(
                f"parameter {name!r} is {value!r}, which is outside of {_text(space[name])}, "
                "give a value that it has"
            )


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
