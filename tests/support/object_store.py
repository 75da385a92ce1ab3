"""A server on the loopback interface that speaks S3."""

from __future__ import annotations

import logging
import urllib.request
from pathlib import Path
from types import TracebackType

from moto.server import ThreadedMotoServer
from pyarrow import fs

__all__ = ["BUCKET", "SECRET", "ObjectStore", "options"]

BUCKET = "bucket"
SECRET = "sesame"


def options(host: str, port: int) -> str:
    """What stands behind a URL, for a server that is not Amazon's."""
    return f"?scheme=http&endpoint_override={host}%3A{port}&region=us-east-1"


class ObjectStore:
    """The server, with one bucket."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)

    def __enter__(self) -> ObjectStore:
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.options = options(host, port)
        make = urllib.request.Request(f"http://{host}:{port}/{BUCKET}", method="PUT")
        with urllib.request.urlopen(make, timeout=60):
            pass
        self.system, _ = fs.FileSystem.from_uri(self.url(BUCKET))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()

    def url(self, path: str) -> str:
        """A URL for something in the store, with all it takes to get there."""
        return f"s3://user:{SECRET}@{path}{self.options}"

    def put(self, path: str, content: bytes) -> None:
        """Store an object."""
        with self.system.open_output_stream(f"{BUCKET}/{path}") as stream:
            stream.write(content)

    def objects(self, path: str) -> set[str]:
        """What is stored below."""
        found = self.system.get_file_info(fs.FileSelector(f"{BUCKET}/{path}", recursive=True))
        return {
            file.path.removeprefix(f"{BUCKET}/{path}/") for file in found if file.type == fs.FileType.File
        }

    def fetch(self, path: str, into: Path) -> Path:
        """A local copy of what is stored below."""
        fs.copy_files(f"{BUCKET}/{path}", str(into), self.system, fs.LocalFileSystem())
        return into
