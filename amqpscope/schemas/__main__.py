"""Writes the schemas, or looks whether they are written."""

import json
import sys
from pathlib import Path

from amqpscope.schemas.declared import SCHEMAS, document

HERE = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """Write the files, or only look at them. Gives the exit status."""
    texts = {f"{name}-1.json": json.dumps(document(name), indent=1) + "\n" for name in SCHEMAS}
    there = {file.name: file.read_text(encoding="utf-8") for file in HERE.glob("*.json")}
    if arguments == ["--check"]:
        if there != texts:
            print("amqpscope/schemas: run python -m amqpscope.schemas", file=sys.stderr)
        return int(there != texts)
    for name in there.keys() - texts.keys():
        (HERE / name).unlink()
    for name, text in texts.items():
        (HERE / name).write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
