from __future__ import annotations

import inspect
import os
import tempfile
import unittest
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import bkb
from bkb._server import EmbeddedServer

# OpenMP's threads wait by spinning, which takes minutes where other tests run beside these.
# The scripts that tests start, and libraries that tests import later, read it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def private_folders() -> Iterator[None]:
    """Give the tests folders of their own for sockets and logs."""
    with tempfile.TemporaryDirectory(prefix="bkb-test-") as d:
        patch = pytest.MonkeyPatch()
        os.mkdir(os.path.join(d, "run"), 0o700)
        patch.setenv("XDG_RUNTIME_DIR", os.path.join(d, "run"))
        patch.setenv("XDG_CACHE_HOME", os.path.join(d, "cache"))
        for name in ("TUNER_DB", "TUNER_SERVER", "TUNER_TOKEN"):
            patch.delenv(name, raising=False)
        patch.setattr("bkb._client.drawn_seed", lambda: 0)
        yield
        patch.undo()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[bkb.Client]:
    """A client whose server all tests share."""
    client = bkb.open_file(tmp_path_factory.mktemp("shared") / "tuner.db")
    yield client
    assert client.server is not None
    client.server.stop()


@pytest.fixture
def name() -> str:
    """A name for a study that no other test has."""
    return "s" + uuid.uuid4().hex[:12]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[bkb.Client]:
    """A client with a server of its own."""
    client = bkb.open_file(tmp_path / "own.db")
    yield client
    server_of(client).stop()


def server_of(client: bkb.Client) -> EmbeddedServer:
    assert client.server is not None
    return client.server


def fewest_checks() -> int:
    """Return a number that is exceeded by the checks of scikit-learn for an estimator."""
    import sklearn

    return 38 if sklearn.__version__.startswith("1.5.") else 45


def checks_of_scikit_learn(estimator: Any, expected: Mapping[str, str]) -> list[dict[str, Any]]:
    """Run the checks for an estimator, of which some are expected to fail."""
    from sklearn.utils.estimator_checks import check_estimator

    if "on_fail" in inspect.signature(check_estimator).parameters:
        found: list[dict[str, Any]] = check_estimator(
            estimator, expected_failed_checks=expected, on_fail=None, on_skip=None
        )
        return found
    found = []  # which scikit-learn 1.5 does not return
    for copy, check in check_estimator(estimator, generate_only=True):
        name, status = check.func.__name__, "passed"
        exception: Exception | None = None
        try:
            check(copy)
        except unittest.SkipTest:
            status = "skipped"
        except TypeError as e:
            # Version 1.5 makes a search only of an estimator or of a grid.
            made = "BKBSearchCV.__init__() missing 1 required positional argument" in str(e)
            status, exception = "skipped" if made else "failed", e
        except Exception as e:
            status, exception = "failed", e
        found.append({"check_name": name, "status": status, "exception": exception})
    return found
