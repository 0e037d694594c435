"""Ignite, fastai and transformers, each with the real library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_callbacks import check, curves, library, make

import bkb

pytestmark = pytest.mark.filterwarnings("ignore")


def tensors(n: int = 200) -> tuple[Any, Any]:
    torch = library("torch")
    torch.manual_seed(0)
    x = torch.rand(n, 4)
    return x, ((x[:, 0] > 0.5) + 0.1 * x[:, 1])[:, None]


def test_ignite(shared: bkb.Client, name: str) -> None:
    library("ignite")
    import torch
    from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
    from ignite.metrics import Loss

    from bkb.ignite import BKBPruningCallback

    x, y = tensors()
    data = [(x[i : i + 20], y[i : i + 20]) for i in range(0, 200, 20)]

    def fit(trial: bkb.Trial, good: bool, monitor: str = "mse") -> float:
        torch.manual_seed(0)
        model, loss = torch.nn.Linear(4, 1), torch.nn.functional.mse_loss
        rate = torch.optim.SGD(model.parameters(), 0.1 if good else 1e-5)
        trainer = create_supervised_trainer(model, rate, loss)
        evaluator = create_supervised_evaluator(model, {"mse": Loss(loss)})
        callback = BKBPruningCallback(trial, monitor, trainer)
        evaluator.add_event_handler(Events.COMPLETED, callback)
        trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda _: evaluator.run(data))
        trainer.run(data, max_epochs=5)
        return float(evaluator.state.metrics["mse"])

    found = curves(make(shared, name), fit)
    assert {k: len(v) for k, v in found.items()} == {"completed": 4, "pruned": 2}
    for view in found["completed"]:
        assert [r.step for r in view.reports] == [1, 2, 3, 4, 5]
        assert view.value == pytest.approx(view.reports[-1].values["loss"])
    trial = shared.load_study(name).ask()
    with pytest.raises(bkb.InvalidRequest, match="monitor is 'acc' and the training has 'mse'"):
        fit(trial, True, "acc")


def test_fastai(shared: bkb.Client, name: str) -> None:
    library("fastai")
    import fastai.callback.all  # noqa: F401  # adds methods to learners
    import torch
    from fastai.data.core import DataLoaders
    from fastai.learner import Learner
    from fastai.optimizer import SGD

    from bkb.fastai import BKBPruningCallback

    x, y = tensors()
    rows = torch.utils.data.TensorDataset(x, y)

    def fit(trial: bkb.Trial, good: bool, monitor: str = "valid_loss") -> float:
        torch.manual_seed(0)
        loader = torch.utils.data.DataLoader(rows, 20)
        data, model = DataLoaders(loader, loader), torch.nn.Linear(4, 1)
        learner = Learner(data, model, loss_func=torch.nn.MSELoss(), opt_func=SGD)
        with learner.no_bar(), learner.no_logging():
            learner.fit(5, 0.1 if good else 1e-5, cbs=[BKBPruningCallback(trial, monitor)])
        return float(learner.recorder.values[-1][1])

    check(curves(make(shared, name), fit), 5)
    trial = shared.load_study(name).ask()
    with pytest.raises(bkb.InvalidRequest, match="monitor is 'acc' and the training has 'train"):
        fit(trial, True, "acc")


def trainer(folder: Path) -> Any:
    """Return a Trainer of a tiny model, which learns whether a number is above a half."""
    library("transformers")
    import torch
    import transformers

    x, y = tensors(64)
    rows = [{"x": a, "labels": b} for a, b in zip(x, y, strict=True)]

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.line = torch.nn.Linear(4, 1)

        def forward(self, x: Any, labels: Any = None) -> Any:
            out = self.line(x)
            return {"loss": torch.nn.functional.mse_loss(out, labels), "logits": out}

    arguments = transformers.TrainingArguments(
        str(folder),
        num_train_epochs=5,
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        lr_scheduler_type="constant",
        optim="sgd",
        seed=1,
    )
    return transformers.Trainer(
        model_init=lambda trial=None: Model(),
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows,
    )


SPACE = {
    "learning_rate": bkb.Float(1e-5, 1, log=True),
    "per_device_train_batch_size": bkb.Categorical([8, 16]),
}


def test_transformers(own: bkb.Client, tmp_path: Path) -> None:
    given = trainer(tmp_path)
    from bkb.transformers import hyperparameter_search

    assert own.server is not None
    db = own.server.db
    best = hyperparameter_search(given, SPACE, n_trials=8, study="hf", db=db, seed=1)
    study = own.load_study("hf")
    views = study.trials
    assert [t.state for t in views] == ["completed"] * 8
    assert all(len(study.trial(t.number).reports) == 5 for t in views)
    assert best.run_id == str(study.best_trial.number) and best.objective == study.best_value
    assert best.hyperparameters == dict(study.best_params) and best.objective < 0.1
    assert given.args.learning_rate == 5e-5 and given.args.per_device_train_batch_size == 8
    # The arguments were set: a trial trained again has its value.
    for k, v in views[3].params.items():
        setattr(given.args, k, v)
    given.train()
    assert given.evaluate()["eval_loss"] == pytest.approx(views[3].value, rel=1e-4)
    with pytest.raises(bkb.InvalidRequest, match="'rate' is not in TrainingArguments"):
        hyperparameter_search(given, {"rate": bkb.Float(0, 1)}, study="bad", db=db)
    given.model_init = None
    with pytest.raises(bkb.InvalidRequest, match="no model_init"):
        hyperparameter_search(given, SPACE, db=db)


def test_transformers_with_a_pruner_and_a_function(own: bkb.Client, tmp_path: Path) -> None:
    given = trainer(tmp_path)
    from bkb.transformers import hyperparameter_search

    assert own.server is not None

    def space(trial: bkb.Trial) -> dict[str, Any]:
        rate = trial.suggest_float("learning_rate", 1e-6, 1, log=True)
        return {"learning_rate": rate, "per_device_train_batch_size": 8}

    best = hyperparameter_search(
        given,
        space,
        n_trials=12,
        compute_objective=lambda metrics: -metrics["eval_loss"],
        study="f",
        db=own.server.db,
        seed=1,
        maximize="score",
        pruner=("median", {"min_trials": 3, "warmup_steps": 9}),
    )
    status = own.load_study("f").status
    assert status.pruned > 0 and status.pruned + status.completed == 12
    assert best.objective > -0.2 and set(best.hyperparameters) == {"learning_rate"}


def test_transformers_with_optuna(tmp_path: Path) -> None:
    given = trainer(tmp_path)
    library("optuna")
    from bkb.optuna import BKBSampler

    best = given.hyperparameter_search(
        hp_space=lambda trial: {"learning_rate": trial.suggest_float("lr", 1e-5, 1, log=True)},
        backend="optuna",
        direction="minimize",
        n_trials=3,
        sampler=BKBSampler(seed=1),
    )
    assert set(best.hyperparameters) == {"lr"}
