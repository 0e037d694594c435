"""Clients of a server, embedded or not."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from . import _errors
from ._errors import InvalidRequest
from ._goals import MARK, Goals
from ._options import MAX_RETRIES, SPEC, Path, SpecOptions, spelled
from ._server import EmbeddedServer
from ._service import AnyState, Service, of_file, of_server
from ._space import SpaceLike
from ._spec import (
    check_same,
    differences,
    larger_limits,
    study_spec,
    taken_over,
)
from ._study import Study
from ._transport import Transport
from ._views import StudyRecord, StudyStatus

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger("bkb")


class StudyOptions(SpecOptions, total=False):
    """Arguments of `bkb.create_study`, which describes them."""

    from_: str | Study | None
    exist_ok: bool
    warn: bool


STUDY: StudyOptions = {**SPEC, "from_": None, "exist_ok": False, "warn": True}


def drawn_seed() -> int:
    """Draw the seed of a study without one. Module random takes long to import."""
    return int.from_bytes(os.urandom(7), "big") >> 3


class Client:
    """Handle on the studies of one server or file.

    Make one with `connect` or `open_file`. It can be used by many threads, survives a
    fork, and can be pickled. The pickle holds no token, and the receiver reads it from
    the environment variable ``TUNER_TOKEN``.

    Examples
    --------
    >>> client = bkb.open_file("clients.db")
    >>> study = client.create_study("digits", {"x": bkb.Float(0, 1)}, minimize="loss")
    >>> client.load_study("digits").name
    'digits'

    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def __repr__(self) -> str:
        return f"<bkb.Client of {self._service.where}>"

    @property
    def transport(self) -> Transport:
        """What sends the calls."""
        return self._service.transport

    @property
    def server(self) -> EmbeddedServer | None:
        """The embedded server, or None if another one runs the studies."""
        return self._service.server

    @spelled(StudyOptions, STUDY)
    def create_study(
        self, name: str, space: SpaceLike | None = None, **options: Unpack[StudyOptions]
    ) -> Study:
        """Make a study. The parameters are those of `bkb.create_study`."""
        o: StudyOptions = {**STUDY, **options}
        from_, warn = o["from_"], o["warn"]
        source = self.load_study(from_) if isinstance(from_, str) else from_
        ways = (o["minimize"], o["maximize"], o["objectives"], o["directions"])
        if source is not None and all(way is None for way in ways):
            goals = source._goals
        else:
            goals = Goals.given(*ways)
        if source is not None:
            space = source.space if space is None else space
        seed = drawn_seed() if o["seed"] is None else o["seed"]
        spec = study_spec(space, goals, o, seed)
        if source is not None:
            spec = taken_over(spec, {**source.spec(), "maxTrials": str(source.status.max_trials)})
        try:
            message = self._service.create(name, spec)
        except InvalidRequest as e:
            if isinstance(space, Mapping):  # which has no lines
                e.args = (re.sub("^line 1: ", "", str(e), flags=re.MULTILINE),)
            raise
        except _errors.StudyExists as e:
            if not o["exist_ok"]:
                e.args = (f"{e}, continue it with exist_ok=True, or take another name",)
                raise
            record = StudyRecord.of(self._service.get(name))
            check_same(record, goals, space)
            study = Study(self._service, record, space)
            more = larger_limits({**record.spec, "maxTrials": study.status.max_trials}, spec)
            if more:
                with contextlib.suppress(InvalidRequest, _errors.StudyFinished):
                    study._source.extend(more, more=False)
                    spec = {k: v for k, v in spec.items() if k not in more}
            if warn and space is not None:
                usual = o["max_retries"] == MAX_RETRIES
                defaults = {"seed": o["seed"] is None, "maxRetries": usual}
                given = {k: v for k, v in spec.items() if not defaults.get(k)}
                differ = ", ".join(differences(record.spec, given))
                if differ:
                    log.warning(
                        "study %s exists and keeps its settings, which are %s", name, differ
                    )
            return study
        for w in message.get("warnings", []) if warn else []:
            where = f"parameter {w['parameter']!r}" if w.get("parameter") else "the search space"
            advice = ", ".join(t for t in (w["message"], w.get("remedy")) if t)
            log.warning("%s of study %s, %s", where, name, advice)
        study = Study(self._service, StudyRecord.of(message), space)
        if source is not None:
            over: list[AnyState] = ["completed", "failed", "infeasible", "pruned"]
            study.add_trials(source.iter_trials(states=over, reports=True))
        return study

    def load_study(self, name: str) -> Study:
        """Return the study of a name. See `bkb.load_study`."""
        return Study(self._service, StudyRecord.of(self._service.get(name)))

    def delete_study(self, name: str) -> None:
        """Delete a study with all its trials, for good. See `bkb.delete_study`."""
        message = self._service.get(name)
        if MARK in message.get("attributes", {}):
            for generation in reversed(self.load_study(name).generations[1:]):
                self.delete_study(generation)
        self._service.change("DeleteStudy", name, uid=message["uid"])

    def studies(self) -> Iterator[StudyStatus]:
        """Yield all studies in order of name."""
        return self._service.studies()


def connect(
    server: str | None = None,
    *,
    token: str | None = None,
    ca: Path | None = None,
    cert: Path | None = None,
    key: Path | None = None,
    retry_for: float = 60.0,
) -> Client:
    """Connect to the address of ``tuner serve --http``.

    Parameters
    ----------
    server : str, optional
        host:port, https://host:port, http://host:port or unix:path. TLS is used for
        host:port on other machines. Several servers of one database are separated by
        commas. The default is the variable ``TUNER_SERVER``.
    token : str, optional
        Token of the server. The default is the variable ``TUNER_TOKEN``.
    ca : path, optional
        CA certificate that signed the server's certificate, in PEM. The default are
        those of the system.
    cert, key : path, optional
        Certificate of this client and its key, in PEM.
    retry_for : float
        Seconds during which a call is repeated while the server cannot be reached.

    Returns
    -------
    Client
        The client, which connects at its first call.

    Raises
    ------
    InvalidRequest
        There is no address, or a token would be sent without TLS.

    Examples
    --------
    >>> bkb.connect("https://tuner.example:7071")
    <bkb.Client of https://tuner.example:7071>

    """
    return Client(of_server(server, token=token, retry_for=retry_for, ca=ca, cert=cert, key=key))


def open_file(db: Path | None = None, *, retry_for: float = 60.0) -> Client:
    """Open a file of studies, with a server that starts at the first call.

    Parameters
    ----------
    db : path, optional
        The file, which is made if it is missing. The default is the variable
        ``TUNER_DB``, else ``tuner.db``.
    retry_for : float
        Seconds during which a call is repeated.

    Returns
    -------
    Client
        The client.

    Examples
    --------
    >>> client = bkb.open_file("mine.db")
    >>> study = client.create_study("digits", {"x": bkb.Float(0, 1)}, minimize="loss")
    >>> [s.name for s in client.studies()]
    ['digits']

    """
    return Client(of_file(db, retry_for=retry_for))


def client_of(db: Path | None, server: str | None, *, make: bool = False) -> Client:
    """Return the client of a server or a file. An argument wins over the environment.

    Without make the file must be there.
    """
    if db is not None and server is not None:
        raise InvalidRequest(f"db is {os.fspath(db)!r} and server is {server!r}, give one of them")
    if server is not None or (db is None and os.environ.get("TUNER_SERVER")):
        return connect(server)
    client = open_file(db)
    file = client.server.db if client.server else ""
    if not make and not os.path.exists(file):
        raise _errors.NotFound(
            f"the file {file} does not exist, give db= another one, or make a study in it with "
            "bkb.create_study"
        )
    return client


@spelled(StudyOptions, STUDY)
def create_study(
    name: str,
    space: SpaceLike | None = None,
    *,
    db: Path | None = None,
    server: str | None = None,
    **options: Unpack[StudyOptions],
) -> Study:
    """Make a study in a file or on a server.

    Parameters
    ----------
    name : str
        Name of the study.
    space : dict, str or path, optional
        Search space. Without it the objective defines it with ``trial.suggest_float``,
        ``suggest_int`` and ``suggest_categorical``.
    minimize, maximize : str or list of str
        Names of the objectives. With both, outcomes are told by name.
    objectives : dict, optional
        Instead, the direction of each objective by name, in order.
    directions : list of str, optional
        Instead, directions of objectives that are called ``value``, or ``value0``,
        ``value1`` and so on.
    max_trials : int
        Trials after which the study finishes, 0 for no limit.
    timeout : float, optional
        Seconds after which it finishes.
    max_cost : float
        Sum of the told costs at which it finishes, 0 for no limit.
    patience : int
        Trials in a row without a better value at which it finishes, 0 for no limit. Failed
        and added ones do not count.
    target : float, optional
        Value of the objective at which it finishes.
    lease : float, optional
        Seconds that a trial without heartbeats is kept, an hour if left out.
    max_retries : int
        How often a trial whose lease expired is handed out again.
    seed : int, optional
        Seed of the proposer. Without one the study gets a random seed, which
        ``study.spec()["seed"]`` says.
    proposer, pruner : str or (str, dict), optional
        Name, or name and options, of what proposes trials and of what stops them early.
    attributes : dict, optional
        Notes.
    constraints : list of str
        Limits of metrics, such as ``"latency <= 10"``. Those of parameters belong to
        the space.
    from_ : str or Study, optional
        Study, by name in the same place, whose settings are taken over where none are given,
        and also its finished trials. A warning names those that do not fit. They do not count
        towards max_trials.
    exist_ok : bool
        Whether to continue a study of this name with the same space and objectives.
        Larger limits raise its own. It keeps its other settings, and a warning names
        those that differ. What is left out or 0 is not compared, nor are attributes.
    warn : bool
        Whether to log warnings about the space and about settings that differ.
    db : path, optional
        The file.
    server : str, optional
        Address of a server, see `connect`. Without ``db`` and ``server`` the variables
        ``TUNER_SERVER`` and ``TUNER_DB`` say where studies are, else it is ``tuner.db``.

    Returns
    -------
    Study
        The study.

    Raises
    ------
    StudyExists
        There is a study of this name and not ``exist_ok``, or it has another space or other
        objectives.
    InvalidRequest
        A value breaks a rule, which the message names.

    Examples
    --------
    >>> space = {"lr": bkb.Float(1e-5, 0.1, log=True), "opt": bkb.Categorical(["adam", "sgd"])}
    >>> study = bkb.create_study("made", space, minimize="loss", seed=1)
    >>> study.optimize(lambda trial: trial["lr"], n_trials=5)
    >>> study.status
    StudyStatus('made', active, 5 completed)

    """
    return client_of(db, server, make=True).create_study(name, space, **options)


def load_study(name: str, *, db: Path | None = None, server: str | None = None) -> Study:
    """Return the study of this name. See `create_study` for ``db`` and ``server``.

    Returns
    -------
    Study
        The study.

    Raises
    ------
    NotFound
        There is no such study, or no such file.

    Examples
    --------
    >>> made = bkb.create_study("loaded", {"x": bkb.Float(0, 1)}, minimize="loss")
    >>> bkb.load_study("loaded")
    Study('loaded')

    """
    return client_of(db, server).load_study(name)


def delete_study(name: str, *, db: Path | None = None, server: str | None = None) -> None:
    """Delete a study with all its trials, for good. See `load_study`.

    Raises
    ------
    NotFound
        There is no such study, or no such file.

    Examples
    --------
    >>> made = bkb.create_study("deleted", {"x": bkb.Float(0, 1)}, minimize="loss")
    >>> bkb.delete_study("deleted")

    """
    client_of(db, server).delete_study(name)


def studies(*, db: Path | None = None, server: str | None = None) -> Iterator[StudyStatus]:
    """Yield all studies in order of name. See `load_study`.

    Yields
    ------
    StudyStatus
        The state of each study.

    Examples
    --------
    >>> made = bkb.create_study("listed", {"x": bkb.Float(0, 1)}, minimize="loss")
    >>> [s.name for s in bkb.studies() if s.name == "listed"]
    ['listed']

    """
    return client_of(db, server).studies()


def set_verbosity(level: int | str) -> None:
    """Write log messages of this level and above to stderr.

    Parameters
    ----------
    level : int or str
        Level of the module logging, such as ``"INFO"``.

    Examples
    --------
    >>> set_verbosity("INFO")  # a line for each trial
    >>> set_verbosity("WARNING")

    """
    log = logging.getLogger("bkb")
    log.setLevel(level)
    if all(isinstance(h, logging.NullHandler) for h in log.handlers):
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(handler)
