"""Build script: compiles the hot path with mypyc where that can be done.

AMQPSCOPE_COMPILE=auto     (default) compile if a C compiler and mypy are there, else install the same
                           files as they are; they give the same results, more slowly
AMQPSCOPE_COMPILE=require  fail if they cannot be compiled
AMQPSCOPE_COMPILE=no       never compile: the default where pre-commit installs it and somebody waits
"""

import os
import re
import shutil
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

MODE = os.environ.get("AMQPSCOPE_COMPILE", "no" if os.environ.get("PRE_COMMIT") else "auto")

# What every octet, packet or frame goes through: these folders, without what is in the folders inside them.
COMPILED_FOLDERS = [
    "dissectors",
    "dissectors/amqp10",
    "dissectors/amqp10_draft2011",
    "dissectors/amqp091",
    "amqpscope/analysis",
    "amqpscope/capture",
    "amqpscope/capture/recording",
    "amqpscope/diagnoses",
    "amqpscope/diagnoses/amqp10",
    "amqpscope/diagnoses/amqp091",
    "amqpscope/layers",
    "amqpscope/model",
    "amqpscope/reassembly",
    "amqpscope/rules/amqp10",
    "amqpscope/rules/amqp10_draft2011",
    "amqpscope/rules/amqp091",
    "amqpscope/tracking",
    "amqpscope/tracking/amqp10",
    "amqpscope/tracking/amqp10_draft2011",
    "amqpscope/tracking/amqp091",
]

# Not these: mypyc cannot make subclasses of str and int native (`values`), and what only opens files, draws
# or has a few names gains nothing.
NOT_COMPILED = [
    "dissectors/limits.py",
    "dissectors/values.py",
    "dissectors/amqp10/decimals.py",
    "dissectors/amqp10/portable.py",
    "dissectors/amqp10/values.py",
    "dissectors/amqp091/decimals.py",
    "dissectors/amqp091/values.py",
    "amqpscope/capture/tshark.py",
    "amqpscope/capture/recording/output.py",
    "amqpscope/diagnoses/registry.py",
    "amqpscope/model/volatile.py",
    "amqpscope/tracking/diagrams.py",
]

# Of folders whose other files talk to people, to the kernel or to Spark: these files.
COMPILED_FILES = [
    "amqpscope/capture/live/blocks.py",
    "amqpscope/correlation/entities.py",
    "amqpscope/correlation/intermediary.py",
    "amqpscope/correlation/resumption.py",
    "amqpscope/correlation/virtual_host.py",
    "amqpscope/layers/tls/ciphers.py",
    "amqpscope/layers/tls/session.py",
    "amqpscope/layers/tls/stream.py",
    "amqpscope/pipeline/columns.py",
    "amqpscope/pipeline/deliveries.py",
    "amqpscope/pipeline/deliveries091.py",
    "amqpscope/pipeline/deliveries10.py",
    "amqpscope/pipeline/delivery_columns.py",
    "amqpscope/pipeline/fields091.py",
    "amqpscope/pipeline/fields10.py",
    "amqpscope/pipeline/frame_columns.py",
    "amqpscope/pipeline/object_writer.py",
    "amqpscope/pipeline/packets.py",
    "amqpscope/pipeline/rows.py",
    "amqpscope/protocols/detect.py",
    "amqpscope/report/amqp091/brief.py",
    "amqpscope/report/amqp091/frequent.py",
    "amqpscope/report/amqp091/json_form.py",
    "amqpscope/report/amqp091/secrets.py",
    "amqpscope/report/amqp091/summary.py",
    "amqpscope/report/amqp091/text_renderer.py",
    "amqpscope/report/amqp091/value_text.py",
    "amqpscope/report/amqp10/brief.py",
    "amqpscope/report/amqp10/json_form.py",
    "amqpscope/report/amqp10/json_quick.py",
    "amqpscope/report/amqp10/json_values.py",
    "amqpscope/report/amqp10/secrets.py",
    "amqpscope/report/amqp10/sound_message.py",
    "amqpscope/report/amqp10/summary.py",
    "amqpscope/report/amqp10/text_renderer.py",
    "amqpscope/report/amqp10/value_text.py",
    "amqpscope/report/amqp10_draft2011/json_form.py",
    "amqpscope/report/amqp10_draft2011/text_renderer.py",
    "amqpscope/report/capture_summary.py",
    "amqpscope/report/connection_summary.py",
    "amqpscope/report/details.py",
    "amqpscope/report/digits.py",
    "amqpscope/report/frame_counts.py",
    "amqpscope/report/held_timeline.py",
    "amqpscope/report/json_form.py",
    "amqpscope/report/json_renderer.py",
    "amqpscope/report/json_renderers.py",
    "amqpscope/report/line.py",
    "amqpscope/report/links.py",
    "amqpscope/report/moment.py",
    "amqpscope/report/painter.py",
    "amqpscope/report/printable.py",
    "amqpscope/report/redaction.py",
    "amqpscope/report/secrets.py",
    "amqpscope/report/settlements.py",
    "amqpscope/report/summary.py",
    "amqpscope/report/text_renderer.py",
    "amqpscope/report/text_renderers.py",
    "amqpscope/report/timeline.py",
    "amqpscope/report/value_text.py",
    "amqpscope/rules/case.py",
    "amqpscope/rules/context.py",
    "amqpscope/rules/judge.py",
    "amqpscope/rules/overdue.py",
    "amqpscope/rules/peer_error.py",
]

# Where the time goes: 97 percent of the instructions that compiled code runs in `check`, `read`, `summary`,
# `read --count` and `read --format ndjson`, counted with callgrind on captures of both protocols. Layers and
# the pipeline are here too, without being counted. The C compiler does its best for these alone.
OFTEN = [
    "amqpscope/analysis/connection.py",
    "amqpscope/analysis/direction.py",
    "amqpscope/analysis/provenance.py",
    "amqpscope/analysis/table.py",
    "amqpscope/capture/packet.py",
    "amqpscope/capture/pcap.py",
    "amqpscope/correlation/intermediary.py",
    "amqpscope/diagnoses/amqp091/channel_state.py",
    "amqpscope/diagnoses/amqp091/channels.py",
    "amqpscope/diagnoses/amqp091/habits.py",
    "amqpscope/diagnoses/amqp091/numbers.py",
    "amqpscope/diagnoses/amqp10/link_state.py",
    "amqpscope/diagnoses/amqp10/links.py",
    "amqpscope/diagnoses/amqp10/numbers.py",
    "amqpscope/diagnoses/amqp10/redelivery.py",
    "amqpscope/diagnoses/amqp10/refusals.py",
    "amqpscope/diagnoses/capture.py",
    "amqpscope/diagnoses/connection.py",
    "amqpscope/diagnoses/latency.py",
    "amqpscope/diagnoses/memory.py",
    "amqpscope/diagnoses/notebook.py",
    "amqpscope/diagnoses/numbers.py",
    "amqpscope/diagnoses/opening.py",
    "amqpscope/diagnoses/transport.py",
    "amqpscope/layers/head_stream.py",
    "amqpscope/layers/http_head.py",
    "amqpscope/layers/http_kinds.py",
    "amqpscope/layers/interface.py",
    "amqpscope/layers/places.py",
    "amqpscope/layers/proxy.py",
    "amqpscope/layers/secrets.py",
    "amqpscope/layers/stack.py",
    "amqpscope/layers/tls/ciphers.py",
    "amqpscope/layers/tls/stream.py",
    "amqpscope/layers/tls_kind.py",
    "amqpscope/model/records.py",
    "amqpscope/pipeline/columns.py",
    "amqpscope/pipeline/deliveries.py",
    "amqpscope/pipeline/deliveries091.py",
    "amqpscope/pipeline/deliveries10.py",
    "amqpscope/pipeline/delivery_columns.py",
    "amqpscope/pipeline/fields091.py",
    "amqpscope/pipeline/fields10.py",
    "amqpscope/pipeline/frame_columns.py",
    "amqpscope/pipeline/object_writer.py",
    "amqpscope/pipeline/packets.py",
    "amqpscope/pipeline/rows.py",
    "amqpscope/reassembly/connection.py",
    "amqpscope/reassembly/copies.py",
    "amqpscope/reassembly/order.py",
    "amqpscope/reassembly/provenance.py",
    "amqpscope/reassembly/recent.py",
    "amqpscope/report/amqp091/brief.py",
    "amqpscope/report/amqp091/frequent.py",
    "amqpscope/report/amqp091/json_form.py",
    "amqpscope/report/amqp091/secrets.py",
    "amqpscope/report/amqp091/summary.py",
    "amqpscope/report/amqp10/brief.py",
    "amqpscope/report/amqp10/json_form.py",
    "amqpscope/report/amqp10/json_quick.py",
    "amqpscope/report/amqp10/json_values.py",
    "amqpscope/report/amqp10/sound_message.py",
    "amqpscope/report/amqp10/value_text.py",
    "amqpscope/report/capture_summary.py",
    "amqpscope/report/connection_summary.py",
    "amqpscope/report/digits.py",
    "amqpscope/report/frame_counts.py",
    "amqpscope/report/held_timeline.py",
    "amqpscope/report/json_form.py",
    "amqpscope/report/json_renderers.py",
    "amqpscope/report/line.py",
    "amqpscope/report/links.py",
    "amqpscope/report/moment.py",
    "amqpscope/report/painter.py",
    "amqpscope/report/settlements.py",
    "amqpscope/report/summary.py",
    "amqpscope/report/timeline.py",
    "amqpscope/report/value_text.py",
    "amqpscope/rules/amqp091/delivery.py",
    "amqpscope/rules/amqp091/judge.py",
    "amqpscope/rules/amqp091/requests.py",
    "amqpscope/rules/amqp091/values.py",
    "amqpscope/rules/amqp10/connection.py",
    "amqpscope/rules/amqp10/delivery.py",
    "amqpscope/rules/amqp10/idle.py",
    "amqpscope/rules/amqp10/judge.py",
    "amqpscope/rules/amqp10/link.py",
    "amqpscope/rules/amqp10/message.py",
    "amqpscope/rules/context.py",
    "amqpscope/rules/judge.py",
    "amqpscope/tracking/amqp091/channel.py",
    "amqpscope/tracking/amqp091/connection_view.py",
    "amqpscope/tracking/amqp091/contents.py",
    "amqpscope/tracking/amqp091/conversation.py",
    "amqpscope/tracking/amqp091/deliveries.py",
    "amqpscope/tracking/amqp091/endpoint.py",
    "amqpscope/tracking/amqp091/message_samples.py",
    "amqpscope/tracking/amqp091/names.py",
    "amqpscope/tracking/amqp091/publishes.py",
    "amqpscope/tracking/amqp091/topology_log.py",
    "amqpscope/tracking/amqp10/conversation.py",
    "amqpscope/tracking/amqp10/endpoint.py",
    "amqpscope/tracking/amqp10/endpoint_state.py",
    "amqpscope/tracking/amqp10/identity.py",
    "amqpscope/tracking/amqp10/link.py",
    "amqpscope/tracking/amqp10/message_digest.py",
    "amqpscope/tracking/amqp10/receiving.py",
    "amqpscope/tracking/amqp10/session_deliveries.py",
    "amqpscope/tracking/ascending.py",
    "amqpscope/tracking/clock.py",
    "amqpscope/tracking/inbox.py",
    "amqpscope/tracking/knowledge.py",
    "amqpscope/tracking/numbered.py",
    "amqpscope/tracking/spans.py",
    "amqpscope/tracking/states.py",
    "dissectors/amqp091/arguments.py",
    "dissectors/amqp091/content.py",
    "dissectors/amqp091/frame.py",
    "dissectors/amqp091/message.py",
    "dissectors/amqp091/methods.py",
    "dissectors/amqp091/registry.py",
    "dissectors/amqp091/tables.py",
    "dissectors/amqp10/composite.py",
    "dissectors/amqp10/delivery.py",
    "dissectors/amqp10/frame.py",
    "dissectors/amqp10/message.py",
    "dissectors/amqp10/messaging.py",
    "dissectors/amqp10/outline.py",
    "dissectors/amqp10/performatives.py",
    "dissectors/amqp10/registry.py",
    "dissectors/amqp10/types.py",
    "dissectors/interface.py",
    "dissectors/stream_decoder.py",
    "dissectors/wire.py",
]


def compiled() -> list[str]:
    """The files to compile."""
    found = [
        path.as_posix()
        for folder in COMPILED_FOLDERS
        for path in sorted(Path(folder).glob("*.py"))
        if path.name != "__init__.py" and path.as_posix() not in NOT_COMPILED
    ]
    return [*found, *COMPILED_FILES]


# What the extension that starts a module needs of Python.h. There is such an extension for each of some 360
# modules, and with the whole of Python.h each takes a compiler almost three times as long.
STARTER = """\
typedef struct PyObject PyObject;
#define PyMODINIT_FUNC __attribute__((visibility("default"))) PyObject *
#define Py_DECREF Py_DecRef
void Py_DecRef(PyObject *);
void PyErr_Clear(void);
void *PyCapsule_GetPointer(PyObject *, const char *);
PyObject *Py_BuildValue(const char *, ...);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
PyObject *PyImport_ImportModuleLevel(const char *, PyObject *, PyObject *, PyObject *, int);
#define NULL ((void *)0)
"""

# The first line of a function in the C of mypyc, and its name: the function itself, or what Python calls.
FUNCTION = re.compile(r"^ *[\w ]+\**(CPyDef_\w+|CPyPy_\w+)\(.*\) \{$", re.M)
# What the function that starts a module needs of its classes, and nothing outside its file may see.
HIDDEN = re.compile(
    r"^ *static (PyTypeObject \*CPyType_\w+_template|bool\s+CPyDef_\w+_setup\(.*\))(?= =|$)", re.M
)

# What makes an object of a class for Python: it calls `__init__`, which declares all attributes.
NEW = re.compile(r"^ +(PyObject \*ret = \w+\(self, args, kwds\);)$", re.M)
# `X.__new__(X, ...)`, with the Ellipsis itself, makes one without attributes, for the objects of a state
# (`amqpscope/pipeline/object_reader.py`). mypyc's own way, `serializable`, has each look at an attribute
# checked.
ALONE = "PyTuple_GET_SIZE(args) == 1 && PyTuple_GET_ITEM(args, 0) == Py_Ellipsis && kwds == NULL"
BLANK = f"    if ({ALONE}) return self;"


def arrange(sources: list[Path], folder: Path) -> list[str]:
    """Joins the C files of all modules to a few: `often.c`, and those that are compiled in less time.

    These have the modules that are not in OFTEN. Of the other modules they have the function that starts one,
    and what Python calls, which only takes arguments apart: a third of all C, and nowhere does it take long.
    """
    modules = {"__native_" + name.removesuffix(".py").replace("/", "___") for name in OFTEN}
    shared, often, seldom = [], [], []
    for source in sources:
        text = NEW.sub(rf"{BLANK}\n\1", source.read_text("utf-8"))
        if source.stem not in modules:
            # What no module owns: what all share, and the runtime library, which `often.c` inlines.
            (seldom if "___" in source.stem else shared).append(text)
            continue
        moved = [*re.findall(r'^#include "__native.*\n', text, re.M)]
        moved += [f"extern {found};\n" for found in HIDDEN.findall(text)]
        text = HIDDEN.sub(r"\1", text)
        functions = list(FUNCTION.finditer(text))
        often.append(text[: functions[0].start()])
        for function, end in zip(functions, [*(found.start() for found in functions[1:]), None], strict=True):
            goes = function[1].startswith("CPyPy_") or function[1].endswith("___top_level__")
            (moved if goes else often).append(text[function.start() : end])
        seldom.append("".join(moved))
    parts = {"often.c": shared + often} | {f"seldom{number}.c": seldom[number::4] for number in range(4)}
    for name, texts in parts.items():
        (folder / name).write_text("".join(texts), "utf-8")
    return [(folder / name).as_posix() for name in parts]


class OptionalBuild(build_ext):
    """Builds extensions, and in the mode `auto` goes on without them if that fails."""

    def build_extensions(self) -> None:
        """Builds the extension that holds the code; then, side by side, those that start one module each."""
        # In this order: without the code none of the others may be there.
        code, *starters = self.extensions
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            if len(code.sources) > 1:
                code.extra_objects = list(pool.map(self.compiled_file, code.sources))
                code.sources = []
            self.build_extension(code)
            list(pool.map(self.build_extension, starters))

    def compiled_file(self, source: str) -> str:
        """The object that a C file of the code is compiled to: one of many is compiled by itself."""
        code = self.extensions[0]
        # With -Og what runs seldom is as quick as with -O1, but a compiler needs a third less time. It sees
        # less then, and more values seem to be without one; mypyc makes warnings errors. What runs often
        # gains nothing from these passes of -O3, which take an eighth of its time.
        flags = ["-Og", "-Wno-maybe-uninitialized"]
        if "seldom" not in source:
            flags = [f"-fno-{one}" for one in ("tree-vectorize", "schedule-insns2", "gcse", "unswitch-loops")]
        [made] = self.compiler.compile(
            [source],
            output_dir=self.build_temp,
            include_dirs=code.include_dirs,
            depends=code.depends,
            extra_postargs=[*code.extra_compile_args, *flags],
        )
        return str(made)

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
    posix = os.name == "posix"
    found = list(
        mypycify(
            ["--strict", "--follow-imports=silent", *compiled()],
            opt_level="3",
            debug_level="0",
            # A file for each module: 21 s of mypyc and 0.9 GB of memory. One for all: 43 s and 5.6 GB, since
            # mypyc indents it ever deeper, to 830 MB.
            multi_file=posix,
        )
    )
    if posix:
        for extension in found:
            # Nobody replaces a function of ours while it runs: calls need no detour, and may be inlined.
            # (A new list: mypyc gives all of them the same one.)
            # And the search for misleading indentation took gcc half of its time.
            flags = ["-fvisibility=hidden", "-fno-semantic-interposition", "-Wno-misleading-indentation"]
            extension.extra_compile_args = [*extension.extra_compile_args, *flags]
        sources = [Path(source) for source in found[0].sources]
        found[0].sources = arrange(sources, sources[0].parent)
        for starter in found[1:]:
            [source] = map(Path, starter.sources)
            source.write_text(source.read_text("utf-8").replace("#include <Python.h>\n", STARTER), "utf-8")
    return found


def readme() -> str:
    """README.md for the page of a package index: links into the repository, at the tag of this version."""
    here = Path(__file__).parent
    source = tomllib.loads((here / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]
    [version] = re.findall(
        r'^__version__ = "(.*)"$', (here / "amqpscope/__init__.py").read_text("utf-8"), re.M
    )
    text = (here / "README.md").read_text("utf-8")
    text = re.sub(r"(!\[[^]]*\]\()(?!https?:)", rf"\1{source}/raw/v{version}/", text)
    return re.sub(r"((?<!!)\[[^]]*\]\()(?!https?:)", rf"\1{source}/blob/v{version}/", text)


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": OptionalBuild},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
