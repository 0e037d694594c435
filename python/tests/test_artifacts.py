"""Files of trials."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import pytest

import bkb
from bkb import _artifacts, aio


@pytest.fixture
def study(
    shared: bkb.Client, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> bkb.Study:
    monkeypatch.chdir(tmp_path)
    return shared.create_study(name, {"x": bkb.Float(0, 1)}, minimize="loss", max_trials=5)


def test_a_file_of_several_parts_comes_back(study: bkb.Study) -> None:
    data = os.urandom(2 * _artifacts.PART + 1)
    Path("model.pt").write_bytes(data)
    Path("none").touch()
    with study.ask() as trial:
        artifact = trial.upload_artifact("model.pt")
        assert trial.upload_artifact(Path("none"), "ä ö").size == 0
        trial.tell(1)
    assert artifact.sha256 == hashlib.sha256(data).hexdigest()
    assert trial.artifacts() == study.artifacts(0) and len(study.artifacts(0)) == 2
    assert artifact in study.artifacts(0) and artifact.modify_time is not None
    assert trial.download_artifact("model.pt", "copy") == Path("copy")
    assert Path("copy").stat().st_mode == Path("none").stat().st_mode
    assert Path("copy").read_bytes() == data
    os.mkdir("folder")
    assert study.download_artifact(0, "ä ö", "folder").read_bytes() == b""
    assert study.download_artifact(0, "model.pt").read_bytes() == data
    trial.delete_artifact("model.pt")
    study.delete_artifact(0, "model.pt")
    assert [a.file for a in study.artifacts(0)] == ["ä ö"]
    study.upload_artifact(0, "none")  # of a trial that has ended


def test_a_study_without_a_space_has_them_too(study: bkb.Study) -> None:
    own = bkb.create_study(study.name + "-own", minimize="loss", db=Path("own.db"))
    Path("f").write_text("text")

    def objective(trial: bkb.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.upload_artifact("f", f"f{trial.number}")
        return x + trial.suggest_int(f"n{trial.number // 2}", 0, 3)

    own.optimize(objective, n_trials=4)
    assert [[a.file for a in own.artifacts(n)] for n in range(4)] == [[f"f{n}"] for n in range(4)]


def test_refusals_leave_nothing(study: bkb.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(bkb.InvalidRequest, match="is no file"):
        study.upload_artifact(0, ".")
    Path("f").write_bytes(b"x" * 100)
    study.ask()
    with pytest.raises(bkb.InvalidRequest, match="file = "):
        study.upload_artifact(0, "f", "../f")
    with pytest.raises(bkb.InvalidRequest, match="file = "):
        study.download_artifact(0, "../f")
    with pytest.raises(bkb.NotFound, match="no trial 3"):
        study.upload_artifact(3, "f")
    with pytest.raises(bkb.NotFound, match="no artifact"):
        study.download_artifact(0, "f")
    monkeypatch.setattr(_artifacts, "PART", 40)
    call, server = study._service.transport.call_identified, study._service.server
    assert server is not None
    folder = Path(f"{server.db}.artifacts")

    def interrupted(method: str, request: dict[str, object]) -> dict[str, object]:
        if request.get("offset") == "40":
            assert list(folder.rglob("part-*"))
            raise KeyboardInterrupt
        return call(method, request)

    monkeypatch.setattr(study._service.transport, "call_identified", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.upload_artifact(0, "f")
    assert not list(folder.rglob("part-*"))
    monkeypatch.undo()
    assert study.artifacts(0) == []


def test_damage_and_replacement_are_found(
    study: bkb.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_artifacts, "PART", 40)
    Path("f").write_bytes(b"x" * 100)
    study.ask()
    study.upload_artifact(0, "f")
    transport = study._service.transport
    call = transport.call
    Path("g").write_text("old")

    def damaged(method: str, request: dict[str, object]) -> dict[str, object]:
        return {**call(method, request), "data": "eHh4"}

    monkeypatch.setattr(transport, "call", damaged)
    with pytest.raises(bkb.DataDamaged, match="'f'"):
        study.download_artifact(0, "f", "g")

    def replaced(method: str, request: dict[str, object]) -> dict[str, object]:
        answer = call(method, {**request, "limit": 40})
        Path("f").write_bytes(b"y" * 100)
        study.upload_artifact(0, "f")
        return answer

    monkeypatch.setattr(transport, "call", replaced)
    with pytest.raises(bkb.NotFound, match="replaced"):
        study.download_artifact(0, "f", "g")
    assert sorted(os.listdir()) == ["f", "g"] and Path("g").read_text() == "old"


def test_asyncio(study: bkb.Study) -> None:
    Path("f").write_text("text")

    async def main() -> None:
        async with await aio.Study(study).ask() as trial:
            await trial.upload_artifact("f")
            await trial.tell(1)
        assert [a.file for a in await aio.Study(study).artifacts(0)] == ["f"]
        assert (await aio.Study(study).download_artifact(0, "f", "g")).read_text() == "text"

    asyncio.run(main())
