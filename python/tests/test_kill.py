"""The embedded server, its death, and that of the processes that use it."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from conftest import server_of

import bkb
from bkb import _server
from bkb._binary import find_binary

SPACE = {"x": bkb.Float(0, 1), "y": bkb.Float(0, 1)}


def spawn(script: str, *args: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(p: subprocess.Popen[str]) -> str:
    out, err = p.communicate(timeout=120)
    assert p.returncode == 0, err
    return out


def wait_until_dead(pid: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except ProcessLookupError:
            return
        assert time.monotonic() < deadline, f"process {pid} still runs"
        time.sleep(0.02)


def test_server_killed_twice(own: bkb.Client, name: str) -> None:
    study = own.create_study(name, SPACE, minimize="loss", max_trials=20)
    killed = []

    def objective(trial: bkb.Trial) -> float:
        if trial.number in (5, 12):
            pid = server_of(own).pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        return float(trial["x"] ** 2)

    study.optimize(objective)
    assert len(set(killed)) == 2
    trials = study.trials
    assert [t.number for t in trials] == list(range(20))
    assert all(t.state == "completed" and t.value == float(t.params["x"]) ** 2 for t in trials)
    assert len({(t.params["x"], t.params["y"]) for t in trials}) == 20


def test_server_killed_under_calls_of_threads(own: bkb.Client, name: str) -> None:
    study = own.create_study(name, SPACE, minimize="loss", max_trials=60)
    done = threading.Event()
    kills = 0

    def kill() -> None:
        nonlocal kills
        while kills < 4 and not done.wait(0.15):
            pid = server_of(own).pid
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                kills += 1

    killer = threading.Thread(target=kill)
    killer.start()

    def objective(trial: bkb.Trial) -> float:
        time.sleep(0.02)  # 0.3 s in all, so that there is time for a kill
        return float(trial["x"])

    study.optimize(objective, n_jobs=4)
    done.set()
    killer.join()
    assert kills > 0
    trials = study.trials
    assert [t.number for t in trials] == list(range(60))
    assert all(t.state == "completed" and t.value == t.params["x"] for t in trials)


def test_parent_killed(tmp_path: Path, name: str) -> None:
    p = spawn(
        """
        import sys, time, bkb
        client = bkb.open_file(sys.argv[1])
        client.create_study(sys.argv[2], {"x": bkb.Float(0, 1)}, minimize="loss")
        print(client.server.pid, client.server._socket, flush=True)
        time.sleep(60)
        """,
        tmp_path / "t.db",
        name,
    )
    assert p.stdout is not None
    pid, socket = p.stdout.readline().split()
    os.kill(int(pid), 0)
    assert Path(socket).exists()
    p.kill()
    p.wait()
    wait_until_dead(int(pid), 10.0)  # 0.3 s, more on a busy machine
    assert not Path(socket).exists()
    client = bkb.open_file(tmp_path / "t.db")  # the file is free, and complete
    assert client.load_study(name).status.running == 0
    server_of(client).stop()


WORKER = """
    import sys, time, bkb
    study = bkb.load_study(sys.argv[2], db=sys.argv[1])
    def objective(trial):
        print(trial.number, flush=True)
        time.sleep(0.05)
        return trial["x"] + trial["y"]
    study.optimize(objective, lease=3)
"""


def test_four_processes_one_killed(tmp_path: Path, name: str) -> None:
    db = tmp_path / "t.db"
    script = """
        import sys, bkb
        space = {"x": bkb.Float(0, 1), "y": bkb.Float(0, 1)}
        options = dict(minimize="loss", max_trials=120, max_retries=3)
        bkb.create_study(sys.argv[2], space, db=sys.argv[1], **options)
    """
    finish(spawn(script, db, name))
    workers = [spawn(WORKER, db, name) for _ in range(4)]
    first = workers[0]
    assert first.stdout is not None
    for _ in range(3):
        first.stdout.readline()
    first.kill()  # in the middle of a trial, and with it the server if it owns one
    first.wait()
    seen = [int(n) for w in workers[1:] for n in finish(w).split()]
    client = bkb.open_file(db)
    trials = client.load_study(name).trials
    server_of(client).stop()
    assert [t.number for t in trials] == list(range(120))
    assert all(t.state == "completed" for t in trials)
    assert len(seen) == len(set(seen)) <= 120
    # A suggestion may repeat the best trial on purpose, which tells noise from rough functions.
    again = sum(t.suggestion is not None and t.suggestion.phase == "repeat" for t in trials)
    assert again <= 2 and len({(t.params["x"], t.params["y"]) for t in trials}) == 120 - again


def test_processes_that_start_at_once_share_one_server(tmp_path: Path) -> None:
    script = """
        import sys, bkb
        client = bkb.open_file(sys.argv[1])
        space = {"x": bkb.Float(0, 1)}
        study = client.create_study("s", space, minimize="loss", exist_ok=True)
        study.ask().tell(1.0)
        input()
        print(client.server.pid is not None)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "t.db")]
    pipe = subprocess.PIPE
    all_ = [subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) for _ in range(4)]
    client = bkb.open_file(tmp_path / "t.db")
    deadline = time.monotonic() + 60
    while True:
        try:
            if client.load_study("s").status.completed == 4:
                break
        except bkb.NotFound:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.05)
    mine = server_of(client).pid is not None
    owners = [p.communicate("\n", timeout=60)[0].strip() for p in all_]
    assert owners.count("True") + mine == 1
    assert all(p.returncode == 0 for p in all_)
    assert client.load_study("s").status.completed == 4  # of a server started anew
    server_of(client).stop()


def test_end_of_a_program_frees_the_file(tmp_path: Path) -> None:
    script = """
        import sys, bkb
        study = bkb.create_study("s", {"x": bkb.Float(0, 1)}, minimize="l", db=sys.argv[1])
        study.optimize(lambda t: t["x"], n_trials=3)
        print(study._service.server.pid)
    """
    pid = int(finish(spawn(script, tmp_path / "t.db")))
    wait_until_dead(pid, 0.0)


def test_loopback_with_token(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Windows does, and systems with long paths."""
    monkeypatch.setattr(_server, "_has_unix_sockets", lambda: False)
    client = bkb.open_file(tmp_path / "t.db")
    study = client.create_study(name, SPACE, minimize="loss")
    study.optimize(lambda trial: trial["x"], n_trials=2)
    server = server_of(client)
    endpoint = server.endpoint(None)
    assert endpoint.path is None and endpoint.host == "127.0.0.1"
    files = list(server._files)
    assert len(files) == 2 and all(os.stat(f).st_mode & 0o077 == 0 for f in files)
    stranger = bkb.connect(endpoint.address, retry_for=0)
    with pytest.raises(bkb.Denied, match="TUNER_TOKEN"):
        stranger.load_study(name)
    # Another process finds address and token.
    script = """
        import sys, bkb
        from bkb import _server
        _server._has_unix_sockets = lambda: False
        print(bkb.load_study(sys.argv[2], db=sys.argv[1]).status.completed)
    """
    assert finish(spawn(script, tmp_path / "t.db", name)).strip() == "2"
    server.stop()
    assert not any(os.path.exists(f) for f in files)


def test_long_paths_take_the_loopback(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("d" * 90)
    long.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    client = bkb.open_file(tmp_path / "t.db")
    client.create_study(name, SPACE, minimize="loss")
    assert server_of(client).endpoint(None).path is None
    server_of(client).stop()


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "bkb").mkdir()
    (tmp_path / "bkb").chmod(0o755)
    with pytest.raises(bkb.Unavailable, match="0700"):
        bkb.open_file(tmp_path / "t.db")


def test_file_that_a_program_without_http_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_server, "START_TIMEOUT", 3.0)
    command = [find_binary(), "--db", str(tmp_path / "t.db"), "serve"]
    command += ["--listen", f"unix:{tmp_path}/g", "--until-eof"]
    command += ["--ready-file", str(tmp_path / "ready")]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    client = bkb.open_file(tmp_path / "t.db", retry_for=0)
    with pytest.raises(bkb.Unavailable, match="another process has the file"):
        client.load_study("s")
    assert other.stdin is not None
    other.stdin.close()
    assert other.wait(10) == 0
    with pytest.raises(bkb.NotFound):
        client.load_study("s")
    server_of(client).stop()


def test_missing_program_and_missing_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(bkb.InvalidRequest, match="make its folder first"):
        bkb.open_file(tmp_path / "no" / "t.db").load_study("s")
    monkeypatch.setenv("BKB_TUNER", str(tmp_path / "tuner"))
    with pytest.raises(bkb.Error, match="BKB_TUNER"):
        bkb.open_file(tmp_path / "t.db").load_study("s")


def test_pickle(own: bkb.Client, name: str) -> None:
    study = own.create_study(name, SPACE, minimize="loss")
    trial = study.ask()
    again, copy = pickle.loads(pickle.dumps((study, trial)))
    copy.report(0.5, 0)
    assert copy.tell(0.25).epoch == trial.epoch
    assert again.best_value == 0.25
    remote = bkb.connect("127.0.0.1:1", token="secret")
    assert b"secret" not in pickle.dumps(remote)
