"""Conditions between parameters, learned from finished trials."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

Value = str | int | bool

# An integer with more values has each of them in few trials, so that it seems to decide
# about any parameter that is absent at times.
MOST_VALUES = 32
MOST_PARENTS = 16  # above a parameter, the limit of the server


class Condition(NamedTuple):
    """A parameter is present if its parent has one of these values."""

    parent: str
    values: frozenset[Value]


class Presence:
    """Learns which parameter decides whether another one is present.

    The rules are those of ``tuner import``. A parent decides about a parameter if all
    trials with the parameter have the parent, and no value of the parent occurs both with
    and without it.
    """

    def __init__(self) -> None:
        self._trials = 0
        self._count: Counter[str] = Counter()
        self._seen: defaultdict[str, set[Value]] = defaultdict(set)
        self._with: defaultdict[tuple[str, str], set[Value]] = defaultdict(set)
        self._without: dict[tuple[str, str], set[Value]] = {}
        self._alone: set[tuple[str, str]] = set()

    def add(self, values: Mapping[str, Value | None]) -> None:
        """Add the parameters of a trial. A parameter that cannot be a parent has None."""
        discrete = {n: v for n, v in values.items() if v is not None}
        for q in discrete.keys() - self._seen.keys():
            self._alone.update((p, q) for p in self._count if p != q)
        for p in self._count.keys() | values.keys():
            there = p in values
            for q in self._seen.keys() | discrete.keys():
                if q == p:
                    continue
                if q not in discrete:
                    if there:
                        self._alone.add((p, q))
                    continue
                # All trials before the first with p were without it.
                without = self._without.setdefault((p, q), set(self._seen.get(q, ())))
                (self._with[p, q] if there else without).add(discrete[q])
            if there and p not in self._count:
                before = [q for q in self._seen if q not in discrete and q != p]
                self._alone.update((p, q) for q in before)
        for q, v in discrete.items():
            self._seen[q].add(v)
        self._count.update(values.keys())
        self._trials += 1

    def conditions(self, excluded: Iterable[str] = ()) -> dict[str, Condition | None]:
        """Return the condition of each parameter whose presence is explained.

        A parameter of all trials has None. The excluded parameters, and those that
        nothing explains, are left out.
        """
        out = set(excluded)
        explained: dict[str, Condition | None] = {}
        depths: dict[str, int] = {}
        # A parent is in more trials than its child, so that it comes first.
        for p, n in sorted(self._count.items(), key=lambda item: (-item[1], item[0])):
            if p in out:
                continue
            if n == self._trials:
                explained[p], depths[p] = None, 0
                continue
            parent = self._parent(p, [q for q, depth in depths.items() if depth < MOST_PARENTS])
            if parent is not None:
                depths[p] = depths[parent] + 1
                explained[p] = Condition(parent, frozenset(self._with[p, parent]))
        return explained

    def _parent(self, p: str, candidates: Iterable[str]) -> str | None:
        def decides(q: str) -> bool:
            has, lacks = self._with.get((p, q), set()), self._without.get((p, q), set())
            return bool(has and lacks) and not has & lacks and (p, q) not in self._alone

        def rank(q: str) -> tuple[int, int, str]:
            return -self._count[q], len(self._seen[q]), q

        return min(
            (q for q in candidates if q in self._seen and decides(q)), key=rank, default=None
        )
