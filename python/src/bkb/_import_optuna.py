"""``python -m bkb import-optuna``: read a study with Optuna and import it."""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._binary import find_binary
from ._errors import Error

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

DESCRIPTION = """\
Read a study from a storage of Optuna and import it with tuner import. The storage is an
SQLite file, a journal file, or a URL such as mysql://user@host/db. Options of tuner import
follow after --, such as -- --db tuner.db --dry-run.
"""


def main(args: Sequence[str]) -> int:
    """Import a study of Optuna and return the exit status of ``tuner import``."""
    own, options = list(args), []
    if "--" in own:
        cut = own.index("--")
        own, options = own[:cut], own[cut + 1 :]
    parser = argparse.ArgumentParser(
        prog="python -m bkb import-optuna", description=DESCRIPTION, allow_abbrev=False
    )
    parser.add_argument("storage", metavar="STORAGE", help="file or URL")
    parser.add_argument("study", metavar="STUDY", nargs="?", help="name in it, default the only")
    parser.add_argument("--as", dest="name", metavar="NAME", help="name of the study here")
    chosen = parser.parse_args(own)
    try:
        text = export(chosen.storage, chosen.study)
    except Error as e:
        parser.exit(4, f"{parser.prog}: {e}\n")
    name = chosen.name or json.loads(text)["study_name"]
    command = [find_binary(), "import", name, "-", "--format", "optuna", *options]
    return subprocess.run(command, input=text.encode()).returncode


def export(storage: str, name: str | None) -> str:
    """Return a study in the JSON that ``tuner import`` reads."""
    try:
        import optuna
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as e:
        raise Error(
            "Optuna must be installed to read its files, run pip install bkb-tuner[optuna]"
        ) from e
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        opened = _open(storage)
        names = optuna.get_all_study_names(opened)
        if name is None and len(names) == 1:
            name = names[0]
        if name not in names:
            known = ", ".join(map(repr, names)) or "no study"
            what = "several studies, name one" if name is None and names else f"no study {name!r}"
            raise Error(f"{storage} has {what}, it has {known}")
        study = optuna.load_study(study_name=name, storage=opened)
    except ImportError as e:
        cause = e.__cause__ or e.__context__ or e
        raise Error(
            f"the driver for {storage.partition('://')[0]}:// is not installed ({cause}), "
            "install it with pip, or name another one such as mysql+pymysql://"
        ) from e
    except (SQLAlchemyError, RuntimeError, ValueError, OSError) as e:
        raise Error(f"Optuna cannot read {storage}: {e}") from e
    return json.dumps(_content(study))


def _open(storage: str) -> str | BaseStorage:
    """Open a file, or return the URL of a database."""
    path = Path(storage)
    if not path.is_file() and "://" in storage:
        from sqlalchemy.engine import make_url

        url = make_url(storage)
        if url.get_backend_name() != "sqlite":
            return storage
        path = Path(url.database or ":memory:")
    if not path.is_file():
        raise Error(
            f"{storage!r} must be a file, or the URL of a storage such as mysql://user@host/db"
        )
    with path.open("rb") as f:
        head = f.read(4096)
    if head.startswith(b"SQLite format 3\0"):
        # Optuna would make its tables in a database of another program.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as c:
            tables = {row[0] for row in c.execute("select name from sqlite_master")}
        if {"studies", "trials", "version_info"} <= tables:
            return f"sqlite:///{path}"
    elif head.startswith(b'{"op_code":'):
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        return JournalStorage(JournalFileBackend(str(path)))
    raise Error(
        f"{storage} must be an SQLite database or a journal of Optuna, "
        "for trials in CSV or JSON use tuner import"
    )


def _content(study: optuna.Study) -> dict[str, Any]:
    from optuna.distributions import distribution_to_json

    return {
        "import_id": f"optuna {study._study_id} {study.study_name!r}",
        "study_name": study.study_name,
        "directions": [d.name.lower() for d in study.directions],
        "metric_names": study.metric_names or [],
        "trials": [
            {
                # Other storages may have the same ids, and the times of an open trial change.
                "import_id": f"{t.datetime_start} {t.datetime_complete}"
                if t.state.is_finished()
                else "",
                "number": t.number,
                "state": t.state.name,
                "params": t.params,
                "values": t.values,
                "user_attrs": t.user_attrs,
                "intermediate_values": t.intermediate_values,
                "distributions": {
                    n: json.loads(distribution_to_json(d)) for n, d in t.distributions.items()
                },
            }
            for t in study.get_trials(deepcopy=False)
        ],
    }
