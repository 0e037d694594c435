"""The loop of `Study.optimize`, which gets trials from a function and runs an objective."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeVar

from . import _errors
from ._codec import JSON, described, encode_int, integer, number
from ._errors import InvalidRequest, TrialPruned
from ._held import Held, Source
from ._lease import LEASE, heartbeats
from ._views import TrialView

log = logging.getLogger("bkb")


SAY_AFTER = 5.0  # seconds without a trial until a run says why

FIRST_PAUSE = 0.05  # seconds

T = TypeVar("T")
Catch = type[Exception] | Iterable[type[Exception]]


def exceptions(catch: Catch) -> tuple[type[Exception], ...]:
    """Return the exceptions that do not end a run as except takes them."""
    given: Any = catch
    kinds = tuple(given) if isinstance(given, Iterable) else (given,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise InvalidRequest(
                f"catch has {kind!r}, which is no exception class, give a class such as "
                "ValueError, or a list of classes"
            )
    return kinds


def say_why(source: Source, e: Exception, own: Iterable[int]) -> None:
    """Log what a study without a trial to run waits for, once for each reason.

    own are the trials of this run, whose end is no reason to worry.
    """
    if isinstance(e, _errors.StudyPaused):
        source.warn_once("paused", "the run waits until the study is resumed")
        return
    held = [t for t in source.trials(["running"]) if t.number not in set(own)]
    ends = [(t.lease_deadline, t) for t in held if t.lease_deadline is not None]
    if not ends:
        return
    end, first = min(ends, key=lambda x: x[0])
    left = max(0.0, (end - datetime.now(timezone.utc)).total_seconds())
    whose = f"worker {first.worker!r}" if first.worker else "another worker"
    others = f", as {len(held) - 1} others are" if len(held) > 1 else ""
    source.warn_once(
        f"waits for {first.number}",
        f"the run waits because trial {first.number} is held by {whose}{others}, "
        f"its lease ends in {left:.0f} s unless a heartbeat comes",
    )


def waited(ask: Callable[[], T], wait_for: float | Iterable[Any]) -> T:
    """Ask until there is a trial, for so many seconds, or until all of some futures are done."""
    several = isinstance(wait_for, Iterable) and not isinstance(wait_for, str)
    futures: list[Any] = list(wait_for) if several else []  # type: ignore[arg-type]
    seconds = 0.0 if several else number(wait_for, "wait_for")
    until, pause, ended = time.monotonic() + seconds, FIRST_PAUSE, threading.Event()
    for f in futures:
        f.add_done_callback(lambda _: ended.set())
    while True:
        last = time.monotonic() >= until and all(f.done() for f in futures)
        try:
            return ask()
        except (_errors.NoTrialNow, _errors.StudyPaused):
            if last:
                raise
        ended.wait(pause if futures else min(pause, max(0.0, until - time.monotonic())))
        ended.clear()
        pause = min(2 * pause, 1.0)


class Plan:
    """The trials of one call of optimize. It can be used by many threads."""

    def __init__(self, source: Source, n_trials: int | None) -> None:
        self._source, self._lock = source, threading.Lock()
        self._n = None if n_trials is None else integer(n_trials, "n_trials")
        self._begun = 0 if n_trials is None else source.begun()  # before this call
        self._taken = self._made = 0

    def take(self) -> bool:
        """Take the place of a trial, and tell whether there was one."""
        with self._lock:
            self._taken += 1
            return self._n is None or self._taken <= self._n

    def made(self) -> None:
        """Note that a trial was handed out."""
        with self._lock:
            self._made += 1

    def more(self, e: _errors.StudyFinished) -> bool:
        """Raise the limit of a finished study for the rest, and tell whether to ask again.

        That is not meant if other workers share the limit. Raise the error if trials were
        asked for and none was made.
        """
        with self._lock:
            if self._n is None:
                if not self._made:
                    log.warning("no trial ran, since %s, study.extend continues it", e)
                return False
            s = self._source.status()
            if s.state != "finished":  # another thread raised it
                return True
            alone = self._source.begun() == self._begun + self._made
            if s.finish_reason == "max_trials" and alone:
                self._source.extend({"maxTrials": encode_int(self._n - self._made)})
                return True
            if not self._made and alone:
                raise e
            return False


@dataclass(eq=False)
class Run:
    """One call of optimize."""

    source: Source
    ask: Callable[[], Any]
    objective: Callable[[Any], Any]
    told: Callable[[TrialView], None] = lambda _: None
    n_trials: int | None = None
    timeout: float | None = None
    catch: Catch = ()
    lease: float = LEASE
    executor: Executor | None = None
    show_progress_bar: bool = False
    # Makes the trial of the user. Without it a run asks only after a trial is told.
    trial_of: Callable[[Held], Any] | None = None

    def __post_init__(self) -> None:
        self.stop = threading.Event()
        self.on_failure: Callable[[], Any] = lambda: None
        self._plan = Plan(self.source, self.n_trials)
        self._deadline = None if self.timeout is None else time.monotonic() + self.timeout
        self._caught = exceptions(self.catch)
        self._lock = threading.Lock()
        self._open: set[Held] = set()
        self._cancelled: set[Held] = set()
        self._error: BaseException | None = None
        self._bar = _bar(self.n_trials) if self.show_progress_bar else None

    def run(self, n_jobs: int) -> None:
        """Run trials, n_jobs at once."""
        n_jobs = (os.cpu_count() or 1) if n_jobs == -1 else integer(n_jobs, "n_jobs", 1)
        try:
            if n_jobs == 1 and self.executor is None:
                self._work()
            else:
                self._threads(n_jobs)
        finally:
            if self._bar is not None:
                self._bar.close()
        if self._error is not None:
            raise self._error

    def _threads(self, n_jobs: int) -> None:
        # Daemons, so that a second Ctrl-C ends the program at once.
        threads = [
            threading.Thread(target=self._work, name=f"bkb-{i}", daemon=True) for i in range(n_jobs)
        ]
        for t in threads:
            t.start()
        try:
            self._join(threads)
        except KeyboardInterrupt as e:
            self.fail(e)
            self._join(threads)

    @staticmethod
    def _join(threads: list[threading.Thread]) -> None:
        for t in threads:
            while t.is_alive():
                t.join(0.5)  # Windows delivers Ctrl-C only between waits

    def fail(self, e: BaseException) -> None:
        """Begin no more trials, and tell those that run as cancelled."""
        with self._lock:
            self._error = self._error or e
            victims = self._open - self._cancelled
            self._cancelled |= victims
        self.stop.set()
        for held in victims:
            held.lost("the run was cancelled")
            self._cancel(held, e)
        self.on_failure()

    def _cancel(self, held: Held, e: BaseException) -> None:
        held.interrupted = True
        message = f"the run ended with {type(e).__name__}"
        outcome = held.source.goals.outcome(state="failed", reason="cancelled", message=message)
        try:
            held.tell(outcome)
        except _errors.Error as failure:
            log.warning("trial %d could not be told, %s", held.number, failure)

    def _work(self) -> None:
        try:
            trial = self._next(self._place())
            while trial is not None:
                trial = self._trial(trial, trial._held)
        except BaseException as e:
            self.fail(e)

    def _over(self) -> bool:
        late = self._deadline is not None and time.monotonic() >= self._deadline
        return self.stop.is_set() or late

    def _place(self) -> bool:
        """Take the place of a trial, and tell whether there was one."""
        return not self._over() and self._plan.take()

    def _next(self, place: bool) -> Any:
        """Ask for a trial if there is a place for it, and wait while the study has none."""
        pause, begin = FIRST_PAUSE, time.monotonic()
        while place and not self._over():
            try:
                trial = self.ask()
                self._plan.made()
                return trial
            except _errors.StudyFinished as e:
                if self._plan.more(e):
                    continue
                return None
            except (_errors.NoTrialNow, _errors.StudyPaused) as e:
                if time.monotonic() - begin > SAY_AFTER:
                    with self._lock:
                        own = {t.number for t in self._open}
                    say_why(self.source, e, own)
            left = pause if self._deadline is None else self._deadline - time.monotonic()
            self.stop.wait(max(0.0, min(pause, left)))
            pause = min(2 * pause, 1.0)
        return None

    def _trial(self, trial: Any, held: Held) -> Any:
        """Run a trial, and return the next one."""
        with self._lock:
            error = self._error
            if error is None:
                self._open.add(held)
        if error is not None:  # the run ended while this trial was asked for
            self._cancel(held, error)
            return None
        heartbeats.add(held, self.lease)
        failure: BaseException | None = None
        try:
            outcome = held.source.goals.outcome(self._value(trial))
        except BaseException as e:
            outcome = held.outcome_of(e)
            pruned = isinstance(e, TrialPruned)
            failure = None if pruned or isinstance(e, self._caught) else e
            if not pruned and failure is None:
                log.warning("trial %d failed, %s", held.number, described(e))
        finally:
            heartbeats.remove(held)
            with self._lock:
                self._open.discard(held)
                cancelled = held in self._cancelled
                self._cancelled.discard(held)
        if cancelled:
            return None
        place = failure is None and self.trial_of is not None and self._place()
        refusal = self._tell(held, outcome, self.lease if place else None)
        if refusal is not None and not isinstance(refusal, self._caught):
            failure = failure or refusal
        if failure is not None:
            raise failure
        if held.next is None or self.trial_of is None:
            return self._next(place or self._place())
        self._plan.made()
        return self.trial_of(Held(self.source, held.at, held.next))

    def _value(self, trial: Any) -> Any:
        if self.executor is None:
            value = self.objective(trial)
        else:
            held = trial._held
            done = self.executor.submit(_evaluate, self.objective, trial)
            value, defined = done.result()
            held.params, held.values, held.domains = defined
            if isinstance(value, TrialPruned):
                raise value
        if value is None:
            raise InvalidRequest("value is None, return a number from the objective")
        return value

    def _tell(self, held: Held, outcome: JSON, lease: float | None) -> InvalidRequest | None:
        """Tell an outcome, and return why the server refused it."""
        try:
            view, refusal = held.settle(outcome, lease)
        except (_errors.AlreadyTold, _errors.LeaseLost) as e:
            log.warning("the outcome of trial %d was not taken, %s", held.number, e)
            return None
        if refusal is not None:
            log.warning("trial %d failed, %s", held.number, refusal)
        if self._bar is not None or log.isEnabledFor(logging.INFO):
            line = f"trial {view.number} {_summary(view)}"
            log.info("%s", line)
            with self._lock:
                if self._bar is not None:
                    self._bar.set_postfix_str(line, refresh=False)
                    self._bar.update()
        self.told(view)
        return refusal


def _evaluate(objective: Callable[[Any], Any], trial: Any) -> tuple[Any, tuple[Any, Any, Any]]:
    """Return the value of an objective, or TrialPruned, and what it defined."""
    try:
        value = objective(trial)
    except TrialPruned as e:
        value = e
    held: Held = trial._held
    return value, (held.params, held.values, held.domains)


def _summary(view: TrialView) -> str:
    """Return the state and values of a trial in one line."""
    values = " ".join(f"{name}={v[0]:.6g}" for name, v in view.metrics.items())
    return " ".join(x for x in (view.state, view.reason, values, view.message) if x)


def _bar(total: int | None) -> Any:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        log.info("there is no progress bar because tqdm is not installed")
        return None
    return tqdm(total=total, unit="trial")
