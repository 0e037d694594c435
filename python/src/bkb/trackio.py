"""Trials as runs of trackio."""

from __future__ import annotations

from typing import Any

try:
    import trackio
except ImportError as e:
    raise ImportError("bkb.trackio needs trackio, run pip install 'bkb-tuner[trackio]'") from e

from ._logged import Runs

__all__ = ["TrackioCallback"]


class TrackioCallback(Runs):
    """Callback of `Study.optimize` that logs each trial as a run.

    The runs of a study are a group. They have the parameters and attributes, the reports, and
    the metrics at the step after them.

    Parameters
    ----------
    project : str, optional
        Name of the project, that of the study if left out.
    **options
        Further arguments of ``trackio.init``, such as ``space_id``.

    """

    def __init__(self, project: str | None = None, **options: Any) -> None:
        super().__init__(trackio, project, options)
