"""What a study measures: its objectives and the metrics with a limit."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ._codec import JSON, decode_float, encode_attributes, encode_float, number, plain, text
from ._errors import InvalidRequest

Direction = Literal["minimize", "maximize"]
State = Literal["completed", "failed", "infeasible", "pruned"]
Reason = Literal["crash", "cancelled", "nan"]
Names = str | Sequence[str]

DIRECTIONS = ("minimize", "maximize")
ORDERED = "bkb:ordered"  # attribute of a study whose objectives were given in this order
MARK = "define-by-run"  # attribute and only parameter of the first study of a series
STATES = ("completed", "failed", "infeasible", "pruned")
REASONS = ("crash", "cancelled", "nan")


@dataclass(frozen=True)
class Goals:
    """Objectives of a study, and limits of metrics.

    Attributes
    ----------
    names, directions : tuple of str
        Each objective's name, and ``"minimize"`` or ``"maximize"``.
    ordered : bool
        Whether the order of the names is one that the user knows. It is not if
        ``minimize=`` and ``maximize=`` named them, which sorts them by direction.
    limits : dict
        ``"min"`` and ``"max"`` of the metrics that have a limit.

    """

    names: tuple[str, ...]
    directions: tuple[str, ...]
    ordered: bool = True
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @classmethod
    def given(
        cls,
        minimize: Names | None,
        maximize: Names | None,
        objectives: Mapping[str, Direction] | None,
        directions: Sequence[Direction] | None,
    ) -> Goals:
        """Return the objectives that the arguments of ``create_study`` name."""
        if directions is not None:
            each = [directions] if isinstance(directions, str) else list(directions)
            names = ["value"] if len(each) == 1 else [f"value{i}" for i in range(len(each))]
            pairs = list(zip(names, each, strict=True))
        elif objectives is not None:
            if not isinstance(objectives, Mapping):
                raise InvalidRequest(
                    f"objectives is {objectives!r}, give a dict from names to directions, "
                    "such as {'acc': 'maximize', 'latency': 'minimize'}"
                )
            pairs = list(objectives.items())
        else:
            pairs = []
            for given, direction in ((minimize, "minimize"), (maximize, "maximize")):
                pairs += [
                    (n, direction) for n in ([given] if isinstance(given, str) else given or [])
                ]
        ways = (objectives, directions, minimize if minimize is not None else maximize)
        if sum(way is not None for way in ways) > 1:
            raise InvalidRequest(
                "objectives are given in several ways, use one of minimize= and maximize=, "
                "objectives= and directions="
            )
        if not pairs:
            raise InvalidRequest(
                "the study has no objective, give minimize= or maximize= the name of one"
            )
        for name, direction in pairs:
            if direction not in DIRECTIONS:
                raise InvalidRequest(
                    f"the direction of objective {name!r} is {direction!r}, "
                    "give 'minimize' or 'maximize'"
                )
        known = objectives is not None or directions is not None
        return cls(
            tuple(n for n, _ in pairs), tuple(d for _, d in pairs), known or not _sorted(pairs)
        )

    @classmethod
    def of(cls, message: JSON) -> Goals:
        """Return those of a study on the server."""
        spec, attributes = message["spec"], message.get("attributes", {})
        pairs = [
            (o["name"], o["direction"].removeprefix("DIRECTION_").lower())
            for o in spec["objectives"]
        ]
        proposer = spec.get("proposer", {})
        if MARK in attributes:
            proposer = json.loads(attributes[MARK])["proposer"] or {}
        limits = json.loads(proposer.get("options") or "{}").get("constraints") or {}
        ordered = ORDERED in attributes or not _sorted(pairs)
        return cls(tuple(n for n, _ in pairs), tuple(d for _, d in pairs), ordered, limits)

    def encode(self) -> list[JSON]:
        """Return the objectives in the form of the wire."""
        pairs = zip(self.names, self.directions, strict=True)
        return [{"name": n, "direction": "DIRECTION_" + d.upper()} for n, d in pairs]

    @property
    def note(self) -> dict[str, str]:
        """The attributes that keep what the form of the wire does not say."""
        pairs = list(zip(self.names, self.directions, strict=True))
        return {ORDERED: "1"} if self.ordered and _sorted(pairs) else {}

    def metrics(self, value: Any, std_err: Any = None) -> dict[str, JSON]:
        """Return metrics as the wire has them.

        value is a number, a sequence with a number for each objective, or a mapping from
        metrics to a number or to a sequence of replicates.
        """
        names = self.names
        value = plain(value) if getattr(value, "ndim", 0) == 0 else list(value)
        if isinstance(value, Mapping):
            named = dict(value)
        elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
            if len(value) != len(names):
                raise InvalidRequest(
                    f"value has {len(value)} numbers and the study has the objectives "
                    f"{', '.join(names)}, give one number for each"
                )
            if not self.ordered:
                each = ", ".join(f"{n!r}: …" for n in names)
                raise InvalidRequest(
                    f"value is {value!r} without names, and the study has objectives to minimize "
                    f"and others to maximize, whose order is not known, give {{{each}}}, or "
                    "create the study with an ordered dict of objectives="
                )
            named = dict(zip(names, value, strict=True))
        elif value is None:
            raise InvalidRequest("value is None, return a number from the objective")
        elif len(names) != 1:
            form = "a sequence or a dict" if self.ordered else "a dict"
            each = ", ".join(f"{n!r}: …" for n in names)
            raise InvalidRequest(
                f"value is {value!r} and the study has the objectives {', '.join(names)}, "
                f"give {form} with a number for each, such as {{{each}}}"
            )
        else:
            named = {names[0]: value}
        errors = std_err if isinstance(std_err, Mapping) else {names[0]: std_err}
        metrics: dict[str, JSON] = {}
        for name, v in named.items():
            many = v if isinstance(v, (list, tuple)) or getattr(v, "ndim", 0) == 1 else [v]
            m: JSON = {"values": [encode_float(number(x, f"value of {name}")) for x in many]}
            if errors.get(name) is not None:
                m["stdErr"] = encode_float(number(errors[name], f"std_err of {name}"))
            metrics[name] = m
        return metrics

    def report(self, value: Any) -> dict[str, float | str]:
        """Return the values of a report as the wire has them.

        Metrics that are no objectives and not finite are left out, since nothing uses them.
        """
        metrics = self.metrics(value)
        for name, m in metrics.items():
            if len(m["values"]) != 1:
                raise InvalidRequest(f"the report of {name} has replicates, give one number")
        values = {name: m["values"][0] for name, m in metrics.items()}
        return {n: v for n, v in values.items() if n in self.names or not isinstance(v, str)}

    def outcome(
        self,
        value: Any = None,
        *,
        state: State | None = None,
        reason: Reason | None = None,
        message: str = "",
        std_err: Any = None,
        cost: float | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> JSON:
        """Return an outcome as the wire has it.

        A NaN objective value makes the trial failed, and a metric that is infinite beyond
        its limit makes it infeasible. Other metrics that are not finite are left out, and the
        message names those that have a limit.
        """
        if state is None:
            state = "completed"
            if value is None:
                raise InvalidRequest("value is None, give a number or a state such as 'failed'")
        if state not in STATES:
            raise InvalidRequest(f"state is {state!r}, give one of {', '.join(STATES)}")
        if reason is not None and (state != "failed" or reason not in REASONS):
            raise InvalidRequest(
                f"reason is {reason!r} and state is {state!r}, only a failed trial has a reason, "
                f"one of {', '.join(REASONS)}"
            )
        metrics = {} if value is None else self.metrics(value, std_err)
        nan = [n for n in self.names if "NaN" in metrics.get(n, {}).get("values", [])]
        beyond, lost = self._unstored(metrics)
        if nan and state == "completed":
            state, reason = "failed", "nan"
            message = message or f"{', '.join(nan)} is NaN"
        elif state == "completed":
            state = "infeasible" if beyond else state
            message = message or "; ".join(beyond + lost)
        metrics = {
            n: m
            for n, m in metrics.items()
            if "NaN" not in m["values"]
            and (n in self.names or not any(isinstance(v, str) for v in m["values"]))
        }
        outcome: JSON = {"state": "TRIAL_STATE_" + state.upper()}
        if reason is not None:
            outcome["reason"] = "FAIL_REASON_" + reason.upper()
        if message:
            outcome["message"] = text(message)
        if metrics:
            outcome["metrics"] = metrics
        if cost is not None:
            outcome["cost"] = encode_float(number(cost, "cost"))
        if attributes:
            outcome["attributes"] = encode_attributes(attributes)
        return outcome

    def _unstored(self, metrics: Mapping[str, JSON]) -> tuple[list[str], list[str]]:
        """Say which limits break by an infinity, and by a number that the server does not store."""
        beyond, lost = [], []
        for name in sorted(self.limits.keys() & metrics.keys() - set(self.names)):
            values = list(map(decode_float, metrics[name]["values"]))
            sides = self.limits[name].items()
            limit = " and ".join(f"at {'least' if s == 'min' else 'most'} {x:g}" for s, x in sides)
            mean = sum(values) / len(values)
            if math.isinf(mean) and not all(keeps(values, side, x) for side, x in sides):
                beyond.append(f"{name} is {mean}, and must be {limit}")
            elif not math.isfinite(mean):
                finite = "; tell a finite number that keeps it" if math.isinf(mean) else ""
                lost.append(
                    f"{name} is {mean}, which is not stored, so the trial breaks the limit "
                    f"{limit}{finite}"
                )
        return beyond, lost

    def broken(self, metrics: Mapping[str, Sequence[float]]) -> list[str]:
        """Say which limits the metrics of a trial break. A metric that is missing breaks its."""
        return [
            f"{name} {side} {limit:g}"
            for name, sides in self.limits.items()
            for side, limit in sides.items()
            if not keeps(metrics.get(name, ()), side, limit)
        ]


def keeps(values: Sequence[float], side: str, limit: float) -> bool:
    """Tell whether the mean of a metric keeps a limit."""
    if not values:
        return False
    mean = sum(values) / len(values)
    return mean <= limit if side == "max" else mean >= limit


def _sorted(pairs: Sequence[tuple[str, str]]) -> bool:
    """Tell whether ``minimize=`` and ``maximize=`` would give objectives of both this order."""
    directions = [d for _, d in pairs]
    return len(set(directions)) == 2 and directions == sorted(directions, reverse=True)
