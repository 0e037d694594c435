"""How the modules of the package stand on one another, and what it shows."""

from __future__ import annotations

import ast
import graphlib
import inspect
from pathlib import Path

import bkb

SOURCE = Path(bkb.__file__).parent

PUBLIC = """
AlreadyTold Artifact Cancelled Categorical Client Constant DataDamaged DeadlineExceeded Denied
Diagnosis Error Event Float Int InvalidRequest LeaseLost LimitReached MayHaveHappened NoTrialNow
NotFound Ordinal Parameter Report ServerFault Space Study StudyExists StudyFinished StudyPaused
StudyStatus Suggestion Trial TrialNotRunning TrialPruned TrialView Unavailable Unsupported connect
create_study delete_study load_study open_file set_verbosity studies
"""

MEMBERS = {
    bkb.Client: "create_study delete_study load_study server studies transport",
    bkb.Study: """
        add_trials artifacts ask best_params best_trial best_value delete_artifact diagnosis
        directions download_artifact enqueue extend finish generations importances iter_trials name
        objective_names optimize pareto_front pause plot resume set_attributes space spec status
        stop tell to_dataframe to_optuna trial trials upload_artifact watch
    """,
    bkb.Trial: """
        artifacts delete_artifact download_artifact epoch number params renew report set_attributes
        should_prune stop_reason study suggest_categorical suggest_float suggest_int suggestion
        tell upload_artifact view worker
    """,
}


def imports(file: Path) -> set[str]:
    """Return the modules of the package that a file imports, anywhere in it."""
    parts = ["bkb", *file.relative_to(SOURCE).with_suffix("").parts]
    package = parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1] + (node.module or "").split(".")
            base = [b for b in base if b]
            names = [] if node.module else [a.name for a in node.names]
            found |= {".".join([*base, n]) for n in names} or {".".join(base)}
        else:
            absolute = [node.module] if isinstance(node, ast.ImportFrom) else []
            absolute += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            assert not any(str(m).partition(".")[0] == "bkb" for m in absolute), file
    return found


def test_no_circle_of_imports() -> None:
    graph = {}
    for file in SOURCE.rglob("*.py"):
        module = ".".join(["bkb", *file.relative_to(SOURCE).with_suffix("").parts])
        graph[module.removesuffix(".__init__")] = imports(file)
    assert len(graph) > 30 and "bkb._study" in graph["bkb._client"]
    known = set(graph)
    assert all(i in known for found in graph.values() for i in found), "an unknown module"
    order = list(graphlib.TopologicalSorter(graph).static_order())
    floors = ["_errors", "_codec", "_space", "_views", "_service", "_held", "_study", "_client"]
    places = [order.index(f"bkb.{m}") for m in floors]
    assert places == sorted(places)


def test_modules_are_short() -> None:
    lengths = {f.name: len(f.read_text().splitlines()) for f in SOURCE.rglob("*.py")}
    assert not {name: n for name, n in lengths.items() if n > 600}


def test_records_know_no_wire() -> None:
    for module in ("_space", "_goals", "_views", "_spec", "_domains", "_presence", "_frame"):
        wire = {"bkb._transport", "bkb._line", "bkb._server", "bkb._service"}
        assert not imports(SOURCE / f"{module}.py") & wire, module


def test_public_names() -> None:
    assert sorted(bkb.__all__) == sorted(PUBLIC.split())
    shown = {n for n in dir(bkb) if not n.startswith("_") and not inspect.ismodule(vars(bkb)[n])}
    assert shown == set(PUBLIC.split())


def test_public_members(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, {"x": bkb.Float(0, 1)}, minimize="loss")
    for thing in (shared, study, study.ask()):
        shown = {n for n in dir(thing) if not n.startswith("_")}
        assert shown == set(MEMBERS[type(thing)].split()), type(thing)
    series = shared.create_study(name + "d", minimize="loss")
    assert type(series) is bkb.Study and dir(series) == dir(study)
