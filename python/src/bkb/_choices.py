"""Lists of choices that are no values of a study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ._codec import plain
from ._errors import InvalidRequest
from ._space import Categorical, Ordinal


class Choices:
    """A list of any values, and the parameter of a study that stands for it.

    What a study can hold travels as it is, so that its trials can be read. The place in
    the list stands for anything else.
    """

    def __init__(self, values: Sequence[Any], name: str) -> None:
        if not values:
            raise InvalidRequest(f"parameter {name!r} of space is an empty list, give values")
        self.name, self.values = name, list(values)
        sent = [plain(v) for v in values]
        kinds = {type(v) for v in sent}
        if kinds == {int, float} and all(float(v) == v for v in sent):
            kinds, sent = {float}, [float(v) for v in sent]
        simple = len(kinds) == 1 and kinds <= {str, bool, int, float}
        simple = simple and len(set(sent)) == len(sent)
        if not simple or any(isinstance(v, float) and not math.isfinite(v) for v in sent):
            sent = [str(i) for i in range(len(sent))]
        self._sent = sent
        self._index = {v: i for i, v in enumerate(sent)}

    @property
    def parameter(self) -> Categorical | Ordinal:
        """The parameter, which is ordinal for numbers. Numbers in disorder are sorted."""
        s = self._sent
        if len(s) < 3 or not isinstance(s[0], (int, float)) or isinstance(s[0], bool):
            return Categorical(s)
        pairs = list(zip(s, s[1:], strict=False))
        ordered = all(a < b for a, b in pairs) or all(a > b for a, b in pairs)
        return Ordinal(s if ordered else sorted(s))

    def decode(self, value: Any) -> Any:
        """Return the choice for a value of the study."""
        return self.values[self._index[value]]

    def encode(self, value: Any) -> Any:
        """Return the value of the study for a choice."""
        for v, s in zip(self.values, self._sent, strict=True):
            if v is value or (type(v) is type(value) and v == value):
                return s
        raise InvalidRequest(f"{value!r} is not among the values of {self.name!r}, {self.values!r}")
