"""The examples in the documentation of the installed Optuna, with another sampler.

Nothing else of them changes. An example whose library is missing is skipped.
"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest

BLOCK = re.compile(r"^( *)\.\. testcode::\n((?:\1 +.*\n|\s*\n)+)", re.MULTILINE)

# Other files have more. These are self-contained and quick.
FILES = ("study/study.py", "trial/_trial.py", "trial/_frozen.py", "pruners/_median.py")


def examples() -> Iterator[tuple[str, str]]:
    """Yield the examples that make a study with the default sampler."""
    root = Path(optuna.__file__).parent
    for path in (root / name for name in FILES):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                continue
            name = getattr(node, "name", path.stem)
            for i, (_, block) in enumerate(BLOCK.findall((ast.get_docstring(node) or "") + "\n")):
                if "create_study(" in block and "sampler" not in block:
                    yield f"{path.stem}.{name}.{i}", textwrap.dedent(block)


EXAMPLES = dict(examples())


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 20


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    script = EXAMPLES[name].replace("create_study(", "create_study(sampler=BKBSampler(), ")
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        exec(compile("from bkb.optuna import BKBSampler\n" + script, name, "exec"), {})
    except ModuleNotFoundError as e:
        pytest.skip(f"{e.name} is not installed")
    finally:
        os.chdir(here)
