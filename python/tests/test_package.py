"""What is in wheels and sdists.

BKB_DIST is a folder of them. `make python` and `make wheels` set it.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import bkb
from bkb._binary import find_binary

PROJECT = Path(__file__).resolve().parents[1]
DIST = Path(os.environ.get("BKB_DIST", "nowhere"))
WHEELS = sorted(DIST.glob("*.whl"))
SDISTS = sorted(DIST.glob("*.tar.gz"))

ELF = {0x3E: "x86_64", 0xB7: "aarch64"}
MACH = {0x01000007: "x86_64", 0x0100000C: "arm64"}
PE = {0x8664: "win_amd64", 0xAA64: "win_arm64"}


def platform_of(program: bytes) -> str:
    """Return the system and processor that a program's header names."""
    if program[:4] == b"\x7fELF":
        return "linux_" + ELF[struct.unpack_from("<H", program, 18)[0]]
    if program[:4] == b"\xcf\xfa\xed\xfe":
        return "macosx_12_0_" + MACH[struct.unpack_from("<I", program, 4)[0]]
    assert program[:2] == b"MZ"
    header = struct.unpack_from("<I", program, 0x3C)[0]
    assert program[header : header + 4] == b"PE\0\0"
    return PE[struct.unpack_from("<H", program, header + 4)[0]]


def interpreter(program: bytes) -> bool:
    """Tell whether an ELF program asks for a dynamic loader."""
    offset = struct.unpack_from("<Q", program, 32)[0]
    size, count = struct.unpack_from("<HH", program, 54)
    kinds = [struct.unpack_from("<I", program, offset + i * size)[0] for i in range(count)]
    return 3 in kinds


@pytest.mark.skipif(not WHEELS, reason="BKB_DIST names no folder with wheels")
def test_uvx(tmp_path: Path) -> None:
    """`uvx bkb-tuner` runs the program, from the wheel of this machine."""
    uvx = shutil.which("uvx", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if uvx is None:
        pytest.skip("uv is not installed, make notebook installs it")
    folder = f"--find-links={DIST.resolve()}"
    cache = f"--cache-dir={tmp_path / 'cache'}"
    command = [uvx, "--no-config", "--no-index", folder, cache, "bkb-tuner", "version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tuner ")


@pytest.mark.skipif(not WHEELS, reason="BKB_DIST names no folder with wheels")
@pytest.mark.parametrize("path", WHEELS, ids=lambda p: p.name.split("-")[-1][:30])
def test_wheel(path: Path, tmp_path: Path) -> None:
    assert path.stat().st_size <= 16e6
    with zipfile.ZipFile(path) as z:
        names = z.namelist()
        (script,) = (n for n in names if ".data/scripts/" in n)
        program = z.read(script)
        info = z.getinfo(script)
        assert info.external_attr >> 16 & 0o777 == 0o755
        (tags,) = (z.read(n).decode() for n in names if n.endswith("/WHEEL"))
        (record,) = (n for n in names if n.endswith("/RECORD"))
        listed = {r[0]: r[1] for r in csv.reader(io.StringIO(z.read(record).decode()))}
        assert set(listed) == set(names)
        for n in names:
            if n != record:
                digest = base64.urlsafe_b64encode(hashlib.sha256(z.read(n)).digest())
                assert listed[n] == "sha256=" + digest.decode().rstrip("="), n
        assert {"bkb/py.typed", "bkb/__init__.py", "bkb/aio.py"} <= set(names)
        assert any(n.endswith("/LICENSE") for n in names)
        go = shutil.which("go")
        if go:
            (tmp_path / "tuner").write_bytes(program)
            linked = subprocess.check_output([go, "version", "-m", tmp_path / "tuner"], text=True)
            modules = re.findall(r"^\tdep\t(\S+)\t(\S+)", linked, re.MULTILINE)
            assert len(modules) > 20
            for module, version in [*modules, ("std", "")]:
                texts = [
                    n
                    for n in names
                    if f".dist-info/extra_metadata/licenses/{module}@{version}" in n
                ]
                assert texts and all(z.read(n).strip() for n in texts), module
    platform = platform_of(program)
    wanted = [platform]
    if platform.startswith("linux_"):
        assert not interpreter(program)  # so that one file serves glibc and musl
        arch = platform.removeprefix("linux_")
        wanted = [f"manylinux2014_{arch}", f"manylinux_2_17_{arch}", f"musllinux_1_1_{arch}"]
    has = sorted(line.split()[1] for line in tags.splitlines() if line.startswith("Tag:"))
    assert has == [f"py3-none-{w}" for w in wanted]
    assert "Root-Is-Purelib: false" in tags
    assert script.endswith(".exe") == platform.startswith("win")


@pytest.mark.skipif(not SDISTS, reason="BKB_DIST names no folder with an sdist")
def test_sdist_builds_outside_of_the_checkout(tmp_path: Path) -> None:
    with tarfile.open(SDISTS[-1]) as t:
        t.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    assert not list(source.rglob("*_test.go"))
    build(source, tmp_path / "out")
    (wheel,) = (tmp_path / "out").iterdir()
    with zipfile.ZipFile(wheel) as z:
        (script,) = (n for n in z.namelist() if ".data/scripts/" in n)
        program = Path(z.extract(script, tmp_path / "x"))
    program.chmod(0o755)
    assert subprocess.check_output([program, "version"]).startswith(b"tuner ")


def build(source: Path, out: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    mine = {k: v for k, v in os.environ.items() if not k.startswith("BKB_")}
    done = subprocess.run(
        [*command, str(source)], env={**mine, **env}, capture_output=True, text=True
    )
    if not env:
        assert done.returncode == 0, done.stderr
    return done


def test_a_program_that_is_built_already(tmp_path: Path) -> None:
    pytest.importorskip("build", reason="build is not installed")
    out = tmp_path / "out"
    done = build(PROJECT, out, BKB_PREBUILT=find_binary(), BKB_TARGET="darwin/arm64")
    assert done.returncode == 0, done.stderr
    (wheel,) = out.iterdir()
    assert wheel.name.endswith("-py3-none-macosx_12_0_arm64.whl")


@pytest.mark.parametrize(
    "env, said",
    [
        ({"BKB_TARGET": "plan9/386"}, "BKB_TARGET is 'plan9/386', give one of linux/amd64"),
        ({"BKB_GO": "no-such-go"}, "cannot find the program 'no-such-go'"),
        ({"BKB_PREBUILT": "tuner"}, "BKB_PREBUILT is set, set BKB_TARGET"),
    ],
)
def test_mistakes_of_a_build(tmp_path: Path, env: dict[str, str], said: str) -> None:
    pytest.importorskip("build", reason="build is not installed")
    done = build(PROJECT, tmp_path, **env)
    assert done.returncode != 0 and said in done.stdout + done.stderr


def test_module_runs_the_program() -> None:
    out = subprocess.check_output([sys.executable, "-m", "bkb", "version"])
    assert out.startswith(b"tuner ")


def test_program_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = find_binary()
    monkeypatch.delenv("BKB_TUNER", raising=False)
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path / "scripts"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(bkb.Error, match="reinstall bkb-tuner"):
        find_binary()
    (tmp_path / "tuner").symlink_to(program)
    assert find_binary() == str(tmp_path / "tuner")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "tuner").symlink_to(program)
    assert find_binary() == str(tmp_path / "scripts" / "tuner")


def test_import_takes_nothing_from_outside() -> None:
    script = "import sys, bkb, bkb.aio; print(*{m.partition('.')[0] for m in sys.modules})"
    # -I -S: without site-packages, so that an import of another package fails
    root = str(Path(bkb.__file__).resolve().parents[1])
    code = f"import sys; sys.path.insert(0, {root!r}); {script}"
    out = subprocess.check_output([sys.executable, "-I", "-S", "-c", code], text=True)
    outside = set(out.split()) - set(sys.stdlib_module_names) - {"bkb", "__main__"}
    assert not outside


def test_import_leaves_out_what_takes_long() -> None:
    root = str(Path(bkb.__file__).resolve().parents[1])
    code = f"import sys; sys.path.insert(0, {root!r}); import bkb; print(*sys.modules)"
    out = subprocess.check_output([sys.executable, "-I", "-S", "-c", code], text=True)
    slow = {"decimal", "hashlib", "http.client", "pathlib", "random", "shutil", "socket", "ssl"}
    slow |= {"subprocess", "sysconfig", "tempfile", "urllib.parse"}
    assert not slow & set(out.split())


def test_version() -> None:
    assert bkb.__version__ == importlib.metadata.version("bkb-tuner")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bkb.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_warnings_are_seen() -> None:
    code = "import bkb, logging; logging.getLogger('bkb').warning('y is drawn at random')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "y is drawn at random" in done.stderr
