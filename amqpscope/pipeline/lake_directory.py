"""The directory of a lake, on this machine or in an object store, and the files in it that are no tables.

LAKE/_state/NAME           what a run leaves for the next one (see `states`)
"""

import contextlib
import os
import uuid
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

import pyarrow as pa
from pyarrow import fs

from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.inputs import file_system, plain, shown
from amqpscope.pipeline.refusals import in_words

__all__ = ["STATE", "LakeDirectory"]

STATE: Final = "_state"
"""The directory of states, in a lake."""

_MAX_STATE_FILE: Final = 512 * 1024 * 1024
"""Octets of the largest file that is taken for a state."""

_ATTEMPTS: Final = 5
"""How often a directory is tried to be deleted that others write into."""


class LakeDirectory:
    """The directory at a path or URL. PipelineError if it has no name, or its file system is not known.

    path: as it was given. name: what messages call it. system, root: where Arrow finds it.
    """

    def __init__(self, path: str) -> None:
        if not path:
            raise PipelineError("the name of the lake is empty: give a directory or a URL")
        self.path = plain(path if path.endswith("://") else path.rstrip("/") or path)
        self.name = shown(self.path)
        with self.explained():
            self.system, self.root = file_system(self.path)

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Raise PipelineError, in one line, for what pyarrow and the file system raise."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise PipelineError(f"{self.name}: {in_words(error, self.path)}") from error
        except UnicodeError as error:
            raise PipelineError(f"{self.name}: the path, or a name in it, is not UTF-8") from error

    def whole(self) -> str:
        """Its path from the root on, or its URL."""
        return self.path if "://" in self.path else os.path.abspath(self.path)

    def for_spark(self) -> str | None:
        """What Spark calls it; None if Spark, as it is installed, cannot open it."""
        if isinstance(self.system, fs.LocalFileSystem):
            return self.root
        return self.path if self.path.startswith("hdfs://") else None

    def place(self, path: str) -> str:
        """The path, from the root on, or URL of something in it. path: below it."""
        if "://" not in self.path:
            return f"{self.whole()}/{path}"  # a worker may have another working directory
        address, mark, options = self.path.partition("?")
        return f"{address.rstrip('/')}/{quote(path, safe='/=')}{mark}{options}"

    def exists(self) -> bool:
        """Whether it is there."""
        return bool(self.system.get_file_info(self.root).type != fs.FileType.NotFound)

    def delete(self, path: str) -> None:
        """Delete a directory with all that is in it, or a file, if it is there. path: below this one."""
        path = f"{self.root}/{path}"
        for _ in range(_ATTEMPTS):
            try:
                if self.system.get_file_info(path).type == fs.FileType.File:
                    self.system.delete_file(path)
                else:
                    self.system.delete_dir(path)
            except FileNotFoundError:
                break
            except OSError:
                continue  # something came into it meanwhile
            break

    def delete_empty(self, path: str = "") -> None:
        """Delete a directory if nothing is in it. path: below this one; "" for this one."""
        directory = f"{self.root}/{path}" if path else self.root
        with contextlib.suppress(OSError):
            if isinstance(self.system, fs.LocalFileSystem):
                os.rmdir(directory)
            elif not self.system.get_file_info(fs.FileSelector(directory)):
                self.system.delete_dir(directory)

    # States

    def states(self) -> list[str]:
        """The names of all states."""
        with self.explained():
            selector = fs.FileSelector(f"{self.root}/{STATE}", allow_not_found=True)
            return sorted(str(file.base_name) for file in self.system.get_file_info(selector))

    def state(self, name: str) -> bytes | None:
        """The octets of a state; None if there is none, or it is too large to be one."""
        path = f"{self.root}/{STATE}/{name}"
        with self.explained():
            found = self.system.get_file_info(path)
            if found.type != fs.FileType.File or found.size > _MAX_STATE_FILE:
                return None
            with self.system.open_input_stream(path) as stream:
                return bytes(stream.read())

    def keep_state(self, name: str, octets: bytes) -> None:
        """Write a state, in place of the one of that name. On this machine, nobody else may read it."""
        path = f"{self.root}/{STATE}/{name}"
        with self.explained():
            self.system.create_dir(f"{self.root}/{STATE}", recursive=True)
            if not isinstance(self.system, fs.LocalFileSystem):
                with self.system.open_output_stream(path) as stream:
                    stream.write(octets)
                return
            begun = f"{path}.{uuid.uuid4().hex[:12]}"
            with open(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(octets)
            os.replace(begun, path)

    def forget_state(self, name: str) -> None:
        """Delete a state."""
        with self.explained():
            self.delete(f"{STATE}/{name}")
            self.delete_empty(STATE)
