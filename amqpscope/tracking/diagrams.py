"""The state diagrams, drawn from the tables: `python -m amqpscope.tracking.diagrams [--check] [FILE]`.

Written as Mermaid in Markdown, which forges and documentation tools render.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from amqpscope.tracking.amqp091 import states as amqp091
from amqpscope.tracking.amqp10 import states as amqp10
from amqpscope.tracking.states import Machine

__all__ = ["main", "page"]

FILE = Path("docs/state-diagrams.md")
"""Where the diagrams are kept, from the root of the repository."""

_INTRODUCTION = """# State diagrams

`amqpscope` follows each end of a connection by these tables. An input without an arrow is illegal.
`(error)` means that the frame carries an error, `FRAME` any frame that is not named.

`python -m amqpscope.tracking.diagrams` draws this page from `amqpscope/tracking/amqp10/states.py` and
`amqpscope/tracking/amqp091/states.py`. Do not edit it by hand.
"""

_ENDPOINT = {"S": "send", "R": "receive"}
_PEERS = {"C": "client", "S": "server"}

_DIAGRAMS: list[tuple[str, dict[str, str], Machine]] = [
    ("AMQP 1.0: connection", _ENDPOINT, amqp10.CONNECTION),
    ("AMQP 1.0: session", _ENDPOINT, amqp10.SESSION),
    ("AMQP 1.0: link", _ENDPOINT, amqp10.LINK),
    ("AMQP 1.0: a handle of the endpoint itself", _ENDPOINT, amqp10.HANDLE),
    ("AMQP 1.0: SASL exchange", _PEERS, amqp10.SASL),
    ("AMQP 0-9-1: setting up a connection", _PEERS, amqp091.CONNECTION),
    ("AMQP 0-9-1: channel, and the closing of a connection", _PEERS, amqp091.CHANNEL),
]


def page() -> str:
    """All diagrams, as one page of Markdown."""
    parts = [_INTRODUCTION]
    for title, words, machine in _DIAGRAMS:
        parts.append(f"## {title}\n\n```mermaid\n" + "\n".join(_lines(machine, words)) + "\n```\n")
    return "\n".join(parts)


def _lines(machine: Machine, words: dict[str, str]) -> Iterator[str]:
    """One diagram; inputs that lead from one state to the same other one share an arrow."""
    yield "stateDiagram-v2"
    cells = machine.cells
    for name in dict.fromkeys(name for (state, _), after in cells.items() for name in (state, after)):
        if _id(name) != name:
            yield f'    state "{name}" as {_id(name)}'
    yield f"    [*] --> {_id(machine.start)}"
    arrows: dict[tuple[str, str], list[str]] = {}
    for (state, action), following in cells.items():
        arrows.setdefault((state, following), []).append(f"{words[action[0]]} {action[2:]}")
    for (state, following), actions in arrows.items():
        yield f"    {_id(state)} --> {_id(following)}: {', '.join(actions)}"


def _id(name: str) -> str:
    """The name of a state as Mermaid allows it: one word, and none that ends a block."""
    return "END_" if name == "END" else name.replace(" ", "_")


def main(arguments: list[str]) -> int:
    """Write the page, or compare it. Returns the exit status: 1 if what is written differs."""
    parser = argparse.ArgumentParser(prog="amqpscope.tracking.diagrams")
    parser.add_argument("file", nargs="?", type=Path, default=FILE)
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit with status 1 if the file differs from the tables",
    )
    options = parser.parse_args(arguments)
    new = page()
    if not options.check:
        options.file.parent.mkdir(parents=True, exist_ok=True)
        options.file.write_text(new, encoding="utf-8")
        return 0
    if options.file.exists() and options.file.read_text(encoding="utf-8") == new:
        return 0
    print(
        f"{options.file} is not what the tables say: run python -m amqpscope.tracking.diagrams",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
