"""Print the branch coverage of each package, from what `coverage json` wrote.

python tests/project/coverage_table.py .coverage.json
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

COUNTS = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def package(path: str) -> str:
    """The package of a file, by its dotted name from `amqpscope` or `dissectors` on."""
    parts = Path(path).parts[:-1]
    first = max(at for at, part in enumerate(parts) if part in ("amqpscope", "dissectors"))
    return ".".join(parts[first:])


def table(report: dict[str, Any]) -> list[str]:
    """A heading, a line for each package, and a total.

    `cover` is the share of statements and branches that were run, as coverage.py counts it.
    """
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * len(COUNTS))
    for path, file in report["files"].items():
        for name in (package(path), "total"):
            sums[name] = [old + file["summary"][key] for old, key in zip(sums[name], COUNTS, strict=True)]
    total = sums.pop("total", [0] * len(COUNTS))
    lines = [f"{'package':<32} {'statements':>10} {'branches':>9} {'cover':>7}"]
    for name, (statements, run, branches, taken) in [*sorted(sums.items()), ("total", total)]:
        cover = 100 * (run + taken) / ((statements + branches) or 1)
        lines.append(f"{name:<32} {statements:>10} {branches:>9} {cover:>6.1f}%")
    return lines


if __name__ == "__main__":
    print("\n".join(table(json.loads(Path(sys.argv[1]).read_text()))))
