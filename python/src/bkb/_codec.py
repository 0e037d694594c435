"""Conversion between Python values and protojson.

Protojson writes 64-bit integers as strings, NaN and infinities as strings, and leaves
out fields that have their zero value.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ._errors import InvalidRequest

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
    except (TypeError, ValueError) as e:
        raise InvalidRequest(f"{what} is {v!r} of type {type(v).__name__}, give a number") from e


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


def decode_float(value: Any) -> float:
    """Read a double. float() knows "NaN", "Infinity" and "-Infinity"."""
    return float(value)


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
    microsecond = int(fraction[:6].ljust(6, "0"))
    return datetime.fromisoformat(base).replace(microsecond=microsecond, tzinfo=timezone.utc)


def encode_attributes(attributes: Mapping[str, Any] | None) -> dict[str, str]:
    """Return attributes with their values as text."""
    return {
        str(k): v if isinstance(v, str) else json.dumps(v) for k, v in (attributes or {}).items()
    }


def decode_metrics(metrics: JSON) -> dict[str, list[float]]:
    """Return the values of each metric."""
    return {name: [decode_float(v) for v in m.get("values", [])] for name, m in metrics.items()}
