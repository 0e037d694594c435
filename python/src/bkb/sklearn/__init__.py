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

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as e:
    raise ImportError(
        "bkb.sklearn needs scikit-learn 1.6 or newer, install bkb-tuner[sklearn]"
    ) from e

from ._search import BKBSearchCV

__all__ = ["BKBSearchCV"]
