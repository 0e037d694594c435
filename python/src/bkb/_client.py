"""Clients of a server, embedded or not."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from . import _errors
from ._codec import (
    JSON,
    encode_attributes,
    encode_duration,
    encode_float,
    encode_int,
    integer,
    number,
)
from ._errors import InvalidRequest
from ._goals import Direction, Goals, Names
from ._server import EmbeddedServer, embedded
from ._space import Space, SpaceLike, space_text
from ._study import Study, is_root
from ._transport import Endpoint, FixedDialer, Transport
from ._views import StudyStatus

Component = str | tuple[str, Mapping[str, Any]]

MAX_RETRIES = 3  # as on the command line


def drawn_seed() -> int:
    """Draw the seed of a study without one. Module random takes long to import."""
    return int.from_bytes(os.urandom(7), "big") >> 3


def _encode_component(component: Component, what: str) -> JSON:
    if isinstance(component, str):
        return {"name": component}
    try:
        name, options = component
        return {"name": str(name), "options": json.dumps(dict(options), allow_nan=False)}
    except (TypeError, ValueError) as e:
        raise InvalidRequest(
            f"{what} is {component!r}, give a name, or a tuple of a name and a dict of options"
        ) from e


_LIMIT = re.compile(r"\s*(\S(?:.*\S)?)\s*(<=|>=)\s*(\S+)\s*")


def _constrain(proposer: Component | None, constraints: Sequence[str]) -> Component:
    """Return the proposer with limits of metrics among its options."""
    name, options = (proposer or "bkb", {}) if not isinstance(proposer, tuple) else proposer
    if name != "bkb":
        raise InvalidRequest(
            f"constraints need the proposer bkb, and the proposer is {name!r}, leave one out"
        )
    limits = {metric: dict(sides) for metric, sides in options.get("constraints", {}).items()}
    for text in [constraints] if isinstance(constraints, str) else constraints:
        found = _LIMIT.fullmatch(text) if isinstance(text, str) else None
        try:
            metric, sign, limit = found.groups() if found else ("", "", "nan")
            value = float(limit)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InvalidRequest(
                f"constraint {text!r} must be a metric, <= or >=, and a finite number, "
                "write 'latency <= 10'"
            )
        limits.setdefault(metric, {})["max" if sign == "<=" else "min"] = value
    return "bkb", {**options, "constraints": limits}


class Client:
    """Handle on the studies of one server or file.

    Make one with `connect` or `open_file`. It can be used by many threads, survives a
    fork, and can be pickled. The pickle holds no token, and the receiver reads it from
    the environment variable ``TUNER_TOKEN``.
    """

    def __init__(self, transport: Transport, recipe: dict[str, Any]) -> None:
        self.transport = transport
        self._recipe = recipe

    def __repr__(self) -> str:
        return f"<bkb.Client of {self.transport.dialer.describe()}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._recipe,)

    @property
    def server(self) -> EmbeddedServer | None:
        """The embedded server, or None if another one runs the studies."""
        dialer = self.transport.dialer
        return dialer if isinstance(dialer, EmbeddedServer) else None

    def create_study(
        self,
        name: str,
        space: SpaceLike | None = None,
        *,
        minimize: Names | None = None,
        maximize: Names | None = None,
        objectives: Mapping[str, Direction] | None = None,
        directions: Sequence[Direction] | None = None,
        max_trials: int = 0,
        timeout: float | None = None,
        max_cost: float = 0.0,
        lease: float | None = None,
        max_retries: int = MAX_RETRIES,
        seed: int | None = None,
        proposer: Component | None = None,
        pruner: Component | None = None,
        attributes: Mapping[str, Any] | None = None,
        constraints: Sequence[str] = (),
        exist_ok: bool = False,
        warn: bool = True,
    ) -> Study:
        """Make a study.

        Parameters
        ----------
        name : str
            Name of the study.
        space : dict, str or path, optional
            Parameters by name, a text in YAML or JSON, or a file of one. Without it the
            objective defines the space with ``trial.suggest_float`` and the like.
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
        exist_ok : bool
            Whether to continue a study of this name with the same space and objectives.
            It keeps its other settings, and a warning names those that differ. What is
            left out or 0 is not compared, nor are attributes.
        warn : bool
            Whether to log warnings about the space and about settings that differ.

        """
        goals = Goals.given(minimize, maximize, objectives, directions)
        spec: JSON = {
            "space": "" if space is None else space_text(space),
            "objectives": goals.encode(),
            "maxTrials": encode_int(integer(max_trials, "max_trials", 0, 2**63 - 1)),
            "maxCost": encode_float(number(max_cost, "max_cost")),
            "maxRetries": integer(max_retries, "max_retries", 0, 2**31 - 1),
            "seed": encode_int(
                drawn_seed() if seed is None else integer(seed, "seed", 0, 2**64 - 1)
            ),
            "attributes": {**encode_attributes(attributes), **goals.note},
        }
        if timeout is not None:
            spec["timeout"] = encode_duration(timeout, "timeout")
        if lease is not None:
            spec["lease"] = encode_duration(lease, "lease")
        if constraints:
            proposer = _constrain(proposer, constraints)
        if proposer is not None:
            spec["proposer"] = _encode_component(proposer, "proposer")
        if pruner is not None:
            spec["pruner"] = _encode_component(pruner, "pruner")
        if space is None:
            from ._define import root_spec  # which takes long to import

            root_spec(spec)
        request = {"studyId": name, "spec": spec}
        try:
            message = self.transport.call("CreateStudy", request, writes=True)
        except _errors.StudyExists:
            if not exist_ok:
                raise
            study = self.load_study(name)
            is_open = type(study) is not Study
            if is_open != (space is None):
                has = "no" if is_open else "a"
                raise _errors.StudyExists(
                    f"study {name!r} exists with {has} declared search space, take another name"
                ) from None
            study.check_same(goals, space if isinstance(space, Mapping) else None)
            if warn and not is_open:
                defaults = {"seed": seed is None, "maxRetries": max_retries == MAX_RETRIES}
                study.warn_of_others({k: v for k, v in spec.items() if not defaults.get(k)})
            return study
        study = self._study(message)
        if warn:
            study.warn(message.get("warnings", []))
        return study

    def _study(self, message: JSON) -> Study:
        if not is_root(message):
            return Study(self, message)
        from ._define import OpenStudy

        return OpenStudy(self, message)

    def load_study(self, name: str) -> Study:
        """Return the study of this name."""
        return self._study(self.transport.call("GetStudy", {"name": f"studies/{name}"}))

    def delete_study(self, name: str) -> None:
        """Delete a study with all its trials, for good."""
        message = self.transport.call("GetStudy", {"name": f"studies/{name}"})
        if is_root(message):
            from ._define import OpenStudy

            for generation in reversed(OpenStudy(self, message).generations[1:]):
                self.delete_study(generation)
        request = {"name": f"studies/{name}", "uid": message["uid"]}
        self.transport.call("DeleteStudy", request, writes=True)

    def studies(self) -> Iterator[StudyStatus]:
        """Yield all studies in order of name."""
        for page in self.pages("ListStudies", {}):
            for m in page.get("studies", []):
                yield StudyStatus.decode(m)

    def pages(self, method: str, request: JSON) -> Iterator[JSON]:
        """Yield the pages of a list."""
        request = dict(request)
        while True:
            page = self.transport.call(method, request)
            yield page
            if not page.get("nextPageToken"):
                return
            request["pageToken"] = page["nextPageToken"]

    def set_attributes(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Set attributes of a study or trial by its name of the wire."""
        request = {"name": name, "attributes": encode_attributes(attributes)}
        self.transport.call("SetAttributes", request, writes=True)


def _rebuild(recipe: dict[str, Any]) -> Client:
    if "db" in recipe:
        return open_file(recipe["db"], retry_for=recipe["retry_for"])
    return connect(**recipe)


def connect(
    server: str | None = None,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
    retry_for: float = 60.0,
) -> Client:
    """Connect to the address of ``tuner serve --http``.

    Parameters
    ----------
    server : str, optional
        host:port, https://host:port, http://host:port or unix:path. TLS is used for
        host:port on other machines. The default is the variable ``TUNER_SERVER``.
    token : str, optional
        Token of the server. The default is the variable ``TUNER_TOKEN``.
    ca : path, optional
        CA certificate that signed the server's certificate, in PEM. The default are
        those of the system.
    cert, key : path, optional
        Certificate of this client and its key, in PEM.
    retry_for : float
        Seconds during which a call is repeated while the server cannot be reached.

    """
    address = server or os.environ.get("TUNER_SERVER")
    if not address:
        raise InvalidRequest("server is missing, give an address or set TUNER_SERVER")
    files = {"ca": ca, "cert": cert, "key": key}
    texts = {k: None if v is None else os.path.abspath(v) for k, v in files.items()}
    secret = token or os.environ.get("TUNER_TOKEN") or None
    endpoint = Endpoint(address, token=secret, **texts)
    recipe = {"server": address, "retry_for": retry_for, **texts}
    return Client(Transport(FixedDialer(endpoint), retry_for=retry_for), recipe)


def open_file(db: str | os.PathLike[str] | None = None, *, retry_for: float = 60.0) -> Client:
    """Open a file of studies, with a server that starts at the first call.

    Parameters
    ----------
    db : path, optional
        The file, which is made if it is missing. The default is the variable
        ``TUNER_DB``, else ``tuner.db``.
    retry_for : float
        Seconds during which a call is repeated.

    """
    server = embedded(db)
    return Client(Transport(server, retry_for=retry_for), {"db": server.db, "retry_for": retry_for})


def client_of(
    db: str | os.PathLike[str] | None, server: str | None, *, make: bool = False
) -> Client:
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


__all__ = ["Client", "Space", "connect", "open_file"]
