"""Search spaces."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NoReturn

from ._codec import JSON, ParamValue, encode_value, plain
from ._errors import InvalidRequest

Scale = Literal["linear", "log", "reverse-log"]
SCALES = ("linear", "log", "reverse-log")
When = Mapping[str, Any]


@dataclass(frozen=True)
class _Number:
    """A range."""  # dataclass makes a long one of the signature where there is none

    low: float
    high: float
    step: float | None = None
    log: bool = False
    scale: Scale | None = None
    when: When | None = None

    def __post_init__(self) -> None:
        _check_range(self, _refusing("bkb." + type(self).__name__))

    def decode(self, value: Any) -> Any:
        """Return a value of the server as the user has it."""
        return value

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

    Examples
    --------
    >>> bkb.Float(1e-5, 0.1, log=True).to_json()
    {'type': 'float', 'low': 1e-05, 'high': 0.1, 'scale': 'log'}

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
    """Integer from low to high, both included. The parameters are those of `Float`.

    Examples
    --------
    >>> bkb.Int(32, 256, step=32).to_json()
    {'type': 'int', 'low': 32, 'high': 256, 'step': 32}

    """

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

    values: Sequence[Any]
    when: When | None = None

    def __post_init__(self) -> None:
        kind = "bkb." + type(self).__name__
        if isinstance(self.values, str) or not isinstance(self.values, Sequence):
            raise InvalidRequest(f"{kind} has values {self.values!r}, give a list")
        _check_when(self.when, _refusing(kind))
        if not self.values:
            _refusing(kind)("choices", [], "there is one choice or more", "give choices")

    def _fields(self, kind: str) -> JSON:
        return _conditional({"type": kind, "values": self.names}, self.when)

    @cached_property
    def names(self) -> list[Any]:
        """The values as the server has them. What JSON has not is there by a name."""
        sent = list(map(_scalar, self.values))
        taken = {_text(v) for v in sent if _simple(v)}
        for i, v in enumerate(sent):
            if not _simple(v):
                name = base = _label(v)
                n = 1
                while name in taken:
                    n += 1
                    name = f"{base} {n}"
                taken.add(name)
                sent[i] = name
        return sent

    @property
    def named(self) -> bool:
        """Whether values are on the server by name."""
        return not all(_simple(_scalar(v)) for v in self.values)

    def coerce(self, value: Any) -> Any:
        """Return a choice as the server has it."""
        for v, name in zip(self.values, self.names, strict=True):
            if v is value or _equal(v, value):
                return name
        value = _scalar(value)
        if _simple(value):
            return _among(self.names, value)
        name = _label(value)  # which is that of the choice if the study was loaded
        return name if name in self.names and name != type(value).__name__ else value

    def decode(self, value: Any) -> Any:
        """Return a value of the server as the user gave it."""
        i = self.index(value)
        return value if i < 0 else _scalar(self.values[i])

    def index(self, value: Any) -> int:
        """Return the index of a value of the server in the list, or -1."""
        found = [i for i, v in enumerate(self.names) if type(v) is type(value) and v == value]
        return found[0] if found else -1


def _scalar(value: Any) -> Any:
    """Return a scalar of NumPy as that of Python, and arrays and other objects as they are."""
    return value if getattr(value, "ndim", 0) else plain(value)


def _simple(value: Any) -> bool:
    """Tell whether JSON has a value."""
    return type(value) in (str, bool, int) or type(value) is float and math.isfinite(value)


def _equal(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:  # such as arrays, which have no truth
        return False


def _label(value: Any) -> str:
    """Return a name of an object that is the same in every process."""
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    if isinstance(value, (set, frozenset)):
        return f"{{{', '.join(sorted(map(_label, value)))}}}"
    text = " ".join(repr(value).split())
    return type(value).__name__ if " at 0x" in text else text[:LONGEST_NAME]


@dataclass(frozen=True)
class Categorical(_Choice):
    """One of some values without an order.

    Parameters
    ----------
    values : list
        Strings, bools, numbers, or any objects. An object is on the server by a name, which
        is its ``repr`` or the name of its class, and trials have it as you gave it.
    when : dict, optional
        Parents with the value, or list of values, for which the parameter is active.

    Examples
    --------
    >>> bkb.Categorical(["adam", None, (64, 64)]).names
    ['adam', 'None', '(64, 64)']

    """

    def to_json(self) -> JSON:
        """Return the parameter in the form of a space file."""
        return self._fields("categorical")


@dataclass(frozen=True)
class Ordinal(_Choice):
    """One of some values in an order that means something. See `Categorical`.

    Examples
    --------
    >>> bkb.Ordinal([16, 32, 128]).to_json()
    {'type': 'ordinal', 'values': [16, 32, 128]}

    """

    def to_json(self) -> JSON:
        """Return the parameter in the form of a space file."""
        return self._fields("ordinal")


def of_list(values: Sequence[Any], name: str) -> Categorical | Ordinal:
    """Return the parameter of a list of other libraries, which is ordinal for three numbers."""
    if not values:
        raise InvalidRequest(f"parameter {name!r} of space is an empty list, give values")
    numbers = [plain(v) for v in values]
    if len(values) < 3 or not all(type(v) in (int, float) and _simple(v) for v in numbers):
        return Categorical(values)
    up = sorted(numbers)
    return Ordinal(numbers if numbers in (up, up[::-1]) else up)


@dataclass(frozen=True)
class Constant:
    """One value that every trial has.

    Parameters
    ----------
    value : float, int, str or bool
        The value.
    when : dict, optional
        Parents with the value, or list of values, for which the parameter is active.

    Examples
    --------
    >>> bkb.Constant("v2").to_json()
    {'type': 'constant', 'value': 'v2'}

    """

    value: ParamValue
    when: When | None = None

    def to_json(self) -> JSON:
        """Return the parameter in the form of a space file."""
        return _conditional({"type": "constant", "value": plain(self.value)}, self.when)

    def coerce(self, value: Any) -> Any:
        """Return a number as the value of the constant if they are equal."""
        return _among([self.value], value)

    def decode(self, value: Any) -> Any:
        """Return a value of the server as the user has it."""
        return value


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
    # 1 and 1.0 may both be there. Where only one of them is, the other means it.
    for candidate in sorted(values, key=lambda c: type(c) is not type(v)):
        same_sort = isinstance(candidate, bool) == isinstance(v, bool)
        if same_sort and isinstance(candidate, str) == isinstance(v, str) and candidate == v:
            return candidate
    return v


MOST_BYTES = 128  # of a name
MOST_CHOICES = 10_000
MOST_TEXT = 4096  # bytes of a choice
LONGEST_NAME = 200  # characters of the name of an object
EXACT = 2**63


Refusal = Callable[[str, Any, str, str], NoReturn]


def _refusing(what: str) -> Refusal:
    """Return what refuses a field of a parameter."""

    def refuse(field: str, value: Any, rule: str, remedy: str) -> NoReturn:
        raise InvalidRequest(f"{what} has {field} {value!r}, {rule}, {remedy}")

    return refuse


def check(name: Any, p: Parameter) -> None:
    """Refuse a parameter that a server would refuse, before a trial uses it."""
    refuse = _refusing(f"parameter {name!r}")
    if not isinstance(name, str):
        raise InvalidRequest(f"the name of a parameter is {name!r}, a name is a text, give a text")
    if not name or name.strip() != name or _disturbs(name):
        refuse(
            "name",
            name,
            "a name has characters, all printable, and no space at its ends",
            "rename it",
        )
    if len(name.encode()) > MOST_BYTES:
        refuse("name", name, f"a name has at most {MOST_BYTES} bytes", "shorten it")
    if isinstance(p, (Categorical, Ordinal)):
        _check_choices(p.values, refuse)


def _disturbs(name: str) -> bool:
    if name.isprintable():
        return False
    import unicodedata

    return any(unicodedata.category(c) in ("Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn") for c in name)


def _check_range(p: _Number, refuse: Refusal) -> None:
    whole = isinstance(p, Int)
    _check_when(p.when, refuse)
    low, high, step = plain(p.low), plain(p.high), plain(p.step)
    for field, v in (("low", low), ("high", high), ("step", step)):
        if v is None and field == "step":
            continue
        if isinstance(v, bool) or not isinstance(v, (int, float)) or not math.isfinite(v):
            refuse(field, v, "it is a finite number", "give a number")
        if whole and not float(v).is_integer():
            refuse(
                field, v, "an int has whole numbers", "round it, or use bkb.Float or suggest_float"
            )
        if whole and not -EXACT <= v < EXACT:
            refuse(
                field,
                v,
                "an int has 64 bits",
                "give a smaller number, or use bkb.Float or suggest_float",
            )
    if p.scale not in (None, *SCALES):
        refuse("scale", p.scale, f"it is one of {', '.join(SCALES)}", "give one, or log=True")
    if low > high:
        refuse("low", low, f"low is at most high, which is {high!r}", "swap them")
    log = p.log or p.scale not in (None, "linear")
    if log and low <= 0:
        refuse("low", low, "a range with log=True is above 0", "raise low, or leave out log")
    if step is not None and step <= 0:
        refuse("step", step, "a step is above 0", "give a positive one, or leave it out")
    if log and step is not None:
        refuse("step", step, "a range with log=True has no step", "leave out step or log")


def _check_when(when: Any, refuse: Refusal) -> None:
    if not isinstance(when, (Mapping, type(None))):
        rule = "a condition is a dict from parents to values"
        refuse("when", when, rule, "write when={'optimizer': 'sgd'}")


def _check_choices(values: Sequence[Any], refuse: Refusal) -> None:
    if len(values) > MOST_CHOICES:
        rule = f"there are at most {MOST_CHOICES}"
        refuse("choices", f"{len(values)} of them", rule, "give fewer, or use suggest_int")
    seen: dict[str, Any] = {}
    for v in values:
        if isinstance(v, float) and not math.isfinite(v):
            refuse("choice", v, "a number is finite", "give None, or a text such as 'inf'")
        if isinstance(v, str) and len(v.encode(errors="surrogatepass")) > MOST_TEXT:
            refuse("choice", v[:40] + "…", f"a text has at most {MOST_TEXT} bytes", "shorten it")
        text = _text(v) if _simple(v) else _label(v)
        if text in seen and (_simple(v) and _simple(seen[text]) or _equal(v, seen[text])):
            rule = f"{seen[text]!r} is written the same"
            refuse("choice", v, rule, "leave out one of them, or rename it")
        seen[text] = v


def _text(v: ParamValue) -> str:
    """Return a choice as the server writes it."""
    if isinstance(v, bool):
        return str(v).lower()
    return str(v)


def same(a: Parameter, b: Parameter) -> bool:
    """Compare two parameters as a server reads them."""
    return _form(a) == _form(b)


def same_values(a: Parameter, b: Parameter) -> bool:
    """Compare two parameters without their conditions."""
    return {**_form(a), "when": None} == {**_form(b), "when": None}


def _form(p: Parameter) -> JSON:
    fields: JSON = json.loads(json.dumps(p.to_json()))
    usual = {"scale": "linear", **({"step": 1} if fields["type"] == "int" else {})}
    fields = {k: v for k, v in fields.items() if k not in usual or v != usual[k]}
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
    >>> Space({"a": Float(0, 1), "b": Float(0, 1)}, constraints=["a <= b"]).constraints
    ('a <= b',)

    """

    def __init__(
        self, parameters: Mapping[str, Parameter], constraints: Sequence[str] = ()
    ) -> None:
        for name, p in parameters.items():
            if not isinstance(p, (Float, Int, Categorical, Ordinal, Constant)):
                raise InvalidRequest(f"parameter {name!r} is {p!r}, {GIVE}")
        if isinstance(constraints, str) or not all(isinstance(c, str) for c in constraints):
            raise InvalidRequest(f"constraints is {constraints!r}, give a list of texts")
        self._parameters = {n: _by_name(p, parameters) for n, p in parameters.items()}
        self.constraints = tuple(constraints)

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        if self.constraints:
            return f"Space({self._parameters!r}, constraints={list(self.constraints)!r})"
        return f"Space({self._parameters!r})"

    def as_given(self, given: Mapping[str, Any]) -> Space:
        """Return the space of a server with choices as the user gave them."""
        parameters = dict(self._parameters)
        for name, p in parameters.items():
            other = given.get(name)
            if isinstance(p, _Choice) and isinstance(other, _Choice) and other.named:
                parameters[name] = replace(p, values=other.values) if other.names == p.names else p
        return Space(parameters, self.constraints)

    def decode(self, params: Mapping[str, ParamValue]) -> Mapping[str, Any]:
        """Return the parameters of a server as the user has them."""
        if not self.named:
            return params
        return {n: self[n].decode(v) if n in self else v for n, v in params.items()}

    @cached_property
    def named(self) -> bool:
        """Whether choices are on the server by name."""
        return any(map(has_names, self._parameters.values()))

    def to_json(self) -> JSON:
        """Return the space in the form of a space file."""
        form: JSON = {
            "version": 1,
            "parameters": {name: p.to_json() for name, p in self._parameters.items()},
        }
        if self.constraints:
            form["constraints"] = list(self.constraints)
        return form

    @classmethod
    def from_json(cls, text: str) -> Space:
        """Read the canonical JSON that a server answers."""
        parameters: dict[str, Parameter] = {}
        form = json.loads(text)
        for name, p in form["parameters"].items():
            fields = dict(p)
            kind = fields.pop("type")
            if fields.get("scale") == "log":
                del fields["scale"]
                fields["log"] = True
            parameters[name] = _KINDS[kind](**fields)
        return cls(parameters, form.get("constraints", ()))


def has_names(p: Parameter) -> bool:
    """Tell whether choices of a parameter are on the server by name."""
    return isinstance(p, _Choice) and p.named


def _by_name(p: Parameter, space: Mapping[str, Any]) -> Parameter:
    """Return a parameter whose condition has the values of parents as the server has them."""
    when: dict[str, Any] = {}
    for parent, values in (p.when or {}).items():
        known = space.get(parent)
        if isinstance(known, _Choice) and known.named:
            one = known.coerce(values)
            many = values if isinstance(values, (list, tuple)) else [values]
            when[parent] = one if one in known.names else [known.coerce(v) for v in many]
    return replace(p, when={**(p.when or {}), **when}) if when else p


_KINDS: dict[str, Any] = {
    "float": Float,
    "int": Int,
    "categorical": Categorical,
    "ordinal": Ordinal,
    "constant": Constant,
}


def encode_config(space: Space, params: Mapping[str, Any]) -> JSON:
    """Return parameters in the form of the wire."""
    return {name: encode_value(v, name) for name, v in coerce(space, params).items()}


def coerce(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as a server has them."""
    for name in params:
        if name not in space:
            has = ", ".join(space) or "no parameters yet"
            raise InvalidRequest(f"parameter {name!r} is not in the space, which has {has}")
    return {name: space[name].coerce(value) for name, value in params.items()}


def by_name(value: Any) -> Any:
    """Return a value, or the name of one that JSON has not."""
    v = _scalar(value)
    return v if _simple(v) else _label(v)


GIVE = "give a bkb.Float, bkb.Int, bkb.Categorical, bkb.Ordinal or bkb.Constant"

SpaceLike = Space | Mapping[str, Any] | str | os.PathLike[str]


def space_text(space: SpaceLike) -> str:
    """Return the text of a space, which the server reads and checks."""
    if isinstance(space, str) and ("\n" in space or space.lstrip().startswith("{")):
        return space
    if isinstance(space, (str, os.PathLike)):
        try:
            with open(space, encoding="utf-8") as f:
                return f.read()
        except FileNotFoundError as e:
            raise InvalidRequest(
                f"space is {os.fspath(space)!r}, which is no file in {os.getcwd()}, give a dict of "
                "parameters, a text in YAML or JSON, or the path of a file"
            ) from e
    if not isinstance(space, Mapping):
        raise InvalidRequest(
            f"space is of type {type(space).__name__}, "
            "give a dict of parameters, a text in YAML or JSON, or the path of a file"
        )
    form = "parameters" in space or all(isinstance(p, Mapping) for p in space.values())
    if not isinstance(space, Space) and not form:
        space = Space(space)
    try:
        return json.dumps(space.to_json() if isinstance(space, Space) else space, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise InvalidRequest(f"space cannot be written as JSON, {e}") from e
