"""What MkDocs needs to make a site of these documents, which are written to be read in place.

README, CONTRIBUTING and CHANGELOG become pages; the API pages list all public names of the stubs;
links out of ``docs`` to other files of the repository become their names; and pages that ``nav``
does not name are put under "More".
"""

import importlib
import inspect
import posixpath
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
PAGES |= {"CHANGELOG.md": "changelog.md", "examples/README.md": "examples.md"}
PACKAGES = {
    "streamhash": "The package: methods, index, metrics, collections, errors.",
    "streamhash.search": "Codes that are searched.",
    "streamhash.metrics": "Retrieval quality.",
    "streamhash.files": "Reading and writing files.",
    "streamhash.live": "The live collection.",
    "streamhash.service": "The service, and its client.",
    "streamhash.lab": "Experiments.",
    "streamhash.lab.datasets": "Data sets.",
    "streamhash.checks": "What any hasher must keep.",
    "streamhash.parameters": "Declaring parameters.",
    "streamhash.learned": "Stating what a method learns.",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"https://(?:unpkg\.com|api\.github\.com)/[^\"'`]*")
SOURCE_MAP = re.compile(r"/[/*]# sourceMappingURL=\S+(?: \*/)?")
FENCED = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)


def public_names(package: str) -> list[str]:
    """The public names of a package: those of its stub, or of its module."""
    module = importlib.import_module(package)
    names = getattr(module, "__all__", None)
    if names is not None:
        return sorted(names)
    own = vars(module).items()
    return [n for n, v in own if getattr(v, "__module__", "") == package and n[0] != "_"]


def real_path(package: str, name: str) -> str | None:
    """Where a public name is defined; None of what has no docstring of its own to show."""
    value = getattr(importlib.import_module(package), name)
    if not inspect.isclass(value) and not inspect.isroutine(value):
        return None
    return f"{value.__module__}.{value.__qualname__}"


def api_page(package: str) -> str:
    """A page of the reference: every public name of a package."""
    shown, values = [], []
    for name in public_names(package):
        path = real_path(package, name)
        if path is None:
            value = getattr(importlib.import_module(package), name)
            text = repr(value).replace("|", "\\|").replace("\n", " ")
            values.append(f"| `{name}` | `{text if len(text) < 160 else text[:157] + '...'}` |")
        elif not path.startswith("streamhash"):
            values.append(f"| `{name}` | `{path}` |")
        else:
            shown.append(f"::: {path}\n")
    parts = [f"# {package}", PACKAGES[package], *shown]
    if values:
        parts += ["## Values", "| name | value |\n|---|---|\n" + "\n".join(values)]
    return "\n\n".join(parts) + "\n"


def on_config(config: Any) -> Any:
    """Fill in what ``nav`` leaves to be found: methods, packages, and pages that it lacks."""
    methods = sorted(path.stem for path in (ROOT / "docs" / "methods").glob("*.md"))
    found: dict[str, list[Any]] = {
        "methods": [{_title(f"methods/{name}.md"): f"methods/{name}.md"} for name in methods],
        "api": [{package: f"api/{package}.md"} for package in PACKAGES],
    }
    config.nav = [_filled(each, found) for each in config.nav]
    there = {*_leaves(config.nav)}
    pages = sorted((ROOT / "docs").rglob("*.md"))
    names = [path.relative_to(ROOT / "docs").as_posix() for path in pages]
    if more := [{_title(name): name} for name in names if name not in there]:
        config.nav.append({"More": more})
    return config


def _filled(entry: Any, found: dict[str, list[Any]]) -> Any:
    if isinstance(entry, dict):
        ((title, value),) = entry.items()
        if isinstance(value, list):
            return {title: [_filled(each, found) for each in value]}
        return {title: found.get(value, value)}
    return entry


def _leaves(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    for each in entry.values() if isinstance(entry, dict) else entry if entry != str(entry) else ():
        yield from _leaves(each)


def _title(name: str) -> str:
    first = (ROOT / "docs" / name).read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("# ").strip()


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that do not lie in ``docs``."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        more = scripts() if page == "examples.md" else ""
        files.append(File.generated(config, page, content=rewritten(text, source) + more))
    for package in PACKAGES:
        files.append(File.generated(config, f"api/{package}.md", content=api_page(package)))
    return files


def scripts() -> str:
    """The scripts of ``examples``, to be read on their page."""
    paths = sorted((ROOT / "examples").glob("*.py"))
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in paths]
    return "".join(f"\n## {name}\n\n```python\n{text}```\n" for name, text in texts)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that lead out of ``docs`` to where their targets are on the site."""
    if page.file.generated_by is not None:
        return markdown
    return rewritten(markdown, f"docs/{page.file.src_uri}")


def on_post_build(config: Any) -> None:
    """Leave nothing in the site's own scripts that could be asked for elsewhere.

    The theme has addresses for diagrams, old browsers and GitHub's counters, none of which is used
    here, and search in other languages.
    """
    scripts = Path(config.site_dir) / "assets" / "javascripts"
    shutil.rmtree(scripts / "lunr", ignore_errors=True)
    for path in Path(config.site_dir).rglob("*.map"):
        path.unlink()
    for path in [*scripts.rglob("*.js"), *Path(config.site_dir).rglob("*.css")]:
        text = SOURCE_MAP.sub("", path.read_text(encoding="utf-8"))
        path.write_text(ELSEWHERE.sub("", text), encoding="utf-8")


def rewritten(text: str, source: str) -> str:
    """Return a document of the repository, its links as they are on the site.

    >>> rewritten("see [a](docs/live.md#x) and [b](src/streamhash/base.py)", "README.md")
    'see [a](live.md#x) and b (`src/streamhash/base.py`)'
    """
    here = posixpath.dirname(PAGES.get(source, source.removeprefix("docs/")))

    def changed(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        path, hash_sign, anchor = target.partition("#")
        at = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if at in PAGES:
            new = PAGES[at]
        elif at.startswith("docs/") and not at.endswith(".py"):
            new = at.removeprefix("docs/")
        else:
            return f"{words} (`{at}`)" if words.strip("`") not in (at, Path(at).name) else f"`{at}`"
        new = posixpath.relpath(new, here or ".")
        return f"{picture}[{words}]({new}{hash_sign}{anchor})"

    parts = FENCED.split(text)
    return "".join(part if i % 2 else LINK.sub(changed, part) for i, part in enumerate(parts))
