"""The ladders of rule pages as pictures, for the site. The pages in the repository keep the text."""

import posixpath
import re
from pathlib import Path
from typing import Final

from amqpscope.conformance.coverage import judged
from amqpscope.draw.svg import ladder_svg
from amqpscope.report.ladder import ladder_lines
from amqpscope.report.ladder_model import Ladder, ladders
from amqpscope.rules.editions import CSD01, CSPRD02, FINAL

__all__ = ["Drawings"]

_DRAWN: Final = re.compile(
    r"^\[[^\]]*\]\(([^)]*\.pcap)\):\n\n(```text\n(.*?)\n```)$", re.DOTALL | re.MULTILINE
)
"""A link to a capture, and its ladder below."""


class Drawings:
    """Replaces the ladders of pages. files: the pictures so far, by their names in the folder of the rules."""

    def __init__(self, rules: Path) -> None:
        self._rules = rules
        self.files: dict[str, str] = {}

    def replaced(self, text: str, folder: str) -> str:
        """A page with a picture before each ladder, which a click shows. folder: of the page."""
        return _DRAWN.sub(lambda found: self._one(found, folder), text)

    def _one(self, found: re.Match[str], folder: str) -> str:
        link, block, text = found.groups()
        capture = posixpath.normpath(posixpath.join(folder, link))
        path = self._rules / capture
        drawn = _ladders_that_say(path, text) if path.is_file() else []
        if not drawn:
            return found[0]
        images = []
        for number, one in enumerate(drawn):
            more = f"-{number + 1}" if number else ""
            name = f"{capture.removesuffix('.pcap')}{more}.svg"
            self.files[name] = ladder_svg(one, path.name)
            source = f"{link.removesuffix('.pcap')}{more}.svg"
            images.append(f"![The frames of {path.name} as arrows, with what was found in them]({source})")
        head = found[0].partition("\n")[0]
        details = f'<details markdown="1"><summary>The same as text</summary>\n\n{block}\n\n</details>'
        return "\n\n".join([head, *images, details])


def _ladders_that_say(path: Path, text: str) -> list[Ladder]:
    """The ladders of a capture by the edition whose text is this; none if no edition gives it."""
    octets = path.read_bytes()
    for edition in (FINAL, CSD01, CSPRD02):
        drawn = ladders(*judged(octets, path.name, edition))
        written = "\n\n".join(
            "\n".join("".join(part for _, part in line).rstrip() for line in ladder_lines(one))
            for one in drawn
        )
        if written == text:
            return drawn
    return []
