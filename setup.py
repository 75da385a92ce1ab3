"""Build script: compiles the hot path with mypyc where that can be done.

AMQPSCOPE_COMPILE=auto     (default) compile if a C compiler and mypy are there, else install the same
                           files as they are; they give the same results, more slowly
AMQPSCOPE_COMPILE=require  fail if they cannot be compiled
AMQPSCOPE_COMPILE=no       never compile: the default where pre-commit installs it and somebody waits
"""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODE = os.environ.get("AMQPSCOPE_COMPILE", "no" if os.environ.get("PRE_COMMIT") else "auto")

# What every octet, packet or frame goes through. `values` holds subclasses of str and int, which
# mypyc cannot make native; what only opens files or talks to people gains nothing.
COMPILED = [
    "dissectors/wire.py",
    "dissectors/interface.py",
    "dissectors/detect.py",
    "dissectors/protocol_header.py",
    "dissectors/protocols.py",
    "dissectors/stream_decoder.py",
    "dissectors/tls.py",
    "dissectors/amqp10/composite.py",
    "dissectors/amqp10/delivery.py",
    "dissectors/amqp10/frame.py",
    "dissectors/amqp10/message.py",
    "dissectors/amqp10/messaging.py",
    "dissectors/amqp10/outline.py",
    "dissectors/amqp10/performatives.py",
    "dissectors/amqp10/registry.py",
    "dissectors/amqp10/sasl.py",
    "dissectors/amqp10/transactions.py",
    "dissectors/amqp10/types.py",
    "dissectors/amqp091/arguments.py",
    "dissectors/amqp091/content.py",
    "dissectors/amqp091/frame.py",
    "dissectors/amqp091/message.py",
    "dissectors/amqp091/methods.py",
    "dissectors/amqp091/portable.py",
    "dissectors/amqp091/registry.py",
    "dissectors/amqp091/tables.py",
    "amqpscope/analysis.py",
    "amqpscope/census.py",
    "amqpscope/connections.py",
    "amqpscope/correlation/entities.py",
    "amqpscope/correlation/intermediary.py",
    "amqpscope/correlation/resumption.py",
    "amqpscope/correlation/virtual_host.py",
    "amqpscope/tracking/summaries.py",
    "amqpscope/tracking/summary.py",
    "amqpscope/detection.py",
    "amqpscope/evidence.py",
    "amqpscope/finding.py",
    "amqpscope/model.py",
    "amqpscope/note.py",
    "amqpscope/pipeline/deliveries.py",
    "amqpscope/pipeline/deliveries10.py",
    "amqpscope/pipeline/deliveries091.py",
    "amqpscope/pipeline/packets.py",
    "amqpscope/pipeline/rows.py",
    "amqpscope/side.py",
    "amqpscope/report/digits.py",
    "amqpscope/report/amqp10/json_form.py",
    "amqpscope/report/amqp10/json_quick.py",
    "amqpscope/report/amqp10/json_values.py",
    "amqpscope/report/amqp10/secrets.py",
    "amqpscope/report/amqp10/summary.py",
    "amqpscope/report/amqp091/json_form.py",
    "amqpscope/report/amqp091/secrets.py",
    "amqpscope/report/amqp091/summary.py",
    "amqpscope/report/connection_summary.py",
    "amqpscope/report/forms.py",
    "amqpscope/report/json_form.py",
    "amqpscope/report/links.py",
    "amqpscope/report/moment.py",
    "amqpscope/report/protocols.py",
    "amqpscope/report/secrets.py",
    "amqpscope/report/summary.py",
    "amqpscope/transport/interface.py",
    "amqpscope/rules/case.py",
    "amqpscope/rules/judge.py",
    "amqpscope/rules/judges.py",
    "amqpscope/rules/context.py",
    "amqpscope/rules/overdue.py",
    "amqpscope/tracking/allowance.py",
    "amqpscope/tracking/inbox.py",
    "amqpscope/tracking/knowledge.py",
    "amqpscope/tracking/pace.py",
    "amqpscope/tracking/portrait.py",
    "amqpscope/tracking/roll.py",
    "amqpscope/tracking/serial.py",
    "amqpscope/tracking/spans.py",
    *sorted(str(path) for path in Path("amqpscope/rules/amqp10").glob("*.py") if path.name != "__init__.py"),
    *sorted(str(path) for path in Path("amqpscope/rules/amqp091").glob("*.py") if path.name != "__init__.py"),
    *sorted(
        str(path) for path in Path("amqpscope/tracking/amqp10").glob("*.py") if path.name != "__init__.py"
    ),
    *sorted(
        str(path) for path in Path("amqpscope/tracking/amqp091").glob("*.py") if path.name != "__init__.py"
    ),
    *sorted(
        str(path)
        for path in Path("amqpscope/capture").glob("*.py")
        if path.name not in ("__init__.py", "tshark.py")
    ),
    # The rest of it talks to the kernel, and to scapy.
    "amqpscope/capture/live/blocks.py",
    "amqpscope/capture/recording/blocks.py",
    "amqpscope/capture/recording/chunk.py",
    "amqpscope/capture/recording/comments.py",
    "amqpscope/capture/recording/interfaces.py",
    "amqpscope/capture/recording/pcapng_files.py",
    "amqpscope/capture/recording/pcapng_recorder.py",
    *sorted(str(path) for path in Path("amqpscope/reassembly").glob("*.py") if path.name != "__init__.py"),
]


class OptionalBuild(build_ext):
    """Builds extensions, and in the mode `auto` goes on without them if that fails."""

    def build_extensions(self) -> None:
        """Keeps all processors busy, where setuptools would compile one C file after the other."""
        compile_files = self.compiler.compile

        def compile_side_by_side(sources: list[str], **options: Any) -> list[str]:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                found = pool.map(lambda source: compile_files([source], **options), sources)
                return [object_file for object_files in found for object_file in object_files]

        self.compiler.compile = compile_side_by_side
        # The first holds the code, the others start one module each: without it none of them may be there.
        code, *starters = self.extensions
        self.build_extension(code)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.build_extension, starters))

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            if MODE == "require":
                raise
            print(f"amqpscope: not compiled ({error}); the same files run as they are", file=sys.stderr)


def by_package(sources: list[str]) -> list[str]:
    """Of C files that hold a module each, C files that include those of a package each.

    One C file of everything takes several times as long, and memory: mypyc indents it ever deeper, to 300 MB,
    which gcc measures again at every `if`. With one for each module, functions of the same package could not
    be inlined into each other.
    """
    packages: dict[str, list[str]] = {}
    for path in map(Path, sources):
        # mypyc writes `__native_amqpscope___rules___case.c`; what has no package is mypyc's own.
        package = path.stem.removeprefix("__native_").rpartition("___")[0]
        packages.setdefault(f"package_{package}.c" if package else "runtime.c", []).append(path.name)
    beside = Path(sources[0]).with_name
    for file, modules in packages.items():
        beside(file).write_text("".join(f'#include "{module}"\n' for module in modules))
    return [str(beside(file)) for file in packages]


def extensions() -> list[Extension]:
    if MODE not in ("auto", "require", "no"):
        sys.exit(f"AMQPSCOPE_COMPILE is {MODE!r}, not auto, require or no")
    # pip runs this file three times and builds in one of them; each would wait for mypyc.
    builds = any(
        word.startswith(("build", "bdist", "editable", "develop", "install")) for word in sys.argv[1:]
    )
    if MODE == "no" or not builds:
        return []
    if MODE == "auto" and not any(shutil.which(name) for name in ("cc", "gcc", "clang", "cl")):
        return []
    try:
        from mypyc.build import mypycify
    except ImportError:
        if MODE == "require":
            raise
        return []
    found = mypycify(["--strict", *COMPILED], opt_level="3", debug_level="0", multi_file=True)
    # The first holds the code of all modules; mypyc makes the others, one for each module, to start it.
    found[0].sources = by_package(found[0].sources)
    if os.name == "posix":
        for extension in found:
            # Nobody replaces a function of ours while it runs: calls need no detour, and may be inlined.
            # (A new list: mypyc gives all of them the same one.)
            flags = ["-fvisibility=hidden", "-fno-semantic-interposition"]
            extension.extra_compile_args = [*extension.extra_compile_args, *flags]
    return found


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
