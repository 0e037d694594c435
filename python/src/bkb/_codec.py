"""Conversion between Python values and protojson.

Protojson writes 64-bit integers as strings, NaN and infinities as strings, and leaves
out fields that have their zero value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ._errors import InvalidRequest

MOST_TEXT = 4000  # bytes of a message

ParamValue = float | int | str | bool
JSON = dict[str, Any]


def dumps(message: Mapping[str, Any]) -> bytes:
    """Return the bytes of a message whose numbers went through the functions below."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def plain(value: Any) -> Any:
    """Return a scalar of NumPy or Torch as a Python scalar, and other values as they are."""
    if isinstance(value, (bool, int, float, str)) and type(value).__module__ == "builtins":
        return value
    item = getattr(value, "item", None)
    return item() if callable(item) else value


def number(value: Any, what: str) -> float:
    """Return a value as a float, and refuse what is no number."""
    v = plain(value)
    if v is None or isinstance(v, (bool, str, bytes)):
        raise InvalidRequest(f"{what} is {v!r} of type {type(v).__name__}, give a number")
    try:
        return float(v)
    except OverflowError as e:
        raise InvalidRequest(f"{what} is too large for a float, give a smaller number") from e
    except (TypeError, ValueError) as e:
        raise InvalidRequest(f"{what} is {v!r} of type {type(v).__name__}, give a number") from e


def integer(value: Any, what: str, low: int = 0, high: float = math.inf) -> int:
    """Return a value as an integer of at least low and at most high."""
    v = plain(value)
    whole = isinstance(v, (int, float)) and not isinstance(v, bool) and v == v // 1
    if not whole or not low <= v <= high:
        most = "or more" if high == math.inf else f"to {high}"
        has = "too large" if isinstance(v, int) and v.bit_length() > 256 else repr(value)
        raise InvalidRequest(f"{what} is {has}, give an integer of {low} {most}")
    return int(v)


def text(value: Any) -> str:
    """Return the text of a message, without what a message must not hold and not too long.

    Control characters are left out, with the colours and titles of terminals, and so are
    characters that change the direction of text. Halves of surrogate pairs become "?".
    """
    kept = _CONTROL.sub("", str(value)).encode(errors="replace")
    return kept[:MOST_TEXT].decode(errors="ignore")


def said(e: BaseException) -> str:
    """Return the text of an exception as a message."""
    try:
        return text(e)
    except Exception:  # its own method failed
        return ""


def described(e: BaseException) -> str:
    """Return the class and text of an exception as a message."""
    return f"{type(e).__name__}: {said(e)}".rstrip(": ")


_CONTROL = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    r"|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def encode_float(value: float) -> float | str:
    """Return a double as protojson has it."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def encode_int(value: int) -> str:
    """Return a 64-bit integer as protojson has it."""
    return str(value)


decode_float = float  # which knows "NaN", "Infinity" and "-Infinity"


def encode_value(value: Any, name: str) -> JSON:
    """Return a parameter's value as a message Value."""
    v = plain(value)
    if isinstance(v, bool):
        return {"boolValue": v}
    if isinstance(v, int):
        if not -(2**63) <= v < 2**63:
            raise InvalidRequest(f"parameter {name!r} is {v}, give an integer of 64 bits")
        return {"intValue": encode_int(v)}
    if isinstance(v, float):
        return {"floatValue": encode_float(v)}
    if isinstance(v, str):
        return {"stringValue": v}
    raise InvalidRequest(
        f"parameter {name!r} is {v!r} of type {type(v).__name__}, "
        "give a float, an int, a string or a bool"
    )


def decode_value(message: JSON) -> ParamValue:
    """Return the Python value of a message Value."""
    ((kind, v),) = message.items()
    if kind == "floatValue":
        return decode_float(v)
    if kind == "intValue":
        return int(v)
    if kind == "boolValue":
        return bool(v)
    return str(v)


def decode_config(config: JSON) -> dict[str, ParamValue]:
    """Return a configuration in order of name."""
    return {name: decode_value(config[name]) for name in sorted(config)}


def encode_duration(seconds: float, what: str) -> str:
    """Return a duration as protojson has it, with nine decimals at most."""
    seconds = number(seconds, what)
    if not 0 < seconds < 3e11:
        raise InvalidRequest(f"{what} is {seconds} s, give more than 0 and at most 3e11 seconds")
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def decode_duration(text: str) -> float:
    """Return the seconds of a duration."""
    return float(text.removesuffix("s"))


def decode_time(text: str | None) -> datetime | None:
    """Read RFC 3339 in UTC with up to nine decimals. datetime keeps six."""
    if not text:
        return None
    base, _, fraction = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{base}.{fraction[:6]:0<6}+00:00")


def encode_attributes(attributes: Mapping[str, Any] | None) -> dict[str, str]:
    """Return each attribute as JSON, but a text that is no JSON as it is."""
    return {
        str(k): v
        if isinstance(v, str) and decode_attribute(v) == v
        else json.dumps(v, default=_listed)
        for k, v in (attributes or {}).items()
    }


def decode_attribute(text: str) -> Any:
    """Return the value of an attribute, which is the text if JSON does not read it."""
    try:
        return json.loads(text) if text[:1] in _BEGINS else text
    except ValueError:
        return text


_BEGINS = tuple('{["-0123456789tfnNI')  # of values in JSON


def _listed(value: Any) -> Any:
    """Return a number or an array of NumPy or Torch as JSON has it."""
    tolist = getattr(value, "tolist", None)
    if callable(tolist):
        return tolist()
    raise InvalidRequest(
        f"an attribute holds {value!r} of type {type(value).__name__}, give what JSON can hold"
    )


def decode_metrics(metrics: JSON) -> dict[str, list[float]]:
    """Return the values of each metric."""
    return {name: [decode_float(v) for v in m.get("values", [])] for name, m in metrics.items()}
