"""The program tuner that the wheel brings along."""

from __future__ import annotations

import os

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
    import sysconfig  # which is needed at a start only

    target = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")),
        os.path.join(target, "bin"),  # pip install --target
    ]
    looked = [os.path.join(folder, name) for folder in folders]
    for path in looked:
        if os.access(path, os.X_OK):
            return path
    import shutil  # which costs as much as the rest of the package's start

    found = shutil.which(name)
    if found:
        return found
    places = ", ".join(looked)
    raise Error(
        f"the program {name} is not in {places} or on PATH, "
        "reinstall bkb-tuner or set BKB_TUNER to the program"
    )
