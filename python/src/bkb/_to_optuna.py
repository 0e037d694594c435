"""Studies as studies of Optuna."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from ._goals import Goals
from ._space import Constant, Float, Int, Parameter, Space
from ._views import TrialView, last_epoch

STATES = {
    "queued": TrialState.WAITING,
    "running": TrialState.RUNNING,
    "completed": TrialState.COMPLETE,
    "failed": TrialState.FAIL,
    "infeasible": TrialState.FAIL,
    "pruned": TrialState.PRUNED,
}


def to_optuna(
    name: str,
    space: Space,
    goals: Goals,
    attributes: Mapping[str, Any],
    trials: Iterable[TrialView],
    storage: Any,
) -> optuna.Study:
    """Make a copy of a study. See `Study.to_optuna`."""
    directions = [StudyDirection[d.upper()] for d in goals.directions]
    copy = optuna.create_study(storage=storage, study_name=name, directions=directions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        copy.set_metric_names(list(goals.names))
    for key, value in attributes.items():
        copy.set_user_attr(key, value)
    distributions = {name: distribution(p) for name, p in space.items()}
    for view in trials:
        copy.add_trial(_frozen(view, space, distributions, goals.limits))
    return copy


def distribution(p: Parameter) -> BaseDistribution:
    """Return the distribution of a parameter. Optuna has no ordinals and no reverse-log."""
    if isinstance(p, Float):
        return FloatDistribution(p.low, p.high, log=p.log, step=None if p.log else p.step)
    if isinstance(p, Int):
        step = 1 if p.log else int(p.step or 1)
        return IntDistribution(int(p.low), int(p.high), log=p.log, step=step)
    return CategoricalDistribution([p.value] if isinstance(p, Constant) else p.names)


def _frozen(
    view: TrialView,
    space: Space,
    distributions: Mapping[str, BaseDistribution],
    limits: Mapping[str, Mapping[str, float]],
) -> FrozenTrial:
    state = STATES[view.state]
    objective = view.objectives[0]
    reports = {
        r.step: r.values[objective] for r in last_epoch(view.reports) if objective in r.values
    }
    values = list(view.values) if view.values and state == TrialState.COMPLETE else None
    if state == TrialState.PRUNED and reports and len(view.objectives) == 1:
        values = [reports[max(reports)]]  # as Optuna does
    system: dict[str, Any] = {}
    for name, limit in limits.items():
        if view.metrics.get(name):
            v = sum(view.metrics[name]) / len(view.metrics[name])
            if "max" in limit:
                system[f"constraints:{name} max"] = v - limit["max"]
            if "min" in limit:
                system[f"constraints:{name} min"] = limit["min"] - v
    if not hasattr(FrozenTrial, "constraints"):  # Optuna 4 has them without names
        told = [v for k, v in system.items() if k.startswith("constraints:")]
        system.update({"constraints": told} if told else {})
    # Of a study without a declared space the parameters are known from its second trial on.
    params = {n: space[n].coerce(v) for n, v in view.params.items() if n in distributions}
    if state == TrialState.WAITING:  # Optuna's queue
        system["fixed_params"], params = params, {}
    return FrozenTrial(
        number=view.number,
        trial_id=view.number,
        state=state,
        value=None,
        values=values,
        datetime_start=None
        if state == TrialState.WAITING
        else _local(view.started or view.ended or view.created),
        datetime_complete=_local(view.ended or view.created) if state.is_finished() else None,
        params=params,
        distributions={n: distributions[n] for n in params},
        user_attrs=_attributes(view),
        system_attrs=system,
        intermediate_values=reports,
    )


def _attributes(view: TrialView) -> dict[str, Any]:
    attributes: dict[str, Any] = dict(view.attributes)
    for name, values in view.metrics.items():
        if name not in view.objectives or len(values) > 1:
            attributes[name] = values[0] if len(values) == 1 else list(values)
    ours = {
        "bkb:state": view.state if view.state == "infeasible" else "",
        "bkb:reason": view.reason,
        "bkb:message": view.message,
        "bkb:origin": view.origin,
        "bkb:cost": view.cost,
        "bkb:std_err": dict(view.std_errs),
    }
    return {**attributes, **{k: v for k, v in ours.items() if v}}


def _local(t: datetime | None) -> datetime | None:
    """Return a time as Optuna has it, local and without a zone."""
    return None if t is None else t.astimezone().replace(tzinfo=None)
