"""The folder in which the pages of the rules lie, with the captures that they name."""

from pathlib import Path

from amqpscope.conformance.pairs import CapturePairs
from amqpscope.errors import AmqpscopeError
from amqpscope.report.rule_page import PAGE
from amqpscope.report.rule_pages import MARK, captures_of, pages

__all__ = ["RulePageWriter"]


class RulePageWriter:
    """A folder of pages. pairs: where the captures come from.

    Only what begins as a page does is ever overwritten or removed. Raises AmqpscopeError for anything else
    that stands where a page would, and OSError for what cannot be read or written.
    """

    def __init__(self, folder: Path, pairs: CapturePairs) -> None:
        self._folder = folder
        self._pairs = pairs
        self._pages = dict(pages(pairs))

    def differences(self) -> list[str]:
        """What is not as it would be written, a line each."""
        reported = []
        for path, text in self._pages.items():
            there = self._page(path)
            if there is None:
                reported.append(f"{path}: is missing")
            elif there != text:
                reported.append(f"{path}: differs from what the program writes")
        reported += [f"{path}: is a page, but no such rule exists" for path in self._left()]
        reported += [
            f"{path}: is missing"
            for path, _, _ in captures_of(self._pairs)
            if not self._folder.joinpath(path).exists()
        ]
        return reported

    def write(self) -> str:
        """Make the pages what they are to be; say in a few words what was done."""
        # All is looked at before anything is touched.
        other = {path: text for path, text in self._pages.items() if self._page(path) != text}
        left = self._left()
        for path, text in other.items():
            file = self._folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode())
        for path in left:
            file = self._folder / path
            file.unlink()
            if not any(file.parent.iterdir()):
                file.parent.rmdir()
        captures = 0
        for path, folder, which in captures_of(self._pairs):
            file = self._folder / path
            if not file.exists():
                file.write_bytes(self._pairs.octets(folder, which))
                captures += 1
        reported = f"{len(self._pages)} pages, {len(other)} of them new or changed"
        reported += f", {len(left)} removed" if left else ""
        return reported + (f"; {captures} captures" if captures else "")

    def _page(self, path: str) -> str | None:
        """The page that is there; None if there is none."""
        file = self._folder / path
        try:
            octets = file.read_bytes()
        except FileNotFoundError:
            return None
        if not octets.startswith(MARK.encode()):
            raise AmqpscopeError(f"{file}: exists already and is not a page of `amqpscope rules pages`")
        return octets.decode(errors="replace")

    def _left(self) -> list[str]:
        """Pages of rules that are no more."""
        found = []
        for file in sorted([*self._folder.glob(f"*/{PAGE}"), *self._folder.glob(f"*/*/{PAGE}")]):
            path = file.relative_to(self._folder).as_posix()
            if path not in self._pages and file.read_bytes().startswith(MARK.encode()):
                found.append(path)
        return found
