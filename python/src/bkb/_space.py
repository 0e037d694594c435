"""Search spaces."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._codec import JSON, ParamValue, plain
from ._errors import InvalidRequest

When = Mapping[str, ParamValue | Sequence[ParamValue]]


@dataclass(frozen=True)
class _Number:
    """A range."""  # dataclass makes a long one of the signature where there is none

    low: float
    high: float
    step: float | None = None
    log: bool = False
    scale: str | None = None
    when: When | None = None

    def _fields(self, kind: str) -> JSON:
        if self.log and self.scale not in (None, "log"):
            raise InvalidRequest(f"log=True and scale={self.scale!r} disagree, give one of them")
        fields: JSON = {"type": kind, "low": plain(self.low), "high": plain(self.high)}
        if self.step is not None:
            fields["step"] = plain(self.step)
        scale = "log" if self.log else self.scale
        if scale is not None:
            fields["scale"] = scale
        return _conditional(fields, self.when)


@dataclass(frozen=True)
class Float(_Number):
    """Real number from low to high, both included.

    Parameters
    ----------
    low, high : float
        Bounds.
    step : float, optional
        Distance of the values from one another.
    log : bool
        Whether the scale is logarithmic.
    scale : str, optional
        ``"linear"``, ``"log"`` or ``"reverse-log"``.
    when : dict, optional
        Parents with the value, or list of values, for which the parameter is active.

    """

    def to_json(self) -> JSON:
        """Return the parameter in the form of a space file."""
        return self._fields("float")

    def coerce(self, value: Any) -> Any:
        """Return an int as the float that it means."""
        v = plain(value)
        return float(v) if isinstance(v, int) and not isinstance(v, bool) else v


@dataclass(frozen=True)
class Int(_Number):
    """Integer from low to high, both included. The parameters are those of `Float`."""

    def to_json(self) -> JSON:
        """Return the parameter in the form of a space file."""
        return self._fields("int")

    def coerce(self, value: Any) -> Any:
        """Return a float without fraction as the int that it means."""
        v = plain(value)
        return int(v) if isinstance(v, float) and v.is_integer() else v


@dataclass(frozen=True)
class _Choice:
    """A list of values."""

    values: Sequence[ParamValue]
    when: When | None = None

    def _fields(self, kind: str) -> JSON:
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            raise InvalidRequest(f"values is {self.values!r}, give a list")
        return _conditional({"type": kind, "values": [plain(v) for v in self.values]}, self.when)

    def coerce(self, value: Any) -> Any:
        """Return a number as the value of the list that equals it."""
        return _among(self.values, value)

    def index(self, value: Any) -> int:
        """Return the index of a value in the list, or -1."""
        found = [i for i, v in enumerate(self.values) if type(v) is type(value) and v == value]
        return found[0] if found else -1


@dataclass(frozen=True)
class Categorical(_Choice):
    """One of some values without an order.

    Parameters
    ----------
    values : list
        Strings, bools or numbers.
    when : dict, optional
        Parents with the value, or list of values, for which the parameter is active.

    """

    def to_json(self) -> JSON:
        """Return the parameter in the form of a space file."""
        return self._fields("categorical")


@dataclass(frozen=True)
class Ordinal(_Choice):
    """One of some values in an order that means something. See `Categorical`."""

    def to_json(self) -> JSON:
        """Return the parameter in the form of a space file."""
        return self._fields("ordinal")


@dataclass(frozen=True)
class Constant:
    """One value that every trial has."""

    value: ParamValue
    when: When | None = None

    def to_json(self) -> JSON:
        """Return the parameter in the form of a space file."""
        return _conditional({"type": "constant", "value": plain(self.value)}, self.when)

    def coerce(self, value: Any) -> Any:
        """Return a number as the value of the constant if they are equal."""
        return _among([self.value], value)


Parameter = Float | Int | Categorical | Ordinal | Constant


def _conditional(fields: JSON, when: When | None) -> JSON:
    if when:
        fields["when"] = {
            parent: [plain(v) for v in values]
            if isinstance(values, (list, tuple))
            else plain(values)
            for parent, values in when.items()
        }
    return fields


def _among(values: Sequence[ParamValue], value: Any) -> Any:
    v = plain(value)
    for candidate in values:
        same_sort = isinstance(candidate, bool) == isinstance(v, bool)
        if same_sort and isinstance(candidate, str) == isinstance(v, str) and candidate == v:
            return candidate
    return v


def same(a: Parameter, b: Parameter) -> bool:
    """Compare two parameters as a server reads them."""
    return _form(a) == _form(b)


def same_values(a: Parameter, b: Parameter) -> bool:
    """Compare two parameters without their conditions."""
    return {**_form(a), "when": None} == {**_form(b), "when": None}


def _form(p: Parameter) -> JSON:
    fields: JSON = json.loads(json.dumps(p.to_json()))
    if fields.get("scale") == "linear":
        del fields["scale"]
    fields["when"] = {
        k: sorted(v, key=repr) if isinstance(v, list) else [v]
        for k, v in fields.get("when", {}).items()
    }
    return fields


class Space(Mapping[str, Parameter]):
    """Search space, a mapping from names to parameters.

    Examples
    --------
    >>> space = Space({"lr": Float(1e-5, 0.1, log=True), "width": Int(32, 256, step=32)})
    >>> space["width"]
    Int(low=32, high=256, step=32, log=False, scale=None, when=None)

    """

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        for name, p in parameters.items():
            if not isinstance(p, (Float, Int, Categorical, Ordinal, Constant)):
                raise InvalidRequest(
                    f"parameter {name!r} is {p!r}, give a Float, Int, Categorical, "
                    "Ordinal or Constant"
                )
        self._parameters = dict(parameters)

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        return f"Space({self._parameters!r})"

    def to_json(self) -> JSON:
        """Return the space in the form of a space file."""
        return {
            "version": 1,
            "parameters": {name: p.to_json() for name, p in self._parameters.items()},
        }

    @classmethod
    def from_json(cls, text: str) -> Space:
        """Read the canonical JSON that a server answers."""
        parameters: dict[str, Parameter] = {}
        for name, p in json.loads(text)["parameters"].items():
            fields = dict(p)
            kind = fields.pop("type")
            if fields.get("scale") == "log":
                del fields["scale"]
                fields["log"] = True
            parameters[name] = _KINDS[kind](**fields)
        return cls(parameters)


_KINDS: dict[str, Any] = {
    "float": Float,
    "int": Int,
    "categorical": Categorical,
    "ordinal": Ordinal,
    "constant": Constant,
}

SpaceLike = Space | Mapping[str, Any] | str | os.PathLike[str]


def space_text(space: SpaceLike) -> str:
    """Return the text of a space, which the server reads and checks."""
    if isinstance(space, str) and ("\n" in space or space.lstrip().startswith("{")):
        return space
    if isinstance(space, (str, os.PathLike)):
        with open(space, encoding="utf-8") as f:
            return f.read()
    if not isinstance(space, Mapping):
        raise InvalidRequest(
            f"space is of type {type(space).__name__}, "
            "give a dict of parameters, a text in YAML or JSON, or the path of a file"
        )
    if any(hasattr(p, "to_json") for p in space.values()):
        space = Space(space)
    try:
        return json.dumps(space.to_json() if isinstance(space, Space) else space, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise InvalidRequest(f"space cannot be written as JSON, {e}") from e
