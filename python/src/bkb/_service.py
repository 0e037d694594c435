"""The one service object. It calls a server, and answers in records."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from . import _errors
from ._codec import (
    JSON,
    dumps,
    encode_attributes,
    encode_duration,
    encode_int,
    integer,
)
from ._errors import InvalidRequest
from ._server import EmbeddedServer, embedded
from ._space import encode_config
from ._transport import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Endpoint,
    Failure,
    FixedDialer,
    Transport,
    new_request_id,
)
from ._views import Diagnosis, Event, Report, StudyRecord, StudyStatus, TrialView, word

log = logging.getLogger("bkb")

TRIALS_PER_MESSAGE = 500
BYTES_PER_MESSAGE = 900_000  # of the server's limit of 1 MiB

AnyState = Literal["queued", "running", "completed", "failed", "infeasible", "pruned"]
Verdict = tuple[bool, str]  # whether a trial should stop, and why


class Service:
    """What a server does with studies and trials.

    It can be used by many threads, survives a fork, and can be pickled. The pickle holds
    no token, and the receiver reads it from the environment variable ``TUNER_TOKEN``.
    """

    def __init__(self, transport: Transport, recipe: dict[str, Any]) -> None:
        self.transport = transport
        self._recipe = recipe

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._recipe,)

    @property
    def where(self) -> str:
        """Name of the server in messages."""
        return self.transport.dialer.describe()

    @property
    def server(self) -> EmbeddedServer | None:
        """The embedded server, or None if another one runs the studies."""
        dialer = self.transport.dialer
        return dialer if isinstance(dialer, EmbeddedServer) else None

    def pages(self, method: str, request: JSON) -> Iterator[JSON]:
        """Yield the pages of a list."""
        request = dict(request)
        while True:
            page = self.transport.call(method, request)
            yield page
            if not page.get("nextPageToken"):
                return
            request["pageToken"] = page["nextPageToken"]

    # Studies by name.

    def create(self, name: str, spec: JSON) -> JSON:
        """Make a study, and return the message about it."""
        return self.transport.call("CreateStudy", {"studyId": name, "spec": spec}, writes=True)

    def get(self, name: str) -> JSON:
        """Return the message about a study."""
        return self.transport.call("GetStudy", {"name": f"studies/{name}"})

    def status(self, name: str) -> StudyStatus:
        """Return the state of a study."""
        return StudyStatus.of(self.get(name))

    def studies(self) -> Iterator[StudyStatus]:
        """Yield all studies in order of name."""
        for page in self.pages("ListStudies", {}):
            yield from map(StudyStatus.of, page.get("studies", []))

    def change(self, method: str, name: str, **fields: Any) -> None:
        """Pause, resume, finish, extend or delete a study."""
        self.transport.call(method, {"name": f"studies/{name}", **fields}, writes=True)

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Set attributes of a study, or of a trial by ``study/trials/number``."""
        request = {"name": f"studies/{name}", "attributes": encode_attributes(attributes)}
        self.transport.call("SetAttributes", request, writes=True)

    def diagnosis(self, study: StudyRecord) -> Diagnosis:
        """Return the state of the proposer's model."""
        m = self.transport.call("GetDiagnosis", _parent(study))
        return Diagnosis.decode({**m, "state": word(m.get("state", ""), "MODEL_STATE_")})

    def importances(self, study: StudyRecord, objective: str) -> dict[str, float]:
        """Return the importance of each parameter, the largest first."""
        m = self.transport.call("GetImportance", {**_parent(study), "objective": objective})
        found = m.get("parameters", [])
        kind = "total" if any("total" in p for p in found) else "data"
        shares = {p["parameter"]: float(p.get(kind, 0.0)) for p in found}
        return dict(sorted(shares.items(), key=lambda x: (-x[1], x[0])))

    def ranked(
        self, study: StudyRecord, configs: Sequence[Mapping[str, Any]]
    ) -> list[Mapping[str, Any]]:
        """Return configurations in the order of the model's bound of the first objective."""
        values = [{"values": encode_config(study.space, c)} for c in configs]
        try:
            m = self.transport.call("Predict", {**_parent(study), "configs": values})
        except InvalidRequest:  # one of them breaks a constraint
            return []
        sign = 1 if study.goals.directions[0] == "minimize" else -1

        def bound(i: int) -> float:
            p = m["configs"][i]
            return sign * float(p["mean"][0]) - float(p["stdDev"][0])

        order = sorted(range(len(m.get("configs", []))), key=bound)
        return [configs[i] for i in order]

    # Trials to run.

    def ask(
        self, study: StudyRecord, count: int | str | None, worker: str, lease: float | None
    ) -> tuple[list[TrialView], list[str]]:
        """Return trials to run, and warnings."""
        request: JSON = _parent(study)
        if count == "auto":
            request["autoCount"] = True
        elif count is not None:
            request["count"] = integer(count, "count", 1, 2**31 - 1)
        if worker:
            request["worker"] = worker
        if lease is not None:
            request["lease"] = encode_duration(lease, "lease")
        request["requestId"] = new_request_id()
        try:
            answer = self.transport.call("Ask", request, writes=True)
        except KeyboardInterrupt:
            if not worker:  # a named worker gets the trials back
                self._return(study, "Ask", request)
            raise
        return self._views(study, answer), answer.get("warnings", [])

    def _return(self, study: StudyRecord, method: str, request: JSON) -> None:
        """Send a call without an answer again, and cancel the trials that it asked for.

        The same request has the same answer. If it did not arrive either, it hands out
        trials now, which are cancelled too.
        """
        message = "the ask was interrupted"
        cancelled = study.goals.outcome(state="failed", reason="cancelled", message=message)
        try:
            answer = self.transport.call(method, request, writes=True, retry_for=1.0)
            for view in self._views(study, answer if method == "Ask" else answer.get("next", {})):
                self.tell(study, view.number, view.epoch, cancelled)
        except _errors.StudyFinished:
            pass
        except _errors.Error as e:
            log.warning("a trial may run until its lease ends, %s", e)

    def report(
        self, study: StudyRecord, number: int, epoch: int, reports: Mapping[int, JSON]
    ) -> Verdict:
        """Report the values of some steps."""
        steps = [{"step": encode_int(step), "values": v} for step, v in reports.items()]
        return self._beat("Report", study, number, epoch, None, reports=steps)

    def renew(
        self, study: StudyRecord, number: int, epoch: int, lease: float, retry_for: float | None
    ) -> Verdict:
        """Send a heartbeat."""
        seconds = encode_duration(lease, "lease")
        return self._beat("Heartbeat", study, number, epoch, retry_for, lease=seconds)

    def _beat(
        self,
        method: str,
        study: StudyRecord,
        number: int,
        epoch: int,
        retry_for: float | None,
        **fields: Any,
    ) -> Verdict:
        request = {"name": _trial(study, number), "epoch": encode_int(epoch), **fields}
        writes = method == "Report"
        answer = self.transport.call(method, request, writes=writes, retry_for=retry_for)
        return answer.get("shouldStop", False), answer.get("reason", "")

    def tell(self, study: StudyRecord, number: int, epoch: int, outcome: JSON) -> TrialView:
        """Tell the outcome of a trial."""
        return self._told(study, number, epoch, outcome, None)[0]

    def tell_and_ask(
        self, study: StudyRecord, number: int, epoch: int, outcome: JSON, lease: float
    ) -> tuple[TrialView, TrialView | None, list[str]]:
        """Tell the outcome of a trial and ask for the next one, in one call.

        Return the trial, the next one, and warnings. There is no next one if `ask` would raise an
        exception.
        """
        next_ = {"requestId": new_request_id(), "lease": encode_duration(lease, "lease")}
        view, answer = self._told(study, number, epoch, outcome, next_)
        views = self._views(study, answer)
        return view, views[0] if views else None, answer.get("warnings", [])

    def _told(
        self, study: StudyRecord, number: int, epoch: int, outcome: JSON, next_: JSON | None
    ) -> tuple[TrialView, JSON]:
        request = {"name": _trial(study, number), "epoch": encode_int(epoch), "outcome": outcome}
        request["requestId"] = new_request_id()
        if next_ is not None:
            request["next"] = next_
        try:
            answer = self.transport.call("Tell", request, writes=True)
        except KeyboardInterrupt:
            self._return(study, "Tell", request)
            raise
        if answer.get("late"):
            log.warning(
                "trial %d of %s was handed to another worker, the outcome is a late result",
                number,
                study.name,
            )
        return self._view(study, answer["trial"]), answer.get("next", {})

    def enqueue(
        self, study: StudyRecord, config: JSON, attributes: Mapping[str, Any] | None
    ) -> TrialView:
        """Put a configuration in the queue."""
        request = {**_parent(study), "config": config, "attributes": encode_attributes(attributes)}
        answer = self.transport.call("EnqueueTrial", request, writes=True)
        return self._view(study, answer)

    def add(self, study: StudyRecord, messages: Iterable[JSON]) -> list[int]:
        """Add trials in the form of the wire, and return their numbers."""
        numbers: list[int] = []
        batch: list[JSON] = []
        size = 0
        for m in messages:
            bytes_ = len(dumps(m)) + 1
            if batch and (len(batch) == TRIALS_PER_MESSAGE or size + bytes_ > BYTES_PER_MESSAGE):
                numbers += self._add(study, batch, len(numbers))
                batch, size = [], 0
            batch.append(m)
            size += bytes_
        if batch:
            numbers += self._add(study, batch, len(numbers))
        return numbers

    def _add(self, study: StudyRecord, batch: list[JSON], before: int) -> list[int]:
        request = {**_parent(study), "trials": batch}
        try:
            answer = self.transport.call_identified("AddTrials", request)
        except _errors.Error as e:
            for d in e.details:
                if "index" in d.get("metadata", {}):
                    d["metadata"]["index"] = str(int(d["metadata"]["index"]) + before)
            raise
        return [int(n) for n in answer["numbers"]]

    # Trials that are there.

    def _view(self, study: StudyRecord, m: JSON) -> TrialView:
        """Return a trial whose reports are loaded when they are looked at."""
        load = partial(self._reports, _trial(study, int(m.get("number", 0))))
        return TrialView.decode(m, study.goals, load)

    def _views(self, study: StudyRecord, page: JSON) -> list[TrialView]:
        return [self._view(study, m) for m in page.get("trials", [])]

    def _reports(self, trial: str) -> tuple[Report, ...]:
        pages = self.pages("ListReports", {"parent": trial})
        return tuple(Report.decode(r) for page in pages for r in page.get("reports", []))

    def trial(self, study: StudyRecord, number: int, *, reports: bool = True) -> TrialView:
        """Return a trial by its number."""
        view = "TRIAL_VIEW_FULL" if reports else "TRIAL_VIEW_BASIC"
        m = self.transport.call("GetTrial", {"name": _trial(study, number), "view": view})
        return self._whole(study, m) if reports else self._view(study, m)

    def _whole(self, study: StudyRecord, m: JSON) -> TrialView:
        """Return a trial of a message with reports, unless these would have been too large."""
        if "reports" in m.get("omitted", []):
            m["omitted"].remove("reports")
            return self._view(study, m)
        return TrialView.decode(m, study.goals)

    def trials(
        self,
        study: StudyRecord,
        states: Sequence[AnyState] = (),
        worker: str = "",
        reports: bool = False,
    ) -> Iterator[TrialView]:
        """Yield trials in order of number."""
        request: JSON = {
            **_parent(study),
            "states": ["TRIAL_STATE_" + s.upper() for s in states],
            "worker": worker,
        }
        if reports:
            request["view"] = "TRIAL_VIEW_FULL"
        for page in self.pages("ListTrials", request):
            for m in page.get("trials", []):
                yield self._whole(study, m) if reports else self._view(study, m)

    def best(self, study: StudyRecord) -> list[TrialView]:
        """Return the trials that the study recommends."""
        return [
            v for page in self.pages("GetBest", _parent(study)) for v in self._views(study, page)
        ]

    def watch(
        self, study: StudyRecord, after: int, over: Callable[[int], bool] | None
    ) -> Iterator[Event]:
        """Yield events, until over says that none is expected after a position."""
        position, uid, pause = after, "0", FIRST_PAUSE
        until = time.monotonic() + self.transport.retry_for
        while over is None or not over(position):
            request = {**_parent(study), "after": encode_int(position), "uid": uid}
            try:
                for m in self.transport.stream("Watch", request):
                    uid = m.get("uid", "0")
                    event = Event.decode(m, study.goals)
                    position, pause = event.position, FIRST_PAUSE
                    yield event
                    until = time.monotonic() + self.transport.retry_for
                    if over is not None and event.study_state == "finished" and over(position):
                        return
                return
            except Failure as f:
                if not f.retryable() or time.monotonic() > until:
                    raise f.error() from f.__cause__
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def _parent(study: StudyRecord) -> JSON:
    return {"parent": f"studies/{study.name}"}


def _trial(study: StudyRecord, number: int) -> str:
    return f"studies/{study.name}/trials/{number}"


def _rebuild(recipe: dict[str, Any]) -> Service:
    return of_file(**recipe) if "db" in recipe else of_server(**recipe)


def of_server(
    server: str | None,
    *,
    token: str | None = None,
    retry_for: float = 60.0,
    **files: str | os.PathLike[str] | None,
) -> Service:
    """Return the service of a server. The files are ``ca``, ``cert`` and ``key``."""
    address = server or os.environ.get("TUNER_SERVER")
    if not address:
        raise InvalidRequest("server is missing, give an address or set TUNER_SERVER")
    texts = {k: None if v is None else os.path.abspath(v) for k, v in files.items()}
    secret = token or os.environ.get("TUNER_TOKEN") or None
    servers = [address] if address.startswith("unix:") else address.split(",")
    dialer = FixedDialer(*(Endpoint(a.strip(), token=secret, **texts) for a in servers))
    recipe = {"server": address, "retry_for": retry_for, **texts}
    return Service(Transport(dialer, retry_for=retry_for), recipe)


def of_file(db: str | os.PathLike[str] | None, *, retry_for: float = 60.0) -> Service:
    """Return the service of a file."""
    server = embedded(db)
    recipe = {"db": server.db, "retry_for": retry_for}
    return Service(Transport(server, retry_for=retry_for), recipe)
