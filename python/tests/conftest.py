from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

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
