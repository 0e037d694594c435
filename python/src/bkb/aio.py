"""The same for asyncio. Each call runs in a thread of the loop's executor.

async def main():
    study = await bkb.aio.create_study("digits", space, minimize="loss", max_trials=50)
    await study.optimize_async(objective, n_parallel=4)
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from . import _client, _study
from ._codec import integer
from ._lease import LEASE
from ._optimize import Catch, Run
from ._options import AskOptions, OutcomeOptions, Path, ServerOptions
from ._space import SpaceLike
from ._views import Event, StudyStatus, TrialView

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._client import StudyOptions

P = ParamSpec("P")
T = TypeVar("T")


async def _steps(items: Iterator[T]) -> AsyncIterator[T]:
    end = object()
    while True:
        item = await asyncio.to_thread(next, items, end)
        if item is end:
            return
        yield item  # type: ignore[misc]


def _in_thread(
    call: Callable[Concatenate[Any, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a method that calls one of the object ``sync`` in a thread."""

    @functools.wraps(call)
    async def method(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        return await asyncio.to_thread(call, self.sync, *args, **options)

    return method


class Trial:
    """A running trial. See `bkb.Trial`."""

    def __init__(self, trial: _study.Trial) -> None:
        self.sync = trial
        self.number = trial.number
        self.params: dict[str, Any] = trial.params
        self.suggestion = trial.suggestion

    def __getitem__(self, name: str) -> Any:
        return self.params[name]

    report = _in_thread(_study.Trial.report)
    tell = _in_thread(_study.Trial.tell)
    set_attributes = _in_thread(_study.Trial.set_attributes)
    upload_artifact = _in_thread(_study.Trial.upload_artifact)
    artifacts = _in_thread(_study.Trial.artifacts)
    download_artifact = _in_thread(_study.Trial.download_artifact)
    delete_artifact = _in_thread(_study.Trial.delete_artifact)

    def should_prune(self) -> bool:
        """Return whether the trial should stop."""
        return self.sync.should_prune()

    async def __aenter__(self) -> Trial:
        self.sync.__enter__()
        return self

    async def __aexit__(self, kind: Any, e: BaseException | None, trace: Any) -> bool:
        return await asyncio.shield(asyncio.to_thread(self.sync.__exit__, kind, e, trace))


class Study:
    """A study. See `bkb.Study`, which is the attribute ``sync``."""

    def __init__(self, study: _study.Study) -> None:
        self.sync = study
        self.name = study.name
        self.space = study.space

    @overload
    async def ask(self, count: None = None, **options: Unpack[AskOptions]) -> Trial: ...
    @overload
    async def ask(
        self, count: int | Literal["auto"], **options: Unpack[AskOptions]
    ) -> list[Trial]: ...
    async def ask(
        self, count: int | Literal["auto"] | None = None, **options: Unpack[AskOptions]
    ) -> Trial | list[Trial]:
        """Get a trial to run, or a list of some."""
        ask: Any = functools.partial(self.sync.ask, **options)
        if count is None:
            return Trial(await asyncio.to_thread(ask))
        asked: list[_study.Trial] = await asyncio.to_thread(ask, count)
        return [Trial(t) for t in asked]

    async def tell(
        self, trial: Trial | int, value: Any = None, **options: Unpack[OutcomeOptions]
    ) -> TrialView:
        """Tell the outcome of a trial. The options are those of `bkb.Study.tell`."""
        which = trial.sync if isinstance(trial, Trial) else trial
        return await asyncio.to_thread(lambda: self.sync.tell(which, value, **options))

    enqueue = _in_thread(_study.Study.enqueue)
    add_trials = _in_thread(_study.Study.add_trials)
    trial = _in_thread(_study.Study.trial)
    diagnosis = _in_thread(_study.Study.diagnosis)
    pause = _in_thread(_study.Study.pause)
    resume = _in_thread(_study.Study.resume)
    finish = _in_thread(_study.Study.finish)
    extend = _in_thread(_study.Study.extend)
    importances = _in_thread(_study.Study.importances)
    set_attributes = _in_thread(_study.Study.set_attributes)
    upload_artifact = _in_thread(_study.Study.upload_artifact)
    artifacts = _in_thread(_study.Study.artifacts)
    download_artifact = _in_thread(_study.Study.download_artifact)
    delete_artifact = _in_thread(_study.Study.delete_artifact)

    async def status(self) -> StudyStatus:
        """Return the state of the study."""
        return await asyncio.to_thread(lambda: self.sync.status)

    async def trials(self) -> list[TrialView]:
        """Return all trials."""
        return await asyncio.to_thread(lambda: self.sync.trials)

    async def best_trial(self) -> TrialView:
        """Return the trial that the study recommends."""
        return await asyncio.to_thread(lambda: self.sync.best_trial)

    async def pareto_front(self) -> list[TrialView]:
        """Return the trials of the Pareto front."""
        return await asyncio.to_thread(lambda: self.sync.pareto_front)

    def watch(self, after: int = 0, *, until_finished: bool = False) -> AsyncIterator[Event]:
        """Yield what happens in the study, and wait for more, or until it has finished."""
        return _steps(self.sync.watch(after, until_finished=until_finished))

    async def optimize_async(
        self,
        objective: Callable[[Trial], Awaitable[Any]],
        n_trials: int | None = None,
        *,
        n_parallel: int = 1,
        catch: Catch = (),
        lease: float = LEASE,
    ) -> None:
        """Run a coroutine function as trials until the study finishes.

        Parameters
        ----------
        objective : coroutine function
            Function of a `Trial` that returns what ``tell`` takes as a value.
        n_trials : int, optional
            Trials that this call runs at most. See `bkb.Study.optimize`.
        n_parallel : int
            Trials at once.
        catch : exception class, or list or tuple of them
            Exceptions that end the trial as failed and not the run. Any other cancels
            the trials that run.
        lease : float
            Seconds until another worker gets a trial if this process dies.

        """
        n_parallel = integer(n_parallel, "n_parallel", 1)
        loop = asyncio.get_running_loop()
        tasks: set[asyncio.Task[Any]] = set()

        async def call(trial: _study.Trial) -> Any:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                return await objective(Trial(trial))
            finally:
                tasks.discard(task)

        def evaluate(trial: _study.Trial) -> Any:
            try:
                return asyncio.run_coroutine_threadsafe(call(trial), loop).result()
            except concurrent.futures.CancelledError as e:
                raise asyncio.CancelledError from e

        def cancel() -> None:
            for task in tasks:
                task.cancel()

        ask = functools.partial(self.sync.ask, lease=lease)
        source = self.sync._source
        run = Run(source, ask, evaluate, n_trials=n_trials, catch=catch, lease=lease)
        run.on_failure = lambda: loop.call_soon_threadsafe(cancel)
        work = asyncio.ensure_future(asyncio.to_thread(run.run, n_parallel))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError as e:
            await asyncio.to_thread(run.fail, e)
            await asyncio.gather(work, return_exceptions=True)
            raise


class Client:
    """Handle on the studies of one server or file. See `bkb.Client`."""

    def __init__(self, client: _client.Client) -> None:
        self.sync = client

    async def create_study(
        self, name: str, space: SpaceLike, **options: Unpack[StudyOptions]
    ) -> Study:
        """Make a study. The options are those of `bkb.Client.create_study`."""
        make = self.sync.create_study
        return Study(await asyncio.to_thread(lambda: make(name, space, **options)))

    async def load_study(self, name: str) -> Study:
        """Return the study of this name."""
        return Study(await asyncio.to_thread(self.sync.load_study, name))

    delete_study = _in_thread(_client.Client.delete_study)

    def studies(self) -> AsyncIterator[StudyStatus]:
        """Yield all studies in order of name."""
        return _steps(self.sync.studies())


def connect(server: str | None = None, **options: Unpack[ServerOptions]) -> Client:
    """Connect to a server. The options are those of `bkb.connect`."""
    return Client(_client.connect(server, **options))


def open_file(db: Path | None = None) -> Client:
    """Open a file of studies."""
    return Client(_client.open_file(db))


async def create_study(
    name: str,
    space: SpaceLike,
    *,
    db: Path | None = None,
    server: str | None = None,
    **options: Unpack[StudyOptions],
) -> Study:
    """Make a study. The options are those of `bkb.create_study`."""
    return await Client(_client.client_of(db, server, make=True)).create_study(
        name, space, **options
    )


async def load_study(name: str, *, db: Path | None = None, server: str | None = None) -> Study:
    """Return the study of this name."""
    return await Client(_client.client_of(db, server)).load_study(name)


async def delete_study(name: str, *, db: Path | None = None, server: str | None = None) -> None:
    """Delete a study with all its trials, for good."""
    await Client(_client.client_of(db, server)).delete_study(name)


def studies(*, db: Path | None = None, server: str | None = None) -> AsyncIterator[StudyStatus]:
    """Yield all studies in order of name."""
    return Client(_client.client_of(db, server)).studies()
