"""Arguments that several functions share, with their types and defaults."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from ._goals import Direction, Names, Reason, State

Component = str | tuple[str, Mapping[str, Any]]
Path = str | os.PathLike[str]
F = TypeVar("F", bound=Callable[..., Any])

MAX_RETRIES = 3  # as on the command line


class SpecOptions(TypedDict, total=False):
    """Settings of a study, which `bkb.create_study` describes."""

    minimize: Names | None
    maximize: Names | None
    objectives: Mapping[str, Direction] | None
    directions: Sequence[Direction] | None
    max_trials: int
    timeout: float | None
    max_cost: float
    patience: int
    target: float | None
    lease: float | None
    max_retries: int
    seed: int | None
    proposer: Component | None
    pruner: Component | None
    attributes: Mapping[str, Any] | None
    constraints: Sequence[str]


SPEC: SpecOptions = {
    "minimize": None,
    "maximize": None,
    "objectives": None,
    "directions": None,
    "max_trials": 0,
    "timeout": None,
    "max_cost": 0.0,
    "patience": 0,
    "target": None,
    "lease": None,
    "max_retries": MAX_RETRIES,
    "seed": None,
    "proposer": None,
    "pruner": None,
    "attributes": None,
    "constraints": (),
}


class OutcomeOptions(TypedDict, total=False):
    """Arguments of `bkb.Study.tell`, which describes them."""

    state: State | None
    reason: Reason | None
    message: str
    std_err: Any
    cost: float | None
    attributes: Mapping[str, Any] | None


OUTCOME: OutcomeOptions = {
    "state": None,
    "reason": None,
    "message": "",
    "std_err": None,
    "cost": None,
    "attributes": None,
}


class AskOptions(TypedDict, total=False):
    """Arguments of `bkb.Study.ask`, which describes them."""

    worker: str
    lease: float | None
    fixed: Mapping[str, Any] | None
    wait_for: float | Iterable[Any]


ASK: AskOptions = {"worker": "", "lease": None, "fixed": None, "wait_for": 0.0}


class ServerOptions(TypedDict, total=False):
    """Arguments of `bkb.connect`, which describes them."""

    token: str | None
    ca: Path | None
    cert: Path | None
    key: Path | None
    retry_for: float


def spelled(options: type, defaults: Mapping[str, Any]) -> Callable[[F], F]:
    """Show the options of a function one by one, and refuse others, as if written out."""

    def spell(f: F) -> F:
        @functools.wraps(f)
        def call(*args: Any, **given: Any) -> Any:
            for name in given.keys() - known:
                raise TypeError(f"{f.__name__}() got an unexpected keyword argument {name!r}")
            return f(*args, **given)

        signature = inspect.signature(f)
        own = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
        known = {p.name for p in own} | defaults.keys()
        types = {n: getattr(t, "__forward_arg__", t) for n, t in options.__annotations__.items()}
        more = [
            inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=v, annotation=types[n])
            for n, v in defaults.items()
        ]
        places = sorted([*own, *more], key=lambda p: p.kind == p.KEYWORD_ONLY)
        shown: Any = call
        shown.__signature__ = signature.replace(parameters=places)
        result: F = shown
        return result

    return spell
