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
    "amqpscope/pipeline/packets.py",
    "amqpscope/pipeline/rows.py",
    "amqpscope/protocols/detect.py",
    "amqpscope/report/amqp091/brief.py",
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
    found = list(
        mypycify(["--strict", "--follow-imports=silent", *compiled()], opt_level="3", debug_level="0")
    )
    if os.name == "posix":
        for extension in found:
            # Nobody replaces a function of ours while it runs: calls need no detour, and may be inlined.
            # (A new list: mypyc gives all of them the same one.)
            # And mypyc indents its C ever deeper, to 800 MB: to measure it took gcc half of its time.
            flags = ["-fvisibility=hidden", "-fno-semantic-interposition", "-Wno-misleading-indentation"]
            extension.extra_compile_args = [*extension.extra_compile_args, *flags]
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
