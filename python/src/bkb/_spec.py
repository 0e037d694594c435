"""What a study is created with, and how that differs from a study that exists."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _errors
from ._codec import (
    JSON,
    decode_duration,
    decode_float,
    encode_attributes,
    encode_duration,
    encode_float,
    encode_int,
    integer,
    number,
)
from ._errors import InvalidRequest
from ._goals import MARK, Goals
from ._options import MAX_RETRIES, Component, SpecOptions
from ._space import Constant, Space, SpaceLike, same, space_text
from ._views import StudyRecord

# Settings of a study by their names on the wire.
SETTINGS = {
    "maxTrials": "max_trials",
    "maxCost": "max_cost",
    "patience": "patience",
    "target": "target",
    "maxRetries": "max_retries",
    "timeout": "timeout",
    "lease": "lease",
    "seed": "seed",
    "proposer": "proposer",
    "pruner": "pruner",
}

_LIMIT = re.compile(r"\s*(\S(?:.*\S)?)\s*(<=|>=)\s*(\S+)\s*")


def study_spec(space: SpaceLike | None, goals: Goals, o: SpecOptions, seed: int) -> JSON:
    """Return the form of the wire. A study without a space is the first of a series."""
    spec: JSON = {
        "space": "" if space is None else space_text(space),
        "objectives": goals.encode(),
        **encode_limits(o["max_trials"], o["timeout"], o["max_cost"]),
        "patience": encode_int(integer(o["patience"], "patience", 0, 2**63 - 1)),
        "maxRetries": integer(o["max_retries"], "max_retries", 0, 2**31 - 1),
        "seed": encode_int(integer(seed, "seed", 0, 2**64 - 1)),
        "attributes": {**encode_attributes(o["attributes"]), **goals.note},
    }
    if o["target"] is not None:
        spec["target"] = encode_float(number(o["target"], "target"))
    if o["lease"] is not None:
        spec["lease"] = encode_duration(o["lease"], "lease")
    proposer = o["proposer"]
    if o["constraints"]:
        proposer = _constrain(proposer, o["constraints"])
    for what, component in (("proposer", proposer), ("pruner", o["pruner"])):
        if component is not None:
            spec[what] = _encode_component(component, what)
    if space is None:
        kept = {"proposer": spec.pop("proposer", None)}
        spec["space"] = json.dumps(Space({MARK: Constant(MARK)}).to_json())
        spec["proposer"] = {"name": "random"}
        spec["attributes"] = {**spec["attributes"], MARK: json.dumps(kept)}
    return spec


def encode_limits(max_trials: int, timeout: float | None, max_cost: float) -> JSON:
    """Return limits of a study in the form of the wire."""
    limits: JSON = {
        "maxTrials": encode_int(integer(max_trials, "max_trials", 0, 2**63 - 1)),
        "maxCost": encode_float(number(max_cost, "max_cost")),
    }
    if timeout is not None:
        limits["timeout"] = encode_duration(timeout, "timeout")
    return limits


def taken_over(spec: JSON, base: JSON) -> JSON:
    """Return a specification with the settings of another where it has none."""
    none = {"maxTrials": "0", "maxCost": 0.0, "patience": "0", "maxRetries": MAX_RETRIES}
    keys = [k for k in SETTINGS if k != "seed" and k in base and spec.get(k) == none.get(k)]
    return {**spec, **{k: base[k] for k in keys}}


def larger_limits(spec: JSON, given: JSON) -> JSON:
    """Return the limits that are larger than those of a study that exists."""
    decode: dict[str, Callable[[Any], float]] = {
        "maxTrials": int,
        "maxCost": decode_float,
        "timeout": decode_duration,
    }
    keys = [k for k in decode if given.get(k) and spec.get(k)]
    return {k: given[k] for k in keys if 0 < decode[k](spec[k]) < decode[k](given[k])}


def _encode_component(component: Component, what: str) -> JSON:
    if isinstance(component, str):
        return {"name": component}
    try:
        name, options = component
        return {"name": str(name), "options": json.dumps(dict(options), allow_nan=False)}
    except (TypeError, ValueError) as e:
        raise InvalidRequest(
            f"{what} is {component!r}, give a name, or a tuple of a name and a dict of options"
        ) from e


def _constrain(proposer: Component | None, constraints: Sequence[str]) -> Component:
    """Return the proposer with limits of metrics among its options."""
    name, options = (proposer or "bkb", {}) if not isinstance(proposer, tuple) else proposer
    if name != "bkb":
        raise InvalidRequest(
            f"constraints need the proposer bkb, and the proposer is {name!r}, leave one out"
        )
    limits = {metric: dict(sides) for metric, sides in options.get("constraints", {}).items()}
    for text in [constraints] if isinstance(constraints, str) else constraints:
        found = _LIMIT.fullmatch(str(text))
        try:
            metric, sign, limit = found.groups() if found else ("", "", "nan")
            value = float(limit)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InvalidRequest(
                f"constraint {text!r} must be a metric, <= or >=, and a finite number, "
                "write 'latency <= 10'"
            )
        limits.setdefault(metric, {})["max" if sign == "<=" else "min"] = value
    return "bkb", {**options, "constraints": limits}


def check_same(study: StudyRecord, goals: Goals, space: SpaceLike | None) -> None:
    """Refuse to continue a study with other objectives or another space."""
    is_open = MARK in study.attributes
    if is_open != (space is None):
        has = "no" if is_open else "a"
        raise _errors.StudyExists(
            f"study {study.name!r} exists with {has} declared search space, take another name"
        )
    mine, theirs = (list(zip(g.names, g.directions, strict=True)) for g in (study.goals, goals))
    if not (study.goals.ordered and goals.ordered):
        mine.sort()
        theirs.sort()
    if mine != theirs:
        raise _errors.StudyExists(
            f"study {study.name!r} exists with the objectives {mine}, not {theirs}, "
            "take another name"
        )
    if not isinstance(space, Mapping) or not all(hasattr(p, "to_json") for p in space.values()):
        return
    given, stored = Space(space), study.space
    differ = [n for n in given if n not in stored or not same(given[n], stored[n])]
    differ += [n for n in stored if n not in given]
    if isinstance(space, Space) and space.constraints != stored.constraints:
        differ.append("constraints")
    if differ:
        raise _errors.StudyExists(
            f"study {study.name!r} exists with another search space, "
            f"{', '.join(map(repr, differ))} differ, take another name"
        )


def differences(spec: JSON, given: JSON) -> list[str]:
    """Return which settings of a specification differ from those of a study that exists.

    Settings that are left out or 0 are not compared, nor are attributes.
    """
    differ = []
    for key, name in SETTINGS.items():
        wanted, has = given.get(key), spec.get(key)
        if key in ("timeout", "lease") and wanted:
            wanted, has = decode_duration(wanted), decode_duration(has or "0s")
        if isinstance(wanted, dict):
            wanted, has = _components(wanted, has or {})
        if wanted not in (None, 0, "0") and wanted != has:
            differ.append(f"{name} {has or 0}, not {wanted}")
    return differ


def _components(given: JSON, stored: JSON) -> tuple[str, str]:
    """Return the names of two components, and the given options that differ.

    Other options have their defaults.
    """
    wanted, has = (json.loads(c.get("options") or "{}") for c in (given, stored))
    keys = [k for k in wanted if wanted[k] != has.get(k)]
    names = given["name"], stored.get("name", "none")
    if not keys or names[0] != names[1]:
        return names
    options = ({k: o.get(k) for k in keys} for o in (wanted, has))
    first, second = (f"{n} {json.dumps(o)}" for n, o in zip(names, options, strict=True))
    return first, second
