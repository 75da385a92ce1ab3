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

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODE = os.environ.get("AMQPSCOPE_COMPILE", "no" if os.environ.get("PRE_COMMIT") else "auto")

# What every octet, packet or frame goes through. `values` holds subclasses of str and int, which
# mypyc cannot make native; what only opens files or talks to people gains nothing.
COMPILED = [
    "dissectors/wire.py",
    "dissectors/interface.py",
    "dissectors/detect.py",
    "dissectors/foreign.py",
    "dissectors/proxy.py",
    "dissectors/protocol_header.py",
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
    "dissectors/amqp091/detect.py",
    "dissectors/amqp091/frame.py",
    "dissectors/amqp091/message.py",
    "dissectors/amqp091/methods.py",
    "dissectors/amqp091/portable.py",
    "dissectors/amqp091/problems.py",
    "dissectors/amqp091/registry.py",
    "dissectors/amqp091/tables.py",
    "amqpscope/analysis/connection.py",
    "amqpscope/report/frame_counts.py",
    "amqpscope/analysis/kept.py",
    "amqpscope/analysis/numbering.py",
    "amqpscope/analysis/output.py",
    "amqpscope/analysis/table.py",
    "amqpscope/correlation/entities.py",
    "amqpscope/correlation/intermediary.py",
    "amqpscope/correlation/resumption.py",
    "amqpscope/correlation/virtual_host.py",
    "amqpscope/tracking/summary.py",
    "amqpscope/analysis/detection.py",
    "amqpscope/analysis/provenance.py",
    "amqpscope/model/assessment.py",
    "amqpscope/model/certainty.py",
    "amqpscope/model/finding.py",
    "amqpscope/model/reaction.py",
    "amqpscope/model/records.py",
    "amqpscope/model/note.py",
    "amqpscope/model/passwords.py",
    "amqpscope/pipeline/deliveries.py",
    "amqpscope/pipeline/deliveries10.py",
    "amqpscope/pipeline/deliveries091.py",
    "amqpscope/pipeline/packets.py",
    "amqpscope/pipeline/rows.py",
    "amqpscope/analysis/direction.py",
    "amqpscope/protocols/detect.py",
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
    "amqpscope/report/json_renderer.py",
    "amqpscope/report/json_form.py",
    "amqpscope/report/links.py",
    "amqpscope/report/moment.py",
    "amqpscope/report/json_renderers.py",
    "amqpscope/report/secrets.py",
    "amqpscope/report/summary.py",
    "amqpscope/analysis/layer.py",
    "amqpscope/analysis/layers.py",
    "amqpscope/analysis/proxy.py",
    "amqpscope/rules/case.py",
    "amqpscope/rules/judge.py",
    "amqpscope/rules/context.py",
    "amqpscope/rules/overdue.py",
    "amqpscope/rules/peer_error.py",
    "amqpscope/tracking/correlation_budget.py",
    "amqpscope/tracking/ascending.py",
    "amqpscope/tracking/events.py",
    "amqpscope/tracking/inbox.py",
    "amqpscope/tracking/knowledge.py",
    "amqpscope/tracking/clock.py",
    "amqpscope/tracking/snapshot.py",
    "amqpscope/tracking/object_ids.py",
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
        """Builds the extension that holds the code; then, side by side, those that start one module each."""
        # In this order: without the code none of the others may be there.
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
    found = list(mypycify(["--strict", "--follow-imports=silent", *COMPILED], opt_level="3", debug_level="0"))
    if os.name == "posix":
        for extension in found:
            # Nobody replaces a function of ours while it runs: calls need no detour, and may be inlined.
            # (A new list: mypyc gives all of them the same one.)
            # And mypyc indents its C ever deeper, to 300 MB: to measure it took gcc half of its time.
            flags = ["-fvisibility=hidden", "-fno-semantic-interposition", "-Wno-misleading-indentation"]
            extension.extra_compile_args = [*extension.extra_compile_args, *flags]
    return found


setup(ext_modules=extensions(), cmdclass={"build_ext": OptionalBuild})
