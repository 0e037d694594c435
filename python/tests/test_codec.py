from __future__ import annotations

import json
import math
import re
from datetime import timedelta
from fractions import Fraction

import pytest
from conftest import REPOSITORY

import bkb
from bkb import _codec, _errors
from bkb._goals import Goals
from bkb._transport import Failure
from bkb._views import TrialView

SPACE = {"x": bkb.Float(0, 1), "n": bkb.Int(-(2**60), 2**60)}


def test_zero_values_that_the_wire_leaves_out() -> None:
    view = TrialView.decode({"name": "studies/s/trials/0"}, Goals(("loss",), ("minimize",)))
    assert (view.number, view.epoch, view.worker, view.cost) == (0, 0, "", 0.0)
    assert view.value is None and view.params == {} and view.suggestion is None


@pytest.mark.parametrize("v", [0, 0.0, "", False, True, 2**53 + 1, -(2**63), 1e-300, "ä\n"])
def test_values_keep_their_type_and_bits(v: object) -> None:
    wire = json.loads(_codec.dumps(_codec.encode_value(v, "p")))
    back = _codec.decode_value(wire)
    assert back == v and type(back) is type(v)


@pytest.mark.parametrize("v", [math.inf, -math.inf, 5e-324, 1.7976931348623157e308])
def test_floats(v: float) -> None:
    assert _codec.decode_float(json.loads(json.dumps(_codec.encode_float(v)))) == v
    assert _codec.encode_float(math.nan) == "NaN"


def test_large_integers_survive_the_server(shared: bkb.Client, name: str) -> None:
    study = shared.create_study(name, SPACE, minimize="loss")
    n = 2**53 + 1
    study.enqueue({"x": 0, "n": n})
    trial = study.ask()
    assert (trial.number, trial["n"], trial["x"]) == (0, n, 0.0)
    assert isinstance(trial["x"], float)


@pytest.mark.parametrize("value", [math.inf, -1e308, 0.0])
def test_objective_values_survive_the_server(shared: bkb.Client, name: str, value: float) -> None:
    study = shared.create_study(name, SPACE, minimize="loss")
    assert study.ask().tell(value).value == value
    assert study.trial(0).value == value


@pytest.mark.parametrize("value", [True, "1", b"1", None, object(), [1, 2]])
def test_values_that_are_no_numbers_are_refused(value: object) -> None:
    with pytest.raises(bkb.InvalidRequest):
        _codec.number(value, "value")


def test_numbers_of_libraries() -> None:
    class Scalar:  # as those of NumPy and Torch
        def item(self) -> float:
            return 1.5

    assert _codec.number(Scalar(), "value") == 1.5
    assert _codec.number(Fraction(1, 2), "value") == 0.5
    assert _codec.encode_value(Scalar(), "p") == {"floatValue": 1.5}


def test_integers_beyond_64_bits_are_refused() -> None:
    with pytest.raises(bkb.InvalidRequest, match="64 bits"):
        _codec.encode_value(2**63, "p")


def test_times_and_durations() -> None:
    t = _codec.decode_time("2026-11-22T07:50:12.126791034Z")
    assert t is not None and (t.microsecond, t.utcoffset()) == (126791, timedelta(0))
    assert _codec.decode_time("2026-11-22T07:50:12Z") is not None
    assert _codec.decode_time("") is None
    assert _codec.encode_duration(1.5, "lease") == "1.5s"
    assert _codec.encode_duration(3600, "lease") == "3600s"
    assert _codec.decode_duration("0.000000001s") == 1e-9
    for wrong in (0, -1, math.nan, math.inf):
        with pytest.raises(bkb.InvalidRequest, match="lease"):
            _codec.encode_duration(wrong, "lease")


def test_every_reason_of_the_contract_has_a_class() -> None:
    proto = (REPOSITORY / "proto/tuner/v1/tuner.proto").read_text()
    table = proto.partition('"bkbtuner"')[2].partition("syntax =")[0]
    reasons = set(re.findall(r"\b([A-Z_]{6,})[:;]", table))
    reasons |= set(re.findall(r"([A-Z]+), [A-Z]+: the study", table))
    assert {"INVALID", "NONE_LEFT", "LEASE_LOST", "ALREADY_TOLD", "DAMAGED"} <= reasons
    assert len(reasons) >= 15
    assert reasons <= set(_errors.CLASSES)
    for reason, cls in _errors.CLASSES.items():
        details = [{"reason": reason, "domain": "bkbtuner"}]
        body = json.dumps({"code": 9, "message": "m", "details": details}).encode()
        e = Failure.answered(400, body).error()
        assert type(e) is cls and e.reason == reason and e.code == 9


def test_answers_that_are_not_the_servers() -> None:
    f = Failure.answered(502, b"<html>Bad gateway</html>")
    assert isinstance(f.error(), bkb.Unavailable) and not f.by_service
    assert f.retryable() and f.may_have_happened()
    f = Failure.answered(500, b"[]")
    assert isinstance(f.error(), bkb.MayHaveHappened) and f.may_have_happened()
    for http, kind in ((400, bkb.Unsupported), (404, bkb.Unsupported), (403, bkb.Denied)):
        f = Failure.answered(http, b"<html>")
        assert isinstance(f.error(), kind) and not f.retryable() and not f.settles()
