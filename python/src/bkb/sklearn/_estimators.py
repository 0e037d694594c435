"""The kernel learners of the program tuner as estimators."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._binary import find_binary
from .._errors import Error
from .._scratch import temporary_parent

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # scikit-learn 1.5

    def validate_data(estimator: Any, *data: Any, **options: Any) -> Any:
        """Return checked data."""
        return estimator._validate_data(*data, **options)


# Exit codes of tuner that Python has exceptions for.
USAGE, INVALID, DEADLINE, INTERRUPTED = 2, 4, 23, 130

# The flag of each parameter. A parameter that is None is left to the program.
FLAGS = {
    "kernel": "kernel",
    "length_scale": "length-scale",
    "degree": "degree",
    "offset": "offset",
    "alpha": "lambda",
    "n_centers": "centers",
    "sampler": "sampler",
    "solver": "solver",
    "max_iter": "iterations",
    "tol": "tolerance",
    "precision": "precision",
    "features": "features",
    "n_random_features": "random-features",
    "batch_size": "batch-size",
    "step_size": "step-size",
    "n_passes": "passes",
    "averaging": "averaging",
    "multiclass": "multiclass",
    "n_trials": "trials",
    "timeout": "budget",
    "validation_fraction": "validation",
}


def _text(value: Any) -> str:
    """Write a parameter as the program reads it, sequences with commas between."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return str(value)
    return ",".join(repr(float(x)) for x in np.ravel(value))


class _Learner(BaseEstimator):  # type: ignore[misc]
    """A learner of the program, which runs for fit and for predict.

    The model is the bytes of its file, so that an estimator can be copied and pickled.
    """

    _task: ClassVar[str]
    random_state: Any
    n_jobs: int | None

    def _train(self) -> list[str]:
        """Return the command that trains, without data and output."""
        raise NotImplementedError

    def _learned(self, summary: Mapping[str, Any]) -> None:
        """Set attributes from the JSON that the command printed."""

    def _fit(self, X: Any, y: Any) -> None:
        seed = 1 + check_random_state(self.random_state).randint(2**31 - 1)
        parent = temporary_parent(2 * (X.nbytes + y.nbytes))
        with tempfile.TemporaryDirectory(prefix="bkb-", dir=parent) as folder:
            model = os.path.join(folder, "model")
            targets = os.path.join(folder, "y.npy")
            np.save(targets, y)
            command = [
                *self._train(),
                *self._data(folder, X),
                f"--target-file={targets}",
                f"--task={self._task}",
                f"--seed={seed}",
                "--test=0",
                f"--out={model}",
                "--format=json",
                "--quiet",
            ]
            summary = json.loads(self._run(command, folder))
            with open(model, "rb") as f:
                self.model_ = f.read()
        self._learned(summary)

    def _predict(self, X: Any, *more: str) -> Any:
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        parent = temporary_parent(X.nbytes + len(self.model_))
        with tempfile.TemporaryDirectory(prefix="bkb-", dir=parent) as folder:
            model = os.path.join(folder, "model")
            with open(model, "wb") as f:
                f.write(self.model_)
            command = ["predict", f"--model={model}", *self._data(folder, X), *more]
            return np.load(io.BytesIO(self._run([*command, "--format=npy", "--quiet"], folder)))

    @staticmethod
    def _data(folder: str, X: Any) -> list[str]:
        path = os.path.join(folder, "x.npy")
        np.save(path, X)
        return [f"--data={path}", *(["--float32"] if X.dtype == np.float32 else [])]

    def _run(self, command: list[str], folder: str) -> bytes:
        env = {**os.environ, "GOMAXPROCS": str(effective_n_jobs(self.n_jobs))}
        done = subprocess.run(
            [find_binary(), *command], cwd=folder, env=env, capture_output=True, check=False
        )
        if done.returncode == 0:
            return done.stdout
        said = done.stderr.decode(errors="replace").strip().splitlines()
        message = f"{type(self).__name__}, {self._reword(said[-1])}" if said else ""
        if done.returncode in (USAGE, INVALID):
            raise ValueError(message)
        if done.returncode == DEADLINE:
            raise TimeoutError(message)
        if done.returncode == INTERRUPTED:
            raise KeyboardInterrupt
        raise Error(message or f"tuner {command[0]} ended with status {done.returncode}")

    @staticmethod
    def _reword(message: str) -> str:
        """Write a message of the program with the names of parameters here."""
        text = re.sub(r"^tuner: (\S+: )?", "", message)
        for param, flag in FLAGS.items():
            text = re.sub(rf"(^|--){flag} ", f"{param} ", text)
        return text


class _Regressor(RegressorMixin, _Learner):  # type: ignore[misc]
    """What regressors have in common."""

    _task = "regression"

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, of float32 or float64.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.

        Returns
        -------
        self : object

        """
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            y_numeric=True,
            multi_output=True,
            ensure_min_samples=2,
        )
        self._column = y.ndim == 2
        self._fit(X, y.astype(np.float64, copy=False))
        return self

    def predict(self, X: Any) -> Any:
        """Return the predicted targets, in the shape of y."""
        y = self._predict(X)
        return y.reshape(-1, 1) if self._column and y.ndim == 1 else y

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _more_tags(self) -> dict[str, Any]:  # of scikit-learn 1.5
        return {"multioutput": True}


class _Classifier(ClassifierMixin, _Learner):  # type: ignore[misc]
    """What classifiers have in common."""

    _task = "classification"

    def fit(self, X: Any, y: Any) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, of float32 or float64.
        y : array-like of shape (n_samples,)
            Classes, of numbers or texts.

        Returns
        -------
        self : object

        """
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], ensure_min_samples=2)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs two classes or more, and y has only one class, "
                f"{self.classes_[0]}"
            )
        self._fit(X, codes)
        return self

    def predict(self, X: Any) -> Any:
        """Return the predicted classes."""
        codes = self._predict(X)
        return self.classes_[codes.astype(int)]


class _Scores(_Classifier):
    """A classifier without probabilities."""

    def decision_function(self, X: Any) -> Any:
        """Return the score of each class, or of the second one if there are two."""
        return self._predict(X, "--scores")


def _log_odds(probabilities: Any) -> Any:
    """Return the log odds of the second class of two, or log probabilities of more."""
    logs = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs


class _Probabilities(_Classifier):
    """A classifier with probabilities."""

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class."""
        return self._predict(X, "--scores")

    def decision_function(self, X: Any) -> Any:
        """Return the log probability of each class, or the log odds if there are two."""
        return _log_odds(self.predict_proba(X))


class _Algorithm(_Learner):
    """A learner of ``tuner train``."""

    _algorithm: ClassVar[str]

    def _keep(self, given: Mapping[str, Any]) -> None:
        """Set the arguments of a constructor as attributes."""
        self.__dict__.update({k: v for k, v in given.items() if k not in ("self", "__class__")})

    def _train(self) -> list[str]:
        given = {FLAGS[k]: v for k, v in self.get_params().items() if k in FLAGS}
        flags = [f"--{flag}={_text(v)}" for flag, v in given.items() if v is not None]
        return ["train", self._algorithm, *flags, "--validation=0"]

    def _learned(self, summary: Mapping[str, Any]) -> None:
        self.settings_: dict[str, str] = summary["parameters"]
        self.n_iter_: int = summary["iterations"]


class _Centers(_Algorithm):
    """A learner whose model has centers."""

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        length_scale: float | str | Sequence[float] | None = None,
        degree: int = 3,
        offset: float = 1.0,
        alpha: float | None = None,
        n_centers: int | None = None,
        sampler: str = "uniform",
        max_iter: int | None = None,
        tol: float | None = None,
        precision: str = "float64",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._keep(locals())


class FalkonRegressor(_Regressor, _Centers):
    """Kernel ridge regression on some centers, by FALKON.

    Inputs and targets are standardized.

    Parameters
    ----------
    kernel : str
        gaussian, laplace, matern12, matern32, matern52, rational-quadratic, linear,
        polynomial or arc-cosine.
    length_scale : float, array-like of shape (n_features,) or "auto", optional
        Length scale in units of the standardized inputs, or one for each of them. Left
        out, it is the median distance of 1000 rows. With "auto", one for each input is
        learned by gradients, and alpha with them.
    degree, offset : int, float
        Of the polynomial kernel.
    alpha : float, optional
        Ridge for each sample, lambda in the papers. Left out, it is the largest kernel
        value divided by n_samples.
    n_centers : int, optional
        Number of centers. Left out, it is 20 √n_samples up to 1000, then 10 √n_samples.
    sampler : str
        How centers are chosen, one of uniform, bless, bless-r, squeak, recursive,
        two-pass and exact.
    max_iter : int, optional
        Largest number of iterations, 20 if left out.
    tol : float, optional
        Relative residual that ends the iteration, 1e-7 if left out.
    precision : str
        float64 or float32, for kernel values.
    random_state : int, RandomState or None
        Seed.
    n_jobs : int, optional
        Number of threads, 1 if left out.

    Attributes
    ----------
    model_ : bytes
        The file of the model, which ``tuner predict`` reads.
    settings_ : dict
        Hyper-parameters that were used, by the flags of ``tuner train``.
    n_iter_ : int
        Number of iterations.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> FalkonRegressor(alpha=1e-2, random_state=0).fit(X, y).score(X, y) > 0.5
    True

    """

    _algorithm = "falkon"


class FalkonClassifier(_Scores, _Centers):
    """Classification by kernel ridge regression on some centers, by FALKON.

    Inputs are standardized. Parameters and attributes are those of `FalkonRegressor`, and
    ``classes_``.
    """

    _algorithm = "falkon"


class LogisticFalkonClassifier(_Probabilities, _Centers):
    """Kernel logistic regression on some centers, by FALKON.

    Inputs are standardized. Parameters and attributes are those of `FalkonRegressor`, and
    ``classes_``. Here ``max_iter`` counts Newton steps and is 10 or more if left out.
    ``tol`` is the norm of the gradient that ends the fit, 1e-3 if left out.
    ``multiclass`` is softmax, which learns more than two classes together, or one-vs-rest.
    """

    _algorithm = "log-falkon"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        length_scale: float | str | Sequence[float] | None = None,
        degree: int = 3,
        offset: float = 1.0,
        alpha: float | None = None,
        n_centers: int | None = None,
        sampler: str = "uniform",
        multiclass: str = "softmax",
        max_iter: int | None = None,
        tol: float | None = None,
        precision: str = "float64",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._keep(locals())


class NystromRegressor(_Regressor, _Centers):
    """Kernel ridge regression on some centers, without FALKON's preconditioner.

    Inputs and targets are standardized. Parameters and attributes are those of
    `FalkonRegressor`, and ``solver``, one of direct, gradient, sgd and cg. ``max_iter``
    and ``tol`` have no effect on the direct solver.
    """

    _algorithm = "nystrom"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        length_scale: float | str | Sequence[float] | None = None,
        degree: int = 3,
        offset: float = 1.0,
        alpha: float | None = None,
        n_centers: int | None = None,
        sampler: str = "uniform",
        solver: str = "direct",
        max_iter: int | None = None,
        tol: float | None = None,
        precision: str = "float64",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._keep(locals())


class _SGDRandomFeatures(_Algorithm):
    _algorithm = "sgdrf"

    def __init__(
        self,
        *,
        kernel: str = "gaussian",
        length_scale: float | str | Sequence[float] | None = None,
        degree: int = 3,
        offset: float = 1.0,
        features: str | None = None,
        n_random_features: int | None = None,
        batch_size: int | None = None,
        step_size: float | None = None,
        n_passes: int = 5,
        alpha: float = 0.0,
        averaging: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self._keep(locals())


class SGDRandomFeaturesRegressor(_Regressor, _SGDRandomFeatures):
    """Stochastic gradient descent on random features of a kernel.

    Inputs and targets are standardized.

    Parameters
    ----------
    kernel, length_scale, degree, offset, random_state, n_jobs
        As in `FalkonRegressor`.
    features : str, optional
        Kind of random features, one of orthogonal, fourier, fourier-cosine, fastfood,
        relu and gaussian-sketch. Left out, it suits the kernel.
    n_random_features : int, optional
        Number of random features. Left out, it is 4 √n_samples, from 256 to 16384.
    batch_size : int, optional
        Rows of a mini-batch, √n_samples if left out.
    step_size : float, optional
        Step size. Left out, it is derived from the largest stable one.
    n_passes : int
        Passes over the data.
    alpha : float
        Ridge for each sample.
    averaging : str, optional
        Iterates that make the model, one of none, tail and all. Left out, it is tail for
        more than 10 passes, else none.

    Attributes
    ----------
    model_, settings_, n_iter_
        As in `FalkonRegressor`.

    """


class SGDRandomFeaturesClassifier(_Scores, _SGDRandomFeatures):
    """Classification by stochastic gradient descent on random features of a kernel.

    Inputs are standardized. Parameters and attributes are those of
    `SGDRandomFeaturesRegressor`, and ``classes_``.
    """
