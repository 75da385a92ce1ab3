"""Generate the typed tables of the dissectors from the specifications' XML.

    python -m dissectors.spec.generate            write the modules
    python -m dissectors.spec.generate --check    exit 1 if any differs from what would be written

AMQP 1.0 is `composites`, its draft of April 2011 `draft2011`. AMQP 0-9-1 has an XML of another kind, see
`methods`.
"""

import argparse
import sys
from pathlib import Path

from dissectors.spec import composites, draft2011, methods

HERE = Path(__file__).parent
TARGET = HERE.parent


def sources() -> dict[Path, str]:
    """Every generated file and its text."""
    result = composites.sources(HERE / "amqp10", TARGET / "amqp10")
    result |= draft2011.sources(HERE / "amqp10_draft2011", TARGET / "amqp10_draft2011")
    return result | methods.sources(HERE / "amqp091", TARGET / "amqp091")


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate the typed tables from the specification's XML.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file differs")
    stale = []
    check = parser.parse_args().check
    for path, text in sources().items():
        if check:
            if not path.exists() or path.read_text() != text:
                stale.append(path.name)
        else:
            path.write_text(text)
    if stale:
        print(f"not as generated: {', '.join(stale)}", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
