"""Fuzzing by coverage: `python tests/fuzz/run.py [ENTRY...] [--seconds N]`, or `make fuzz`.

With `--by-chance [SEED]` (`make fuzz-compiled`) inputs are the same ones changed by chance, without coverage,
and so without atheris and with the product compiled, too: the compiled code fails where the files as they are
do not.

Each entry of `entries.py` runs for so long in a process of its own, with the product's modules instrumented
by atheris (so they must not be compiled). It starts from `seeds.py`, and from the corpus and the crashes in
this folder. What it finds goes back there: an input that an entry fails on to `crashes/ENTRY/`, where the
tests run it from then on; and of the inputs that reached something new as many as are needed for that, to
`corpus/ENTRY/`.

The exit status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
sys.path[:1] = [str(HERE.parent), str(HERE.parents[1])]  # not the folder of this file, whose `types` is not

from fuzz.bounds import MOST_OCTETS, Watch  # noqa: E402

MOST_CORPUS = 64 * 1024
"""Octets of the corpus of an entry."""

HANGS_AFTER = 60
"""Seconds after which an input is given up that does not come back at all."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("entries", metavar="ENTRY", nargs="*", help="all of them, if none is named")
    parser.add_argument("--seconds", type=int, default=600, help="for each entry")
    parser.add_argument("--by-chance", metavar="SEED", nargs="?", const="0", help="without coverage")
    parser.add_argument("--run", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run is not None:
        _run(arguments.entries[0], arguments.run)
        return 0
    if arguments.by_chance is not None:
        # What is installed, not the files beside this one: that may be compiled.
        sys.path.remove(str(HERE.parents[1]))
    from fuzz.entries import ENTRIES

    from amqpscope.cli.main import version_line

    print(version_line(), flush=True)
    failed = False
    for entry in arguments.entries or ENTRIES:
        if arguments.by_chance is None:
            failed |= not _fuzz(entry, arguments.seconds)
        else:
            failed |= not by_chance(entry, arguments.seconds, arguments.by_chance)
    return int(failed)


def _run(entry: str, options: list[str]) -> None:
    """In a process of its own: hand over to libFuzzer, which does not come back."""
    import atheris

    with atheris.instrument_imports(include=["amqpscope", "dissectors"]):
        from fuzz.entries import ENTRIES

    atheris.Setup(options, Watch(ENTRIES[entry]))
    atheris.Fuzz()


def _fuzz(entry: str, seconds: int) -> bool:
    """Fuzz one entry and keep what is worth it. Whether nothing failed."""
    from fuzz.seeds import seeds

    corpus = HERE / "corpus" / entry
    crashes = HERE / "crashes" / entry
    for folder in (corpus, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        begin = Path(place, "begin")
        found = Path(place, "found")
        begin.mkdir()
        found.mkdir()
        for octets in seeds(entry):
            Path(begin, name_of(octets)).write_bytes(octets)
        for folder in (corpus, crashes):
            for path in folder.iterdir():
                shutil.copy(path, begin)
        said = _child(
            entry,
            f"-max_total_time={seconds}",
            f"-max_len={MOST_OCTETS}",
            f"-timeout={HANGS_AFTER}",
            "-rss_limit_mb=1024",
            "-report_slow_units=1000",
            "-print_final_stats=1",
            f"-artifact_prefix={crashes}/",
            str(found),
            str(begin),
        )
        sound = said.returncode == 0
        _report(entry, said.stderr)
        if not sound:
            print(said.stderr[-3000:])
        known = {path.name for path in begin.iterdir()}
        _child(entry, "-merge=1", "-use_counters=0", f"-max_len={MOST_OCTETS}", str(begin), str(found))
        _keep(corpus, [path for path in begin.iterdir() if path.name not in known])
    return sound


def by_chance(entry: str, seconds: float, seed: str) -> bool:
    """Run an entry for so long on changed inputs. Keeps the first that fails; whether nothing did."""
    from fuzz.entries import ENTRIES
    from fuzz.seeds import seeds

    known = [*seeds(entry), *(path.read_bytes() for path in sorted((HERE / "corpus" / entry).glob("*")))]
    chance = Random(f"{entry} {seed}")
    watch = Watch(ENTRIES[entry])
    end = time.monotonic() + seconds
    tried = 0
    while time.monotonic() < end:
        octets = changed(chance.choice(known), chance.choice(known), chance)
        tried += 1
        try:
            watch(octets)
        except Exception:
            crashes = HERE / "crashes" / entry
            crashes.mkdir(parents=True, exist_ok=True)
            (crashes / name_of(octets)).write_bytes(octets)
            traceback.print_exc()
            print(f"{entry}: fails on {crashes / name_of(octets)}, the {tried}th input of seed {seed}")
            return False
    print(f"{entry}: {tried} inputs, the slowest in {watch.slowest:.2f} s", flush=True)
    return True


def changed(octets: bytes, other: bytes, chance: Random) -> bytes:
    """An input with some octets changed: to others, to a number at the edge of its range, to those of another
    input; or taken out, or put in."""
    new = bytearray(octets)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(new) + 1)
        how = chance.randrange(5)
        if how == 0:
            new[at : at + 1] = bytes((chance.randrange(256),))
        elif how == 1:
            width = chance.choice((1, 2, 4, 8))
            number = chance.choice((0, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1))
            new[at : at + width] = (number & (1 << 8 * width) - 1).to_bytes(width, "big")
        elif how == 2:
            begin = chance.randrange(len(other) + 1)
            new[at:at] = other[begin : begin + chance.randrange(64)]
        elif how == 3:
            del new[at : at + chance.randrange(1, 9)]
        else:
            new[at:at] = chance.randbytes(chance.randrange(1, 9))
    return bytes(new[:MOST_OCTETS])


def _child(entry: str, *options: str) -> subprocess.CompletedProcess[str]:
    """libFuzzer with an entry. It calls itself at times, so there has to be one file that does it."""
    with tempfile.TemporaryDirectory() as place:
        itself = Path(place, "fuzz")
        run = shlex.join([sys.executable, __file__, entry, "--run", str(itself)])
        itself.write_text(f'#!/bin/sh\nexec {run} "$@"\n')
        itself.chmod(0o700)
        return subprocess.run(
            [str(itself), *options], stderr=subprocess.PIPE, text=True, errors="replace", check=False
        )


def _report(entry: str, said: str) -> None:
    """One line of what a run did."""
    numbers = dict(re.findall(r"stat::(\w+):\s+(\d+)", said))
    reached = re.findall(r"cov: (\d+) ft: (\d+) corp: (\S+)", said)
    first, last = (reached[0], reached[-1]) if reached else (("?",) * 3, ("?",) * 3)
    print(
        f"{entry}: {numbers.get('number_of_executed_units', '?')} inputs, "
        f"branches reached {first[0]} to {last[0]}, features {last[1]}, corpus {last[2]}, "
        f"peak memory {numbers.get('peak_rss_mb', '?')} MB",
        flush=True,
    )


def _keep(corpus: Path, new: list[Path]) -> None:
    """Put the smallest of the new inputs into the corpus, as many as there is room for."""
    room = MOST_CORPUS - sum(path.stat().st_size for path in corpus.iterdir())
    for path in sorted(new, key=lambda path: path.stat().st_size):
        octets = path.read_bytes()
        room -= len(octets)
        if room < 0:
            return
        (corpus / name_of(octets)).write_bytes(octets)


def name_of(octets: bytes) -> str:
    """What an input's file is called."""
    return hashlib.sha256(octets).hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
