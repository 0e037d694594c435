"""The program tuner that the wheel brings along."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

from ._errors import Error


def find_binary() -> str:
    """Return the path of the program ``tuner``.

    The environment variable ``BKB_TUNER`` comes first, then the folders for scripts of
    this Python, then ``PATH``.
    """
    name = "tuner.exe" if os.name == "nt" else "tuner"
    chosen = os.environ.get("BKB_TUNER")
    if chosen:
        if os.access(chosen, os.X_OK):
            return chosen
        raise Error(f"BKB_TUNER is {chosen!r}, which is not a program, name the program tuner")
    scheme = sysconfig.get_preferred_scheme("user")
    looked = [
        Path(sysconfig.get_path("scripts")) / name,
        Path(sysconfig.get_path("scripts", scheme)) / name,
        Path(__file__).resolve().parent.parent / "bin" / name,  # pip install --target
    ]
    for path in looked:
        if os.access(path, os.X_OK):
            return str(path)
    import shutil  # which costs as much as the rest of the package's start

    found = shutil.which(name)
    if found:
        return found
    places = ", ".join(map(str, looked))
    raise Error(
        f"the program {name} is not in {places} or on PATH, "
        "reinstall bkb-tuner or set BKB_TUNER to the program"
    )
