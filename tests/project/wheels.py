"""Checks what `make wheels` has built: names, sizes, contents, and the time from `pip install` to a verdict.

    python tests/project/wheels.py dist

Each wheel is installed into an environment of its own, without a compiler on the PATH. Processor time is that
of `pip install` (dependencies, too) and of the first `check`.
"""

import os
import resource
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST = 15 * 1024 * 1024
"""Octets of a wheel: package indexes and slow lines take this."""
LONGEST = 10.0
"""Seconds of processor time from `pip install` to the first verdict: some nine where nothing else runs."""


def main(folder: Path) -> int:
    """Check all of it; 1 if something is wrong."""
    wheels = sorted(folder.glob("*.whl"))
    sdists = sorted(folder.glob("*.tar.gz"))
    wrong = [] if len(sdists) == 1 else [f"{len(sdists)} sdists"]
    if not any(wheel.name.endswith("-py3-none-any.whl") for wheel in wheels):
        wrong.append("no wheel for every system")
    if len({wheel.name.split("-")[1] for wheel in wheels}) != 1:
        wrong.append("wheels of several versions")
    for wheel in wheels:
        names = zipfile.ZipFile(wheel).namelist()
        compiled = any(name.endswith((".so", ".pyd")) for name in names)
        pure = wheel.name.endswith("-any.whl")
        if compiled == pure:
            wrong.append(f"{wheel.name}: {'has' if compiled else 'lacks'} compiled code")
        if "linux_x86_64" in wheel.name and "manylinux" not in wheel.name:
            wrong.append(f"{wheel.name}: is for this machine only")
        if any(name.startswith(("tests/", "docs/")) for name in names):
            wrong.append(f"{wheel.name}: has tests or documents")
        if wheel.stat().st_size > LARGEST:
            wrong.append(f"{wheel.name}: {wheel.stat().st_size} octets")
        seconds = seconds_to_verdict(wheel)
        if seconds > LONGEST:
            wrong.append(f"{wheel.name}: {seconds:.1f} s to the first verdict")
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {seconds:.1f} s to a verdict")
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


def seconds_to_verdict(wheel: Path) -> float:
    """Processor time to install a wheel and to check a capture. Raises an error if it does not work."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = Path(folder) / ("Scripts" if os.name == "nt" else "bin")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "PATH": str(programs)}
        subprocess.run(
            [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel],
            env=environment, check=True,
        )  # fmt: skip
        capture = ROOT / "captures" / "rhea-transfer-before-attach.pcap"
        done = subprocess.run(
            [programs / "amqpscope", "check", capture],
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
        )
        if done.returncode != 1 or "amqp10/L-UNATTACHED-TRANSFER" not in done.stdout:
            raise SystemExit(f"{wheel.name}: check gives {done.returncode}\n{done.stdout}{done.stderr}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
