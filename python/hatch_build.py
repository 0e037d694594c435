"""Builds the program ``tuner`` into the wheel, and puts its Go sources into the sdist.

Environment
-----------
BKB_TARGET : system/arch of the program, as linux/arm64 (default: what ``go env`` says)
BKB_GO : the program go (default: go)
BKB_PREBUILT : a program that is built already
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).resolve().parent

# One static file serves glibc and musl.
_LINUX = "manylinux_2_17_{0}.manylinux2014_{0}.musllinux_1_1_{0}"
PLATFORMS = {
    "linux/amd64": _LINUX.format("x86_64"),
    "linux/arm64": _LINUX.format("aarch64"),
    "darwin/amd64": "macosx_12_0_x86_64",
    "darwin/arm64": "macosx_12_0_arm64",
    "windows/amd64": "win_amd64",
    "windows/arm64": "win_arm64",
}

# Folders and files of the Go module that the program is not built from.
NOT_BUILT = ("python/", "docs/", "examples/", ".ci/", ".git", "internal/torture/", "bench/")


def version() -> str:
    """Return the version, from the sdist, the tag of the commit or the changelog."""
    info = HERE / "PKG-INFO"
    if info.exists():
        found = re.search(r"^Version: (.+)$", info.read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found[1].strip()
    tag = _git("describe", "--tags", "--exact-match", "--match", "v[0-9]*")
    if tag:
        return tag.removeprefix("v")
    changes = (HERE.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## \[(\d+)\.(\d+)\.(\d+)\]", changes, re.MULTILINE)
    if newest is None:
        raise ValueError("CHANGELOG.md has no heading of a version, add one as ## [0.1.0]")
    major, minor, patch = map(int, newest.groups())
    if _git("tag", "--list", f"v{major}.{minor}.{patch}"):
        patch += 1  # the next version is under way
    return f"{major}.{minor}.{patch}.dev{_git('rev-list', '--count', 'HEAD') or 0}"


def _git(*args: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(HERE), *args], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg,unused-ignore]
    """Hook of hatchling for wheels and sdists."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the program to a wheel, or the Go sources to an sdist."""
        if self.target_name == "sdist":
            build_data["force_include"].update(go_sources())
            return
        target = os.environ.get("BKB_TARGET") or _host_target()
        if target not in PLATFORMS:
            raise SystemExit(f"BKB_TARGET is {target!r}, give one of {', '.join(PLATFORMS)}")
        self.work = Path(tempfile.mkdtemp(prefix="bkb-build-"))
        try:
            self._add_program(target, build_data)
        except BaseException:  # also SystemExit, after which finalize is not called
            shutil.rmtree(self.work, ignore_errors=True)
            raise

    def _add_program(self, target: str, build_data: dict[str, Any]) -> None:
        name = "tuner.exe" if target.startswith("windows/") else "tuner"
        binary = self.work / name
        prebuilt = os.environ.get("BKB_PREBUILT")
        if prebuilt:
            shutil.copy(prebuilt, binary)
        else:
            _build(target, binary)
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + PLATFORMS[target]
        build_data["shared_scripts"][str(binary)] = name
        for legal in ("LICENSE", "NOTICE"):
            build_data["extra_metadata"][str(_module() / legal)] = legal
        licences = self.work / "licenses"
        _licences(binary, licences)
        build_data["extra_metadata"][str(licences)] = "licenses"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the program."""
        if self.target_name != "sdist":
            shutil.rmtree(self.work, ignore_errors=True)


def _module() -> Path:
    """Return the folder of the Go module, ``go`` in an sdist and the parent in a checkout."""
    inside = HERE / "go"
    return inside if inside.is_dir() else HERE.parent


def go_sources() -> dict[str, str]:
    """Return the files of the Go module for an sdist, with their places there."""
    module = _module()
    if module != HERE.parent:  # an sdist of an sdist
        return {str(module): "go"}
    files = _git("-C", str(module), "ls-files").splitlines()
    if not files:
        raise SystemExit("an sdist is made in a git checkout, clone the repository")
    return {
        str(module / f): f"go/{f}"
        for f in files
        if not f.startswith(NOT_BUILT)
        and not f.endswith("_test.go")
        and "/testdata/" not in f
        and (module / f).is_file()
    }


def _go() -> str:
    return os.environ.get("BKB_GO") or "go"


def _host_target() -> str:
    if os.environ.get("BKB_PREBUILT"):
        raise SystemExit("BKB_PREBUILT is set, set BKB_TARGET to the system of the program too")
    return _run_go("env", "GOOS", "GOARCH").strip().replace("\n", "/")


def _build(target: str, binary: Path) -> None:
    system, arch = target.split("/")
    # A wheel of a checkout is for others. An sdist is built for this machine, with what
    # other builds left in Go's cache, which -trimpath would not use.
    checkout = _module() == HERE.parent
    _run_go(
        "build",
        *(["-trimpath"] if checkout else []),
        f"-buildvcs={'auto' if checkout else 'false'}",
        # docs/architecture.md, Size, says what these tags leave out.
        "-tags=grpcnotrace,nethttpomithttp2,nopgxregisterdefaulttypes",
        "-ldflags=-s -w",
        "-o",
        str(binary),
        "./cmd/tuner",
        GOOS=system,
        GOARCH=arch,
        CGO_ENABLED="0",
    )


def _licences(binary: Path, folder: Path) -> None:
    """Write the licences of the Go modules that the program links."""
    _run_go(
        "-C",
        "tools",
        "run",
        "./release",
        "-licences",
        str(binary),
        "-out",
        str(folder),
        GOOS="",  # this system, whatever the program is for
        GOARCH="",
        CGO_ENABLED="0",
    )


def _run_go(*args: str, **env: str) -> str:
    wanted = re.search(r"^go (\S+)$", (_module() / "go.mod").read_text(), re.MULTILINE)
    try:
        done = subprocess.run(
            [_go(), *args],
            cwd=_module(),
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=True,
        )
    except FileNotFoundError:
        needed = wanted[1] if wanted else "of a recent version"
        raise SystemExit(
            f"cannot find the program {_go()!r}. bkb-tuner is built with Go {needed} or newer, "
            "install it from https://go.dev/dl, or install a wheel of bkb-tuner"
        ) from None
    except subprocess.CalledProcessError as e:
        raise SystemExit(f"go {' '.join(args)} failed\n{e.stderr}") from None
    return done.stdout
