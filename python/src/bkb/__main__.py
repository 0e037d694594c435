"""``python -m bkb`` runs the program ``tuner`` with the same arguments.

``python -m bkb import-optuna`` reads a study from a storage of Optuna and imports it.
"""

from __future__ import annotations

import os
import subprocess
import sys

from ._binary import find_binary


def main() -> int:
    """Run the program and return its exit status."""
    if sys.argv[1:2] == ["import-optuna"]:
        from ._import_optuna import main as import_optuna

        return import_optuna(sys.argv[2:])
    command = [find_binary(), *sys.argv[1:]]
    if os.name == "nt":
        return subprocess.call(command)
    os.execv(command[0], command)


if __name__ == "__main__":
    sys.exit(main())
