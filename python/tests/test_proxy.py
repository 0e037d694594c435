"""Asks and tells through a proxy that drops, delays and doubles.

BKB_PROXY_CALLS is the number of trials, 200 unless it is set. The full size is 2000.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from conftest import server_of

import bkb
from bkb._transport import Endpoint

TRIALS = int(os.environ.get("BKB_PROXY_CALLS", "200"))


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    endpoint: Endpoint
    random = random.Random(1)
    lock = threading.Lock()
    faults: Counter[str] = Counter()

    def _forward(self, body: bytes) -> tuple[int, bytes, str]:
        connection = self.endpoint.connection(30)
        headers = {"Content-Type": "application/json"}
        connection.request("POST", self.path, body, headers)
        r = connection.getresponse()
        answer = r.status, r.read(), r.headers["Content-Type"]
        connection.close()
        return answer

    def _drop(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.lock:
            fault = self.random.choices(
                [
                    "none",
                    "request lost",
                    "answer lost",
                    "half an answer",
                    "delayed",
                    "doubled",
                    "bad gateway",
                    "late double",
                ],
                [60, 6, 8, 4, 8, 8, 3, 3],
            )[0]
            self.faults[fault] += 1
        if fault == "request lost":
            return self._drop()
        if fault == "bad gateway":
            return self._reply(502, b"<html>", "text/html")
        if fault == "delayed":
            time.sleep(0.02)
        status, answer, kind = self._forward(body)
        if fault == "doubled":
            status, answer, kind = self._forward(body)
        if fault == "late double":  # arrives after the answer, and after what follows it
            threading.Timer(0.05, self._forward, [body]).start()
        if fault == "answer lost":
            return self._drop()
        if fault == "half an answer":
            self._reply(status, answer, kind, len(answer) // 2)
            return self._drop()
        self._reply(status, answer, kind)

    def _reply(self, status: int, body: bytes, kind: str, only: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:only])

    def log_message(self, *args: Any) -> None:
        pass


def test_every_trial_once(own: bkb.Client, name: str) -> None:
    direct = own.create_study(
        name, {"x": bkb.Float(0, 1)}, minimize="loss", max_trials=TRIALS, proposer="sobol"
    )
    Proxy.endpoint = server_of(own).endpoint(None)
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    study = bkb.connect(f"127.0.0.1:{proxy.server_port}").load_study(name)
    asked: list[int] = []
    told: list[int] = []

    def work() -> None:
        while True:
            try:
                trial = study.ask()
            except bkb.StudyFinished:
                return
            except bkb.NoTrialNow:
                time.sleep(0.01)
                continue
            asked.append(trial.number)
            view = trial.tell(trial["x"], attributes={"by": threading.current_thread().name})
            told.append(view.number)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    proxy.shutdown()
    proxy.server_close()
    assert len(Proxy.faults) == 8, Proxy.faults  # each kind of fault occurred
    assert sorted(asked) == sorted(told) == list(range(TRIALS))
    trials = direct.trials
    assert [t.number for t in trials] == list(range(TRIALS))
    assert all(t.state == "completed" and t.value == t.params["x"] for t in trials)
    assert all(t.epoch == 1 for t in trials)
