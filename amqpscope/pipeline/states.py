"""The states of capture sets, beside the tables of a lake: where the next run goes on.

    LAKE/_state/DIGEST-RUN     of the name of a set, and the run that it goes on from

What a process that follows a set has in memory (see `follower`) is written there before a commit, as far as
that is affordable, and at the end of a watch or of a run with `--append`. The next one lets a process go on
from there, so that only what is new is read.

A state only saves time. It is used only if the lake has just the rows that it goes on from: its run was
committed, no run since then has replaced rows, and the files with open rows are there still. The state before
is deleted behind the commit. So whenever a run dies, one of both is of what the lake has. If none is, the set
is analysed anew as a whole. So it is with a state of another version of the package, of other options or
another policy, and with one that is damaged. With a capture set for each file, there would be more and more
states, of which hardly one is ever used: `vacuum` leaves the last ones.
"""

import functools
import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from amqpscope import __version__
from amqpscope.analysis import table
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.inputs import CaptureFile, Trouble, address, escaped
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.object_classes import NotLoaded
from amqpscope.pipeline.rows import RowTerms
from amqpscope.pipeline.runs import APPEND, COMPACT
from amqpscope.pipeline.schemas import TABLES
from amqpscope.pipeline.tags import Tags

__all__ = ["States", "Stored", "opened", "sweep"]

_MAGIC: Final = b"amqpscope state\n"
MAX_STATES: Final = 64
"""States of sets of one file that `sweep` leaves. Files of the lake that a state names are not put together
with others.
"""

_ANEW: Final = "all files of the set are read again"


class Stored(NamedTuple):
    """A state. source, others: of `followed.Followed`. one: the set as it was read. run: that it goes on
    from. open: paths of the files with open rows. terms: what rows depend on, as a digest. code: the version
    of the package. octets: what the process gave.
    """

    source: str
    one: CaptureSet
    others: tuple[tuple[str, int, str], ...]
    run: str
    open: frozenset[str]
    terms: str
    code: str
    octets: bytes

    def dump(self) -> bytes:
        """As octets."""
        fields = {
            "source": self.source,
            "set": self.one.name,
            # Where a file is may be a URL with credentials; it is looked for anew anyway.
            "files": [list(file._replace(path=address(file.name))) for file in self.one.files],
            "others": self.others,
            "run": self.run,
            "open": sorted(self.open),
            "terms": self.terms,
            "code": self.code,
        }
        rest = json.dumps(fields).encode() + b"\n" + self.octets
        return _MAGIC + hashlib.sha256(rest).digest() + rest

    @staticmethod
    def load(octets: bytes) -> "Stored":
        """From these octets. NotLoaded: they are not those of `dump`."""
        start = len(_MAGIC) + 32
        if octets[: len(_MAGIC)] != _MAGIC:
            raise NotLoaded("is no state")
        if hashlib.sha256(octets[start:]).digest() != octets[len(_MAGIC) : start]:
            raise NotLoaded("is damaged")
        head, _, state = octets[start:].partition(b"\n")
        try:
            fields = json.loads(head)
            files = tuple(_file(*file) for file in fields["files"])
            texts = [fields[name] for name in ("source", "set", "run", "terms", "code")]
            others = tuple((str(name), int(size), str(identity)) for name, size, identity in fields["others"])
            paths = frozenset(str(path) for path in fields["open"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise NotLoaded("is damaged") from error
        source, name, run, terms, code = (str(text) for text in texts)
        return Stored(source, CaptureSet(name, files), others, run, paths, terms, code, state)


def _file(
    capture: Any, path: Any, size: Any, compression: Any, time: Any, trouble: Any, *more: Any
) -> CaptureFile:
    named, identity = more
    why = None if trouble is None else Trouble(str(trouble[0]), str(trouble[1]))
    return CaptureFile(
        str(capture), str(path), int(size), str(compression), int(time), why, bool(named), str(identity)
    )


class States:
    """The states of a lake. tables: those of a new lake; another lake has its own. terms, tags: of
    `tasks.StagedFiles`. say: given a line about one that is not used. fresh: none is used.
    usable: whether any is used. check: raises PipelineError if none may be written.
    """

    def __init__(
        self,
        lake: Lake,
        set_by: str,
        tables: Iterable[str],
        terms: RowTerms,
        tags: Tags,
        say: Callable[[str], None],
        fresh: bool = False,
    ) -> None:
        self._lake = lake
        written = {"files", *tables} if lake.empty() else set(lake.written().versions)
        self.tables = tuple(name for name in TABLES if name in written)
        self.terms = terms
        self.tags = dict(tags)
        self.say = say
        self.usable = not fresh
        self.check: Callable[[], None] = lambda: None
        self._digest = _digest((set_by, sorted(self.tables), terms, self.tags))

    def find(self, source: str) -> Stored | None:
        """The state of the set of this name, if it is of what the lake has."""
        if not self.usable or self._lake.empty():
            return None
        refusal = ""
        for name in self._of(source):
            if "." in name:
                continue  # whoever wrote it has died
            try:
                octets = self._lake.directory.state(name)
                if octets is None:
                    continue
                stored = Stored.load(octets)
            except NotLoaded as error:
                refusal = str(error)
                continue
            if stored.source != source or not _belongs(self._lake, stored):
                continue
            if stored.code != _code():
                refusal = f"is of another version of amqpscope ({stored.code.partition(' ')[0]})"
            elif stored.terms != self._digest:
                refusal = "is of a run with other options or another configuration"
            else:
                return stored
        if refusal:
            self.refuse(source, refusal)
        return None

    def _of(self, source: str) -> list[str]:
        """The names of the states of this set."""
        return [name for name in self._lake.directory.states() if name.startswith(_name(source))]

    def refuse(self, source: str, why: str) -> None:
        """Say why the state of a set is not used."""
        self.say(f"{escaped(source)}: the kept state {why}: {_ANEW}")

    def keep(
        self,
        source: str,
        one: CaptureSet,
        others: Iterable[tuple[str, int, str]],
        run: str,
        opened: frozenset[str],
        octets: bytes,
    ) -> None:
        """Write the state of a set. run, opened: the last run with rows of it. octets: of its process."""
        self.check()
        stored = Stored(source, one, tuple(others), run, opened, self._digest, _code(), octets)
        self._lake.directory.keep_state(_named(source, run), stored.dump())

    def settle(self, source: str, run: str) -> None:
        """Delete all states of a set but that of this run, which was committed."""
        for name in self._of(source):
            if name != _named(source, run):
                self._lake.directory.forget_state(name)


def _belongs(lake: Lake, stored: Stored) -> bool:
    """Whether a state goes on from the rows that the lake has."""
    kinds = {run.name: run.kind for run in lake.runs()}
    if stored.run not in kinds:
        return False
    names = list(kinds)
    since = names[names.index(stored.run) + 1 :]
    return all(kinds[name] in (APPEND, COMPACT) for name in since) and stored.open <= lake.paths()


def opened(lake: Lake) -> frozenset[str]:
    """The paths of the files with open rows that states go on from."""
    found: set[str] = set()
    for name in lake.directory.states():
        with suppress(NotLoaded):
            found |= _stored(lake, name).open
    return frozenset(found)


def sweep(lake: Lake) -> int:
    """Delete the states that go on from no rows of the lake; gives how many. Of too many of sets of one file,
    those of the earliest runs go, too. A set of several files may lose the first of them, and could not be
    read again then.
    """
    states = lake.directory.states()
    numbers = {run.name: run.number for run in lake.runs()}
    left: set[str] = set()
    of_one_file: list[tuple[int, str]] = []
    for name in states:
        try:
            stored = _stored(lake, name)
        except NotLoaded:
            continue
        if stored.code == _code() and _belongs(lake, stored):
            left.add(name)
            if len(stored.one.files) == 1:
                of_one_file.append((numbers[stored.run], name))
    left -= {name for _, name in sorted(of_one_file)[:-MAX_STATES]}
    for name in states:
        if name not in left:
            lake.directory.forget_state(name)
    return len(states) - len(left)


def _stored(lake: Lake, name: str) -> Stored:
    """The state of this name. NotLoaded: there is none."""
    octets = lake.directory.state(name)
    if octets is None:
        raise NotLoaded("is gone")
    return Stored.load(octets)


def _name(source: str) -> str:
    return hashlib.sha256(source.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _named(source: str, run: str) -> str:
    return f"{_name(source)}-{run}"


@functools.cache
def _code() -> str:
    """The version of the package, and a digest of its files: other code may have other attributes."""
    digest = hashlib.sha256(str(table.__file__).rpartition(".")[2].encode())
    root = Path(__file__).resolve().parents[2]
    for package in ("amqpscope", "dissectors"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return f"{__version__} {digest.hexdigest()[:16]}"


def _digest(thing: Any) -> str:
    return hashlib.sha256(_described(thing).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _described(thing: Any) -> str:
    """What a thing is, in the same words in each process. Not the day of a policy: what has expired by then
    is not among its entries.
    """
    if isinstance(thing, (set, frozenset)):
        return f"{{{','.join(sorted(_described(one) for one in thing))}}}"
    if isinstance(thing, dict):
        return f"{{{','.join(sorted(f'{_described(key)}:{_described(one)}' for key, one in thing.items()))}}}"
    if isinstance(thing, (list, tuple)):
        return f"({','.join(_described(one) for one in thing)})"
    if type(thing).__module__.startswith("amqpscope."):
        own = {name: value for name, value in vars(thing).items() if name not in ("today", "gathered")}
        return f"{type(thing).__qualname__}{_described(own)}"
    return repr(thing)
