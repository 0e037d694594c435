"""Callbacks and exports, each with the real library."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_docs import NEIGHBOURS

import bkb


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed, {NEIGHBOURS[name]}")


def rows(n: int = 200) -> tuple[Any, Any]:
    np = pytest.importorskip("numpy", reason="NumPy is not installed")
    x = np.random.default_rng(0).random((n, 4))
    return x, (x[:, 0] > 0.5) + 0.1 * x[:, 1]


def make(client: bkb.Client, name: str, **options: Any) -> bkb.Study:
    """Make a study whose pruner ends what is worse than the median of three."""
    options = {"minimize": "loss", **options}
    pruner = ("median", {"min_trials": 3, "warmup_steps": 2})
    return client.create_study(name, {"x": bkb.Float(0, 1)}, pruner=pruner, **options)


def curves(study: bkb.Study, fit: Any) -> dict[str, list[bkb.TrialView]]:
    """Run good trainings and then bad ones, and return the trials by state."""

    def objective(trial: bkb.Trial) -> float:
        return float(fit(trial, trial.number < 4))

    study.optimize(objective, n_trials=6)
    found: dict[str, list[bkb.TrialView]] = {}
    for view in study.iter_trials(reports=True):
        found.setdefault(view.state, []).append(view)
    return found


def check(found: dict[str, list[bkb.TrialView]], rounds: int) -> None:
    assert {k: len(v) for k, v in found.items()} == {"completed": 4, "pruned": 2}
    for view in found["completed"]:
        assert [r.step for r in view.reports] == list(range(rounds))
        assert view.value == pytest.approx(view.reports[-1].values["loss"])
    for view in found["pruned"]:
        assert len(view.reports) < rounds and "pruned at step" in view.message


@pytest.mark.parametrize("way", ["train", "cv", "estimator"])
def test_xgboost(shared: bkb.Client, name: str, way: str) -> None:
    xgb = library("xgboost")
    from bkb.xgboost import BKBPruningCallback

    x, y = rows()
    data = xgb.DMatrix(x, y)

    def fit(trial: bkb.Trial, good: bool) -> float:
        eta = 0.3 if good else 1e-3
        monitor = {"train": "valid-rmse", "cv": "test-rmse", "estimator": "validation_0-rmse"}
        callbacks = [BKBPruningCallback(trial, monitor[way])]
        if way == "train":
            log: dict[str, Any] = {}
            xgb.train(
                {"eta": eta}, data, 8, [(data, "valid")], callbacks=callbacks, evals_result=log,
                verbose_eval=False,
            )  # fmt: skip
            return float(log["valid"]["rmse"][-1])
        if way == "cv":
            table = xgb.cv(
                {"eta": eta}, data, 8, nfold=3, callbacks=callbacks, as_pandas=False, seed=1
            )
            return float(table["test-rmse-mean"][-1])
        model = xgb.XGBRegressor(n_estimators=8, learning_rate=eta, callbacks=callbacks)
        model.fit(x, y, eval_set=[(x, y)], verbose=False)
        return float(model.evals_result()["validation_0"]["rmse"][-1])

    check(curves(make(shared, name), fit), 8)


@pytest.mark.parametrize("way", ["train", "cv", "estimator"])
def test_lightgbm(shared: bkb.Client, name: str, way: str) -> None:
    lgb = library("lightgbm")
    from bkb.lightgbm import BKBPruningCallback

    x, y = rows()

    def fit(trial: bkb.Trial, good: bool) -> float:
        params = {"learning_rate": 0.3 if good else 1e-3, "metric": "l2", "verbose": -1}
        data, log = lgb.Dataset(x, y), {}  # type: ignore[var-annotated]
        if way == "train":
            callbacks = [BKBPruningCallback(trial, "valid_0-l2"), lgb.record_evaluation(log)]
            lgb.train(params, data, 8, [lgb.Dataset(x, y, reference=data)], callbacks=callbacks)
            return float(log["valid_0"]["l2"][-1])
        if way == "cv":
            callbacks = [BKBPruningCallback(trial, "valid-l2")]
            table = lgb.cv(params, data, 8, nfold=3, stratified=False, callbacks=callbacks, seed=1)
            return float(table["valid l2-mean"][-1])
        model = lgb.LGBMRegressor(n_estimators=8, **params)
        model.fit(x, y, eval_set=[(x, y)], callbacks=[BKBPruningCallback(trial, "training-l2")])
        return float(model.evals_result_["training"]["l2"][-1])

    check(curves(make(shared, name), fit), 8)


def test_lightgbm_in_the_other_direction(shared: bkb.Client, name: str) -> None:
    lgb = library("lightgbm")
    from bkb.lightgbm import BKBPruningCallback

    x, y = rows()
    study = make(shared, name, minimize=None, maximize="auc")
    trial = study.ask()
    data = lgb.Dataset(x, y)
    with pytest.raises(bkb.InvalidRequest, match="lower values are better.*maximize 'auc'"):
        lgb.train(
            {"metric": "l2", "verbose": -1}, data, 2, [lgb.Dataset(x, y, reference=data)],
            callbacks=[BKBPruningCallback(trial, "valid_0-l2")],
        )  # fmt: skip


def test_unknown_monitor(shared: bkb.Client, name: str) -> None:
    xgb = library("xgboost")
    from bkb.xgboost import BKBPruningCallback

    x, y = rows()
    data, trial = xgb.DMatrix(x, y), make(shared, name).ask()
    for evals, has in (([(data, "valid")], "'valid-rmse'"), ([], "no metrics")):
        with pytest.raises(bkb.InvalidRequest, match=f"monitor is 'valid-mae' and .* has {has}"):
            xgb.train(
                {}, data, 2, evals, verbose_eval=False,
                callbacks=[BKBPruningCallback(trial, "valid-mae")],
            )  # fmt: skip


def test_keras(shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if "keras" not in sys.modules:
        monkeypatch.setenv("KERAS_BACKEND", "jax")
    keras = library("keras")
    from bkb.keras import BKBPruningCallback

    x, y = rows()

    def fit(trial: bkb.Trial, good: bool) -> float:
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.SGD(0.1 if good else 1e-5), loss="mse")
        past = model.fit(
            x, y, epochs=5, verbose=0, validation_data=(x, y),
            callbacks=[BKBPruningCallback(trial, "val_loss")],
        )  # fmt: skip
        return float(past.history["val_loss"][-1])

    check(curves(make(shared, name), fit), 5)
    trial = shared.load_study(name).ask()
    with pytest.raises(bkb.InvalidRequest, match="monitor is 'acc' and the training has 'loss'"):
        BKBPruningCallback(trial, "acc").on_epoch_end(0, {"loss": 1.0})


MODULE = """
import lightning, torch
from torch.utils.data import DataLoader, TensorDataset

class Line(lightning.LightningModule):
    def __init__(self, rate):
        super().__init__()
        self.rate, self.line = rate, torch.nn.Linear(4, 1)
    def loss(self, batch):
        x, y = batch
        return torch.nn.functional.mse_loss(self.line(x)[:, 0], y)
    def training_step(self, batch, _):
        return self.loss(batch)
    def validation_step(self, batch, _):
        self.log("val_loss", self.loss(batch), sync_dist=True)
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), self.rate)

def train(rate, callback, **options):
    lightning.seed_everything(0, verbose=False)
    x = torch.rand(200, 4)
    data = DataLoader(TensorDataset(x, (x[:, 0] > 0.5) + 0.1 * x[:, 1]), 20)
    trainer = lightning.Trainer(
        max_epochs=5, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[callback], **options
    )
    trainer.fit(Line(rate), data, data)
    return float(trainer.callback_metrics["val_loss"])
"""


@pytest.mark.filterwarnings("ignore")
def test_lightning(shared: bkb.Client, name: str, tmp_path: Path) -> None:
    library("lightning")
    from bkb.lightning import BKBPruningCallback

    scope: dict[str, Any] = {"__name__": "module"}
    exec(MODULE, scope)

    def fit(trial: bkb.Trial, good: bool) -> float:
        return float(scope["train"](0.1 if good else 1e-5, BKBPruningCallback(trial, "val_loss")))

    check(curves(make(shared, name), fit), 5)


PROCESSES = """
import sys, warnings, bkb
sys.path.insert(0, ".")
warnings.simplefilter("ignore")
from module import train
from bkb.lightning import BKBPruningCallback

def fit(trial):
    callback = BKBPruningCallback(trial, "val_loss")
    loss = train(
        0.1 if trial.number < 4 else 1e-5, callback, devices=2, strategy="ddp_spawn"
    )
    callback.check_pruned()
    return loss

if __name__ == "__main__":
    pruner = ("median", {"min_trials": 3, "warmup_steps": 2})
    study = bkb.create_study("s", {"x": bkb.Float(0, 1)}, minimize="loss", pruner=pruner)
    study.optimize(fit, n_trials=5)
    print([(t.state, len(t.reports)) for t in study.iter_trials(reports=True)])
"""


def test_lightning_with_two_processes(tmp_path: Path) -> None:
    library("lightning")
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "script.py").write_text(PROCESSES)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    *good, (state, reports) = eval(done.stdout.strip().splitlines()[-1])
    assert good == [("completed", 5)] * 4 and state == "pruned" and reports < 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["export", "callback"])
def test_mlflow(shared: bkb.Client, name: str, tmp_path: Path, way: str) -> None:
    mlflow = library("mlflow")
    pytest.importorskip("sqlalchemy", reason=f"SQLAlchemy is not installed, {NEIGHBOURS['mlflow']}")
    from bkb.mlflow import MLflowCallback, export

    def objective(trial: bkb.Trial) -> Any:
        if trial.number == 2:
            raise ValueError("boom")
        for step in range(4):
            trial.report(trial["x"] + step, step)
        if trial.number == 3:
            raise bkb.TrialPruned("poor")
        return {"loss": [trial["x"], trial["x"] + 2], "größe/ok": 3}

    uri = f"sqlite:///{tmp_path}/mlflow.db"
    study = shared.create_study(
        name, {"x": bkb.Float(0, 1), "model [a]": bkb.Categorical(["svm"])}, minimize="loss"
    )
    callback = MLflowCallback("an experiment", uri)
    callbacks = [callback] if way == "callback" else []
    study.optimize(objective, n_trials=5, catch=ValueError, callbacks=callbacks, n_jobs=1)
    study.ask()  # which still runs
    id_ = callback.run_id(study) if way == "callback" else export(study, "an experiment", uri)
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("an experiment")
    runs = client.search_runs([experiment.experiment_id])
    parent = client.get_run(id_)
    assert parent.info.run_name == name and parent.info.status == "FINISHED"
    assert parent.data.tags["bkb.direction.loss"] == "minimize"
    steps = [(m.step, m.value) for m in client.get_metric_history(id_, "loss")]
    views = list(study.iter_trials(states=["completed"]))
    assert steps == [(v.number, v.value) for v in views]
    children = {r.data.tags["bkb.trial"]: r for r in runs if r.info.run_id != id_}
    assert sorted(children) == ["0", "1", "2", "3", "4"]
    assert [children[str(i)].info.status for i in range(5)] == [
        "FINISHED", "FINISHED", "FAILED", "KILLED", "FINISHED",
    ]  # fmt: skip
    first = children["0"]
    assert first.data.tags["mlflow.parentRunId"] == id_
    assert first.data.params == {"x": str(views[0].params["x"]), "model _a_": "svm"}
    assert first.data.metrics["größe/ok"] == 3
    history = client.get_metric_history(first.info.run_id, "loss")
    x = float(views[0].params["x"])
    assert [(m.step, m.value) for m in history] == [
        *((s, pytest.approx(x + s)) for s in range(4)),
        (4, pytest.approx(x + 1)),
    ]
    assert children["2"].data.tags["bkb.message"] == "ValueError: boom"
    assert math.isclose(first.info.end_time / 1000, views[0].ended.timestamp(), abs_tol=1)  # type: ignore[union-attr]


@pytest.mark.parametrize("way", ["train", "estimator"])
def test_catboost(shared: bkb.Client, name: str, way: str, tmp_path: Path) -> None:
    catboost = library("catboost")
    from bkb.catboost import BKBPruningCallback

    x, y = rows()
    options = {"allow_writing_files": False, "train_dir": str(tmp_path), "logging_level": "Silent"}

    def fit(trial: bkb.Trial, good: bool) -> float:
        callback = BKBPruningCallback(trial, "validation-RMSE")
        rate = 0.3 if good else 1e-4
        given = {"iterations": 12, "learning_rate": rate, "random_seed": 0, **options}
        if way == "train":
            train, test = catboost.Pool(x[:150], y[:150]), catboost.Pool(x[150:], y[150:])
            given["loss_function"] = "RMSE"
            model = catboost.CatBoost(given).fit(train, eval_set=test, callbacks=[callback])
        else:
            model = catboost.CatBoostRegressor(**given)
            model.fit(x[:150], y[:150], eval_set=(x[150:], y[150:]), callbacks=[callback])
        callback.check_pruned()
        return float(model.get_evals_result()["validation"]["RMSE"][-1])

    study = make(shared, name)
    found = curves(study, fit)
    assert {k: len(v) for k, v in found.items()} == {"completed": 4, "pruned": 2}
    first = min(r.step for r in found["completed"][0].reports)
    assert [r.step for r in found["completed"][0].reports] == list(range(first, first + 12))
    trial = study.ask()
    callback = BKBPruningCallback(trial, "learn-R2")
    catboost.CatBoostRegressor(iterations=3, **options).fit(x, y, callbacks=[callback])
    with pytest.raises(bkb.InvalidRequest, match="the training has 'learn-RMSE', give the name"):
        callback.check_pruned()


def logged(shared: bkb.Client, name: str, callback: Any) -> bkb.Study:
    """Run trials with a callback that logs them."""

    def objective(trial: bkb.Trial) -> Any:
        if trial.number == 1:
            raise ValueError("boom")
        for step in range(3):
            trial.report(trial["x"] + step, step)
        if trial.number == 2:
            raise bkb.TrialPruned("poor")
        return {"loss": [trial["x"], trial["x"] + 2], "acc": 3}

    space = {"x": bkb.Float(0, 1), "c": bkb.Categorical([None, (1, 2)])}
    study = shared.create_study(name, space, minimize="loss")
    study.optimize(objective, n_trials=4, catch=ValueError, callbacks=[callback])
    return study


def wanted(view: bkb.TrialView) -> list[tuple[int, float]]:
    """Return the steps and values of the objective that a log has."""
    found = [(r.step, r.values["loss"]) for r in view.reports]
    return [*found, (3, view.value)] if view.value is not None else found


def same(wanted: list[tuple[int, float]], found: list[tuple[int, float]]) -> None:
    assert [s for s, _ in wanted] == [s for s, _ in found]
    assert [v for _, v in found] == pytest.approx([v for _, v in wanted], rel=1e-6)


def test_tensorboard(shared: bkb.Client, name: str, tmp_path: Path) -> None:
    library("tensorboardX")
    library("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from bkb.tensorboard import TensorBoardCallback

    study = logged(shared, name, TensorBoardCallback(tmp_path))
    for view in study.trials:
        read = EventAccumulator(str(tmp_path / name / str(view.number)))
        read.Reload()
        tags = read.Tags()["scalars"]
        if view.number == 1:
            assert "loss" not in tags
            continue
        same(wanted(view), [(e.step, e.value) for e in read.Scalars("loss")])
        if view.value is not None:
            assert read.Scalars("acc")[0].value == 3
        data = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        assert b"(1, 2)" in data or b"None" in data


def test_trackio(
    shared: bkb.Client, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    library("trackio")
    from trackio.sqlite_storage import SQLiteStorage

    from bkb.trackio import TrackioCallback

    study = logged(shared, name, TrackioCallback(name, auto_log_gpu=False, auto_log_cpu=False))
    for view in study.trials:
        run = f"{name} {view.number}"
        rows = SQLiteStorage.get_logs(name, run)
        same(wanted(view), [(r["step"], r["loss"]) for r in rows if "loss" in r])
        config = SQLiteStorage.get_run_config(name, run)
        assert config["x"] == view.params["x"] and config["bkb.state"] == view.state


def records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a log of W&B, which has the form of LevelDB's."""
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
        length, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # a whole record, or its last part
            yield whole
            whole = b""


def test_wandb(
    shared: bkb.Client, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("wandb")
    from wandb.proto import wandb_internal_pb2

    from bkb.wandb import WandbCallback

    monkeypatch.setenv("WANDB_SILENT", "true")
    study = logged(shared, name, WandbCallback(mode="offline", dir=str(tmp_path)))
    files = sorted(tmp_path.rglob("run-*.wandb"))
    views = study.trials
    assert len(files) == len(views)
    by_name = {}
    for file in files:
        points, title = [], ""
        config: dict[str, Any] = {}
        for data in records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.run.display_name:
                title = record.run.display_name
                assert (record.run.project, record.run.run_group) == (name, name)
                config |= {u.key: json.loads(u.value_json) for u in record.run.config.update}
            row = {i.key or i.nested_key[0]: i.value_json for i in record.history.item}
            if "loss" in row:
                points.append((record.history.step.num, float(row["loss"])))
        by_name[title] = points, config
    for view in views:
        points, config = by_name[f"{name} {view.number}"]
        same(wanted(view), points)
        assert config["x"] == view.params["x"] and config["bkb.state"] == view.state


@pytest.mark.parametrize(
    "name",
    ["xgboost", "lightgbm", "keras", "lightning", "mlflow", "tensorboard", "trackio", "wandb"],
)
def test_without_the_library(name: str) -> None:
    needed = "tensorboardX" if name == "tensorboard" else name
    script = f"import sys; sys.modules[{needed!r}] = None; import bkb.{name}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"run pip install 'bkb-tuner[{name}]'" in done.stderr
    assert importlib.util.find_spec(f"bkb.{name}") is not None
