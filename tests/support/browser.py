"""Chromium without a window, driven over a pipe by its DevTools protocol: no port, no package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

__all__ = ["CHROMIUM", "Browser"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--remote-debugging-pipe",
)


class Browser:
    """One page. problems: what its console and its loading complained about. requests: what it asked for."""

    def __init__(self, folder: Path, width: int = 1300, height: int = 900) -> None:
        assert CHROMIUM is not None
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._rest = b""

        def connect() -> None:
            # Above the two that the browser takes, so that neither is overwritten before it is copied.
            first, second = os.dup(command_read), os.dup(answer_write)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self._process = subprocess.Popen(
            [
                CHROMIUM,
                *_OPTIONS,
                f"--user-data-dir={folder}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            preexec_fn=connect,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_read)
        os.close(answer_write)
        self._session = ""
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command, and its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            octets = os.read(self._read, 1 << 16)
            assert octets, "the browser has ended"
            self._rest += octets
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: dict[str, Any]) -> None:
        """Remember what matters of an event."""
        method, parameters = event.get("method", ""), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(parameters["exceptionDetails"])[:500])
        elif method in ("Runtime.consoleAPICalled", "Log.entryAdded"):
            self.problems.append(json.dumps(parameters)[:500])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, path: Path) -> None:
        """Load a file, and wait until it is ready."""
        self.call("Page.navigate", url=path.as_uri())
        while self.value("document.readyState + location.href") != f"complete{path.as_uri()}":
            pass

    def value(self, expression: str) -> Any:
        """What an expression of JavaScript gives."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """A key, as a person presses it."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, **(text if kind == "keyDown" else {})
            )

    def click(self, selector: str) -> None:
        """Click the middle of an element, when the mouse is there and the layout has come to rest."""
        place = None
        for _ in range(100):
            before, place = place, self._place(selector)
            if place is not None and place == before:
                break
            if place is not None:
                self._mouse("mouseMoved", place)
        else:
            raise AssertionError(f"{selector} does not come to rest, or something covers it")
        self._mouse("mousePressed", place, button="left", clickCount=1)
        self._mouse("mouseReleased", place, button="left", clickCount=1)

    def _place(self, selector: str) -> tuple[float, float] | None:
        """The middle of an element after two frames were painted, or None if something covers it."""
        found = self.value(
            "(async () => {"
            f" const one = document.querySelector({json.dumps(selector)});"
            " one.scrollIntoView({block: 'center', behavior: 'instant'});"
            " for (let at = 0; at < 2; at += 1) await new Promise((done) => requestAnimationFrame(done));"
            " const box = one.getBoundingClientRect();"
            " const x = box.x + box.width / 2, y = box.y + box.height / 2;"
            " return one.contains(document.elementFromPoint(x, y)) ? [x, y] : null; })()"
        )
        return None if found is None else (found[0], found[1])

    def _mouse(self, kind: str, place: tuple[float, float], **parameters: Any) -> None:
        """One event of the mouse."""
        self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], **parameters)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
