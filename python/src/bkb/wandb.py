"""Trials as runs of Weights & Biases."""

from __future__ import annotations

from typing import Any

try:
    import wandb
except ImportError as e:
    raise ImportError("bkb.wandb needs W&B, run pip install 'bkb-tuner[wandb]'") from e

from ._logged import Runs

__all__ = ["WandbCallback"]


class WandbCallback(Runs):
    """Callback of `Study.optimize` that logs each trial as a run.

    The runs of a study are a group. They have the parameters and attributes, the reports, and
    the metrics at the step after them.

    Parameters
    ----------
    project : str, optional
        Name of the project, that of the study if left out.
    **options
        Further arguments of ``wandb.init``, such as ``mode="offline"``.

    """

    def __init__(self, project: str | None = None, **options: Any) -> None:
        super().__init__(wandb, project, {"reinit": "create_new", **options})
