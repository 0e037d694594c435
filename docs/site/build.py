"""Builds the site of the documentation and checks its links.

Usage: build.py OUT [--external]

The pages keep their places in the repository, so that links between them stay as they are.
Links to other files lead to the repository's page. A link to a file or heading that does not
exist is an error. --external also asks for each address outside of the site.
"""

import argparse
import concurrent.futures
import html.parser
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/bkbtuner/bkb"
LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
FENCE = re.compile(r"^( *```)(\w+) (.+)$", re.MULTILINE)


def tracked():
    new = ["--cached", "--others", "--exclude-standard"]
    names = subprocess.run(["git", "ls-files", *new], cwd=ROOT, check=True, capture_output=True, text=True)
    return set(names.stdout.split())


def go_page():
    """Lists the packages that others can import, with their pages on pkg.go.dev."""
    form = '{{if ne .Name "main"}}{{.ImportPath}}\t{{.Doc}}{{end}}'
    text = subprocess.run(["go", "list", "-f", form, "./..."], cwd=ROOT, check=True, capture_output=True, text=True)
    rows = [line.split("\t") for line in text.stdout.splitlines() if line]
    lines = ["# Go API", "", "| package | what it does |", "|---|---|"]
    lines += [f"| [{p}](https://pkg.go.dev/{p}) | {doc} |" for p, doc in rows if "/internal/" not in p and doc]
    return "\n".join(lines) + "\n"


def python_page():
    """Documents the package and each of its public modules from their docstrings."""
    modules = sorted(
        p.stem
        for p in (ROOT / "python/src/bkb").iterdir()
        if not p.name.startswith(("_", ".")) and (p.suffix == ".py" or p.is_dir())
    )
    return "# Python API\n\n" + "".join(f"::: {name}\n\n" for name in ["bkb", *(f"bkb.{m}" for m in modules)])


def lay_out(pages):
    """Copies the pages and pictures, and returns what is wrong with their links."""
    files = tracked()
    shown = {f for f in files if f.endswith(".md") and "testdata" not in f and f[0] != "."}
    shown |= {f for f in files if f.endswith((".webp", ".png", ".svg")) and f.startswith(("docs/", "bench/docs/"))}
    wrong = []
    for name in sorted(shown):
        to = pages / ("index.md" if name == "README.md" else name)
        to.parent.mkdir(parents=True, exist_ok=True)
        if not name.endswith(".md"):
            shutil.copy(ROOT / name, to)
            continue

        def link(m, name=name):
            before, target, after = m.groups()
            if ":" in target:
                return m[0]
            path = os.path.normpath(os.path.join(os.path.dirname(name), target))
            if path == "README.md":
                target = os.path.relpath("index.md", os.path.dirname(name) or ".")
            elif path not in shown:
                kind = "blob" if path in files else "tree"
                if kind == "tree" and not (ROOT / path).is_dir():
                    wrong.append(f"{name}: there is no {path}")
                target = f"{REPOSITORY}/{kind}/main/{path}"
            return before + target + after

        text = (ROOT / name).read_text()
        to.write_text(FENCE.sub(r'\1\2 title="\3"', LINK.sub(link, text)))
    (pages / "api").mkdir()
    (pages / "api/go.md").write_text(go_page())
    (pages / "api/python.md").write_text(python_page())
    return wrong


class Page(html.parser.HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.anchors = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for key, value in attrs:
            if key in ("href", "src") and value:
                self.links.add(value)
            elif key in ("id", "name") and value:
                self.anchors.add(value)


def check(site):
    """Returns the wrong links within the site, and the addresses outside of it."""
    pages = {p: Page(p.read_text()) for p in site.rglob("*.html")}
    wrong, outside = [], set()
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                outside.add(urllib.parse.urldefrag(link)[0])
                continue
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            to = to / "index.html" if to.is_dir() else to
            anchor = urllib.parse.unquote(parts.fragment)
            if path.name == "404.html":
                continue  # its links begin at the root of a server
            if not to.exists() or (anchor and to in pages and anchor not in pages[to].anchors):
                wrong.append(f"{path.relative_to(site)}: {link}")
    return sorted(wrong), sorted(a for a in outside if a.startswith("http"))


def unreachable(address):
    request = urllib.request.Request(address, headers={"User-Agent": "Mozilla/5.0"})
    try:
        urllib.request.urlopen(request, timeout=20).close()
    except OSError as e:
        return f"{address}: {e}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--external", action="store_true", help="ask for each address outside of the site")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        wrong = lay_out(work / "pages")
        shutil.copy(ROOT / "docs/site/mkdocs.yml", work)
        (work / "python").symlink_to(ROOT / "python/src")
        mkdocs = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--clean", "--site-dir", str(out)]
        quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        failed = subprocess.run(mkdocs, cwd=work, env=quiet, check=False).returncode
    if not failed:
        inside, outside = check(out)
        wrong += inside
        if arguments.external:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                wrong += filter(None, pool.map(unreachable, outside))
        print(f"{len(list(out.rglob('*.html')))} pages, {len(outside)} addresses outside of them")
    for w in wrong:
        print(w, file=sys.stderr)
    return 1 if failed or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
