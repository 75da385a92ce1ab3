"""Outputs that README.md and docs/ show: run again, and written into the pages.

    python docs/generate/examples.py            # writes what the commands print now
    python docs/generate/examples.py --check    # writes nothing; exit status 1 if a page shows something else

A block is an example if its first line is `$ amqpscope ...`. A comment before its fence chooses the lines
that are shown: `<!-- shown: 1-9, "   43"+2 -->` shows the lines 1 to 9, and two lines from the first one
that begins with these characters. Without a comment, all lines are shown, cut at 100 characters.
"""

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

from amqpscope.cli.main import run

ROOT: Final = Path(__file__).parent.parent.parent
WIDTH: Final = 100

_BLOCK: Final = re.compile(
    r"^(?P<indent> *)(?:<!-- shown: (?P<shown>.*?) -->\n *)?"
    r"```(?P<language>\w*)\n *\$ (?P<command>amqpscope .*)\n(?P<output>(?:.*\n)*?) *```$",
    re.MULTILINE,
)
_PART: Final = re.compile(r'(\d+)(?:-(\d+))?|"([^"]*)" ?\+ ?(\d+)')

_printed: dict[str, list[str]] = {}


def pages() -> list[Path]:
    """The pages that people write."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def printed(command: str) -> list[str]:
    """The lines that a command prints on standard output. It runs once."""
    if command not in _printed:
        output = io.StringIO()
        before = os.getcwd()
        os.chdir(ROOT)
        try:
            with redirect_stdout(output):
                status = run(command.split()[1:])
        finally:
            os.chdir(before)
        if status not in (0, 1):
            raise SystemExit(f"{command}: exit status {status}")
        _printed[command] = output.getvalue().splitlines()
    return _printed[command]


def chosen(lines: list[str], shown: str, command: str) -> Iterator[str]:
    """Those lines of an output that a comment chooses."""
    for first, last, start, count in _PART.findall(shown):
        if first:
            yield from lines[int(first) - 1 : int(last or first)]
            continue
        place = next((number for number, line in enumerate(lines) if line.startswith(start)), -1)
        if place < 0:
            raise SystemExit(f"{command}: no line begins with {start!r}")
        yield from lines[place : place + int(count)]


def renewed(text: str) -> str:
    """A page with the outputs that its commands print now."""
    return _BLOCK.sub(_block, text)


def _block(found: re.Match[str]) -> str:
    indent, shown, command = found["indent"], found["shown"], found["command"]
    lines = printed(command)
    if shown:
        lines = list(chosen(lines, shown, command))
    cut = [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in lines]
    while cut and not cut[-1]:
        cut.pop()
    parts = [f"<!-- shown: {shown} -->"] if shown else []
    parts += [f"```{found['language']}", f"$ {command}", *cut, "```"]
    return "\n".join(indent + part if part else "" for part in parts)


def main() -> int:
    """Write every page whose outputs differ, or name it."""
    stale = 0
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = renewed(text)
        if new != text:
            stale += 1
            if "--check" in sys.argv:
                print(f"{page.relative_to(ROOT)}: shows an output of before: run docs/generate/examples.py")
            else:
                page.write_text(new, encoding="utf-8")
                print(f"wrote {page.relative_to(ROOT)}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
