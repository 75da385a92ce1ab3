"""Words that this project does not use, and the field's word for each: `make check` finds them.

    python tests/project/words.py

A word is searched in code, tests, documents and generated pages; in the code also as a part of a name.
EXEMPT has what quotes others: the history, inputs of fuzzing, a header that was recorded.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent

WORDS: Final = {
    r"satchels?": "message samples",
    r"chronicles?": "topology log",
    r"deeds?": "operation",
    r"offences?": "violation",
    r"portraits?|portray\w*": "snapshot",
    r"rereadable": "replayable",
    r"pains?": "health issue",
    r"tellings?": "renderer",
    r"shel(?:f|ves)": "pages",
    r"told|untold": "reported, shown, given",
    r"held\W+against": "compared with",
    r"\}rd time": "a sentence that fits every number",
}
"""Patterns of whole words, in any case, and what stands instead."""

SUFFIXES: Final = (".py", ".md", ".toml", ".tsv", ".json", ".1", ".yml")

FIELDS: Final = ("all_told_apart", "connections_not_told")
"""Names of fields in our JSON, which programs rely on."""

EXEMPT: Final = (
    "CHANGELOG.md",
    "captures/record/librabbitmq_client.py",
    "tests/fuzz/corpus/",
    "tests/project/test_words.py",
    "tests/project/words.py",
)
"""Paths that are not searched, by their beginnings."""


def words_in(text: str) -> Iterator[tuple[int, str, str]]:
    """Each banned word of a text: its line, the word as it stands there, and what stands instead."""
    for field in FIELDS:
        text = text.replace(field, "")
    for pattern, instead in WORDS.items():
        # In names, too: `_told` and `told_by` are the word, `untolerated` is not.
        for found in re.finditer(rf"(?<![A-Za-z])(?:{pattern})(?![A-Za-z])", text, re.IGNORECASE):
            yield text.count("\n", 0, found.start()) + 1, found[0], instead


def searched() -> list[str]:
    """The files of the repository that are searched."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    return [name for name in listed if name.endswith(SUFFIXES) and not name.startswith(EXEMPT)]


def main() -> int:
    """Print every banned word; 1 if there is any."""
    found = 0
    for name in searched():
        path = ROOT / name
        if not path.is_file():
            continue  # deleted, and not committed yet
        for line, word, instead in words_in(path.read_text(errors="replace")):
            print(f"{name}:{line}: {' '.join(word.split())}: say {instead}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
