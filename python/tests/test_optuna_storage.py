"""Optuna's own tests of storages, on ``tuner serve --optuna``.

BKB_KILLS is the share of calls before which the server is killed, 0.05 without it. With
BKB_KILLS=1 the server is killed before each call.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from test_optuna_docs import EXAMPLES

from bkb._binary import find_binary

pytest.importorskip("grpc", reason="grpcio is not installed, make python installs it")

import optuna  # noqa: E402
from optuna.storages import GrpcStorageProxy, InMemoryStorage  # noqa: E402
from optuna.storages._grpc.server import make_server  # noqa: E402
from optuna.testing.pytest_storages import StorageTestCase  # noqa: E402

# The protocol does not keep the order of parameters, so one of its two cases fails, also on
# Optuna's own server.
ORDER = "test_get_all_trials_params_order"


class Server:
    """A server that can be killed and started again at the same address."""

    def __init__(self, folder: Path, address: str = "127.0.0.1:0", *options: str) -> None:
        self.folder = folder
        self.options = options
        self.kills = 0
        self.address = address
        self.start()

    def start(self) -> None:
        """Start the server and wait until it serves."""
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        flags = ["--listen", "unix:grpc.sock", "--optuna", self.address, "--ready-file", ready.name]
        with open(self.folder / "serve.log", "ab") as log:
            self.process = subprocess.Popen(
                [find_binary(), "serve", *flags, *self.options], cwd=self.folder, stderr=log
            )
        end = time.monotonic() + 30
        while not ready.exists():
            assert self.process.poll() is None, (self.folder / "serve.log").read_text()
            assert time.monotonic() < end
            time.sleep(0.002)
        self.address = json.loads(ready.read_text())["optuna"]

    def kill(self) -> None:
        """Kill the server with no chance to write anything."""
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def proxy(self) -> GrpcStorageProxy:
        """Return a client."""
        port: Any
        host, _, port = self.address.rpartition(":")
        if host == "unix":
            port = str(self.folder / port)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proxy = GrpcStorageProxy(host=host, port=port)
        proxy.wait_server_ready(timeout=30)
        return proxy


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.kill()


class Killing:
    """A stub whose server is killed and started again before some of the calls."""

    def __init__(self, server: Server, proxy: GrpcStorageProxy, share: float) -> None:
        self.server, self.proxy, self.share = server, proxy, share
        self.stub = proxy._stub
        self.random = random.Random(7)
        self.lock = threading.Lock()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(request: Any) -> Any:
            with self.lock:
                if self.random.random() < self.share:
                    # A channel that connects again could meet itself on the server's port.
                    self.proxy._channel.close()
                    self.server.kill()
                    self.server.start()
                    fresh = self.server.proxy()
                    self.proxy._channel, self.stub = fresh._channel, fresh._stub
                return getattr(self.stub, name)(request)

        return call


@pytest.fixture
def no_order(request: pytest.FixtureRequest) -> None:
    """Let the one case fail that Optuna's own server fails, too."""
    if request.node.name.startswith(ORDER):
        request.node.add_marker(pytest.mark.xfail(reason="protobuf maps have no order"))


@pytest.mark.usefixtures("no_order")
class TestStorage(StorageTestCase):
    @pytest.fixture
    def storage(self, server: Server) -> Iterator[GrpcStorageProxy]:
        proxy = server.proxy()
        yield proxy
        proxy.close()


@pytest.mark.usefixtures("no_order")
class TestKilledStorage(StorageTestCase):
    @pytest.fixture
    def storage(self, server: Server) -> Iterator[GrpcStorageProxy]:
        proxy = server.proxy()
        killing: Any = Killing(server, proxy, float(os.environ.get("BKB_KILLS", "0.05")))
        proxy._stub = proxy._cache.grpc_client = killing
        yield proxy
        proxy.close()


@pytest.mark.usefixtures("no_order")
class TestOptunasServer(StorageTestCase):
    """What Optuna's own server passes, which is the measure."""

    @pytest.fixture
    def storage(self) -> Iterator[GrpcStorageProxy]:
        with ThreadPoolExecutor(4) as threads:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                own = make_server(InMemoryStorage(), "127.0.0.1", 0, thread_pool=threads)
                port = own.add_insecure_port("127.0.0.1:0")
                proxy = GrpcStorageProxy(host="127.0.0.1", port=port)
            own.start()
            proxy.wait_server_ready(timeout=30)
            yield proxy
            proxy.close()
            own.stop(0).wait()


WORKER = """
import sys, warnings
warnings.simplefilter("ignore")
import optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
from optuna.storages import GrpcStorageProxy
host, port = sys.argv[1].rsplit(":", 1)

def objective(trial):
    x = trial.suggest_float("x", -5, 5)
    kind = trial.suggest_categorical("kind", ["a", None, True])
    trial.set_user_attr("who", sys.argv[2])
    for step in range(3):
        trial.report(x * x + step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x * x

study = optuna.load_study(
    study_name="shared", storage=GrpcStorageProxy(host=host, port=port),
    pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
)
study.optimize(objective, n_trials=15)
"""


def test_processes(server: Server) -> None:
    """Four processes share a study and its queue, and every trial is there once."""
    proxy = server.proxy()
    study = optuna.create_study(study_name="shared", storage=proxy)
    for x in range(4):
        study.enqueue_trial({"x": float(x), "kind": None})
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, server.address, str(i)]) for i in range(4)
    ]
    assert [w.wait(timeout=120) for w in workers] == [0] * 4
    server.kill()
    server.start()
    again = optuna.load_study(study_name="shared", storage=server.proxy())
    trials = again.trials
    assert [t.number for t in trials] == list(range(60))
    assert all(t.state.is_finished() for t in trials)
    assert [t.params["x"] for t in trials[:4]] == [0, 1, 2, 3]
    assert {t.user_attrs["who"] for t in trials} == set("0123")
    done = [t.values[0] for t in trials if t.state == optuna.trial.TrialState.COMPLETE]
    assert again.best_value == min(done)


def test_unix_socket(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A socket works, and only its owner can use it."""
    folder = tmp_path_factory.mktemp("u")
    server = Server(folder, "unix:o.sock")
    try:
        assert (folder / "o.sock").stat().st_mode & 0o777 == 0o600
        study = optuna.create_study(storage=server.proxy(), direction="maximize")
        study.optimize(lambda t: t.suggest_int("n", 0, 3), n_trials=5)
        assert len(study.trials) == 5
    finally:
        server.kill()


def test_page(tmp_path: Path) -> None:
    """The script of docs/optuna.md runs as it stands."""
    page = (REPOSITORY / "docs/optuna.md").read_text()
    blocks = dict(re.findall(r"^```python (\S+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    server = Server(tmp_path)
    try:
        (tmp_path / "storage.py").write_text(blocks["storage.py"])
        done = subprocess.run(
            [sys.executable, "storage.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stdout) == (0, "20\n"), done.stderr
    finally:
        server.kill()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("shared"))
    yield server
    server.kill()


STORAGE = "storage=optuna.storages.GrpcStorageProxy(host={!r}, port={})"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n, text in EXAMPLES.items() if "storage" not in text])
def test_example(
    name: str, shared: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An example of Optuna's documentation runs with this storage as it stands."""
    monkeypatch.chdir(tmp_path)
    before = len(optuna.get_all_study_names(shared.proxy()))
    host, _, port = shared.address.rpartition(":")
    script = EXAMPLES[name].replace("create_study(", f"create_study({STORAGE.format(host, port)}, ")
    try:
        exec(compile(script, name, "exec"), {})
    except ModuleNotFoundError as e:
        pytest.skip(f"{e.name} is not installed")
    except TypeError as e:
        if "not JSON serializable" not in str(e):
            raise
        pytest.skip("an attribute is no JSON, which all of Optuna's storages on disk refuse")
    assert len(optuna.get_all_study_names(shared.proxy())) > before
