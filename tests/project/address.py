"""The address of this repository is `Source` in pyproject.toml. This keeps it the same in all other files.

python tests/project/address.py https://github.com/ACME/amqpscope    # sets it everywhere
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_ADDRESS: Final = re.compile(r"https://[\w.-]+/[\w.-]+/amqpscope(?![\w.-])")
_SUFFIXES: Final = (".md", ".toml", ".yml", ".yaml", ".cff", ".json")
_OTHERS: Final = ("CHANGELOG.md", "tests/", "captures/", "amqpscope/")


def current() -> str:
    """The address as pyproject.toml has it."""
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"])


def files() -> list[Path]:
    """The files that may have the address."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.splitlines()  # fmt: skip
    found = [name for name in listed if name.endswith(_SUFFIXES) and not name.startswith(_OTHERS)]
    return [ROOT / name for name in found if (ROOT / name).is_file()]


def mentioned() -> list[str]:
    """Every address of a repository of this name that a file has."""
    return [address for path in files() for address in _ADDRESS.findall(path.read_text("utf-8"))]


def changed(text: str, old: str, new: str) -> str:
    """A text with the new address; `OWNER/NAME`, as workflows write it, too."""
    text = text.replace(old, new)
    return re.sub(rf"(?<![\w/]){re.escape(_short(old))}(?=@)", _short(new), text)


def _short(address: str) -> str:
    return "/".join(address.rsplit("/", 2)[1:])


def main(new: str) -> int:
    """Write the new address wherever the old one stands."""
    old = current()
    for path in files():
        text = path.read_text("utf-8")
        if changed(text, old, new) != text:
            path.write_text(changed(text, old, new), "utf-8")
            print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/")))
