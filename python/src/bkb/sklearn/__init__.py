"""BKB in scikit-learn.

>>> from sklearn.datasets import load_iris
>>> from sklearn.linear_model import LogisticRegression
>>> X, y = load_iris(return_X_y=True)
>>> search = BKBSearchCV(
...     LogisticRegression(max_iter=1000), {"C": (1e-3, 1e3, "log")}, n_iter=5, random_state=0
... )
>>> search.fit(X, y).best_score_ > 0.9
np.True_
"""

from __future__ import annotations

_REMEDY = "bkb.sklearn needs scikit-learn 1.5 or newer, run pip install 'bkb-tuner[sklearn]'"
try:
    from sklearn import __version__ as _version
except ImportError as e:
    raise ImportError(_REMEDY) from e
if tuple(map(int, _version.split(".")[:2])) < (1, 5):
    raise ImportError(f"scikit-learn is of version {_version}. {_REMEDY}")

from ._auto import BKBAutoClassifier, BKBAutoRegressor  # noqa: E402
from ._estimators import (  # noqa: E402
    FalkonClassifier,
    FalkonRegressor,
    LogisticFalkonClassifier,
    NystromRegressor,
    SGDRandomFeaturesClassifier,
    SGDRandomFeaturesRegressor,
)
from ._search import BKBSearchCV  # noqa: E402

__all__ = [
    "BKBAutoClassifier",
    "BKBAutoRegressor",
    "BKBSearchCV",
    "FalkonClassifier",
    "FalkonRegressor",
    "LogisticFalkonClassifier",
    "NystromRegressor",
    "SGDRandomFeaturesClassifier",
    "SGDRandomFeaturesRegressor",
]
