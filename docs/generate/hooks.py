"""What mkdocs calls while it builds the site: pages that the repository has elsewhere, or that code gives."""

import re
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import reference
from drawings import Drawings

from amqpscope.report.rule_pages import MARK

ROOT: Final = Path(__file__).parent.parent.parent
RULES: Final = ROOT / "captures" / "rules"

_ARROW: Final = re.compile(r"^    (\S+) --> (\S+?): (.*)$", re.MULTILINE)
_STATE: Final = re.compile(r'^    state "(.*)" as (\S+)$', re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, the pages of the rules, and their captures."""
    pages = {
        "reference/commands.md": reference.commands(),
        "reference/configuration.md": reference.configuration(),
        "reference/diagnoses.md": reference.diagnoses(),
        "reference/profiles.md": reference.profiles(),
        "reference/link-types.md": reference.link_types(),
        "reference/tables.md": reference.tables(),
        "reference/api.md": reference.api(),
        "reference/schemas.md": reference.schemas(),
        "changelog.md": (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
    }
    pages |= {f"development/{name}.md": text for name, text in reference.development().items()}
    for path in sorted((ROOT / "amqpscope" / "schemas").glob("*.json")):
        files.append(File.generated(config, f"reference/schemas/{path.name}", abs_src_path=str(path)))
    drawings = Drawings(RULES)
    for path in sorted(RULES.rglob("*")):
        name = f"rules/{path.relative_to(RULES).as_posix()}"
        if path.suffix == ".md":
            text = _rule_page(path.read_text(encoding="utf-8"))
            pages[name] = drawings.replaced(text, path.parent.relative_to(RULES).as_posix())
        elif path.suffix in (".pcap", ".tsv"):
            files.append(File.generated(config, name, abs_src_path=str(path)))
    pages |= {f"rules/{name}": text for name, text in drawings.files.items()}
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def _rule_page(text: str) -> str:
    """A page of a rule. What the drawings say is not searched: there are too many frames in them."""
    text = text.removeprefix(MARK)  # so that the page begins with its title
    return re.sub(
        r"^(## (?:Broken|Not broken|Cut|Legal|With the trouble|Without the trouble).*)$",
        r"\1 { data-search-exclude }",
        text,
        flags=re.MULTILINE,
    )


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """State diagrams as tables: to draw them takes a script that is not part of the site."""
    del config, files
    folder, _, rest = page.file.src_uri.partition("/")
    if folder in ("getting-started", "guides") or page.file.src_uri == "reference/exit-status.md":
        page.meta["search"] = {"boost": 4}
    elif folder == "rules" and rest.startswith("subjects/"):
        page.meta["search"] = {"boost": 3}
    elif (folder == "rules" and rest.count("/") < 2) or page.file.src_uri in (
        "changelog.md",
        "development/hostile.md",
    ):
        page.meta["search"] = {"exclude": True}  # lists: each of what they list has a page
    return re.sub(r"^```mermaid\n(.*?)^```$", _as_table, markdown, flags=re.DOTALL | re.MULTILINE)


def _as_table(found: re.Match[str]) -> str:
    names = {short: name for name, short in _STATE.findall(found[1])}
    rows = [
        (names.get(before, before), inputs, names.get(after, after))
        for before, after, inputs in _ARROW.findall(found[1])
    ]
    return reference.table(("state", "input", "next state"), rows)
