"""Makes the pictures in docs/assets: `amqpscope sniff` and its full screen, 80 and 160 columns wide.

    python tests/pictures/make.py          # sniff
    python tests/pictures/make.py pages    # two views of the page of `amqpscope draw`, in Chromium

It takes a minute, and needs tmux. A shop is played to `sniff -i -` as fast as it would happen: some services
that speak AMQP 1.0 to one broker and some workers that speak 0-9-1 to another. What stands on the screen is
written as SVG, with its colours. The screen is made wider while the program runs.
"""

from __future__ import annotations

import io
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from base64 import b64decode
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rich.console import Console
from rich.text import Text
from support import amqp10_encode as amqp
from support.browser import Browser
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091
from support.tcp_writer import Capture

ROOT = Path(__file__).resolve().parents[2]
PICTURES = Path(__file__).parents[2] / "docs" / "assets"
TMUX = ["tmux", "-L", "amqpscope-pictures", "-f", "/dev/null"]
STEP = 0.1
STEPS = 220


def shop() -> bytes:
    """What is said, twenty seconds of it."""
    capture = Capture()
    services = [_service(capture, number, name) for number, name in enumerate(SERVICES)]
    workers = [_worker(capture, number) for number in range(4)]
    sent = [0] * len(services)
    for step in range(STEPS):
        capture.wait(seconds=STEP)
        for number, service in enumerate(services):
            _serve(service, number, step, sent)
        for number, worker in enumerate(workers):
            _work(worker, number, step)
    return capture.pcap()


SERVICES = ("orders", "payments", "stock", "mails", "reports", "audit")


def _service(capture: Capture, number: int, name: str) -> Dialogue:
    d = Dialogue(capture=capture, client=f"10.0.3.{20 + number}:{51200 + 7 * number}", server="10.0.0.9:5672")
    idle = 4000 if name == "mails" else None
    d.opened(
        client={"container_id": f"{name}-service"}, server={"container_id": "broker-a", "idle_time_out": idle}
    )
    d.client.begin()
    d.server.begin()
    target = amqp.target(address=name)
    d.client.attach(SENDER, name=f"{name}-out", target=target)
    d.server.attach(RECEIVER, name=f"{name}-out", target=target)
    d.server.flow(handle=0, link_credit=4 if name in ("payments", "audit") else 100)
    d.client.attach(RECEIVER, handle=1, name=f"{name}-replies")
    d.server.attach(SENDER, handle=1, name=f"{name}-replies")
    d.client.flow(handle=1, link_credit=50)
    return d


def _serve(d: Dialogue, number: int, step: int, sent: list[int]) -> None:
    name = SERVICES[number]
    if name == "mails" and step > 40:
        return
    if name == "payments":
        # Its credit is used up, and it has more to send.
        if sent[number] < 4:
            d.client.transfer()
        elif sent[number] == 4:
            d.client.flow(handle=0, delivery_count=4, link_credit=0, available=37)
        sent[number] += 1
        return
    if name == "audit":
        # It sends one more than it may.
        if step % 20 == 19 and sent[number] < 5:
            d.client.transfer()
            sent[number] += 1
        return
    if step % (1 + number % 3) == 0:
        d.client.transfer()
        sent[number] += 1
        if sent[number] % 20 == 0:
            d.server.flow(handle=0, link_credit=100)
            if name != "stock":
                d.server.disposition(first=sent[number] - 20, last=sent[number] - 1)


def _worker(capture: Capture, number: int) -> Dialogue091:
    d = Dialogue091(
        capture=capture, client=f"10.0.7.{30 + number}:{41300 + 3 * number}", server="10.0.0.8:5672"
    )
    d.opened()
    d.channel(1)
    d.confirms()
    d.ask("basic.qos", prefetch_count=10)
    d.declare("jobs")
    d.consume("jobs", consumer_tag=f"worker-{number}")
    return d


def _work(d: Dialogue091, number: int, step: int) -> None:
    if number == 0:
        # It takes its jobs, and never finishes one.
        if step < 10:
            d.server.deliver(consumer_tag="worker-0")
        return
    if number == 1 and step >= 60:
        if step == 60:
            d.client.method("queue.declare", queue="archive")
        return
    if number == 2 and step > 150:
        return
    d.server.deliver(consumer_tag=f"worker-{number}")
    if number == 2 and step == 150:
        d.client.ack(99_999)  # nobody has sent it that
        d.server.close_channel(406, "PRECONDITION_FAILED - unknown delivery tag 99999", cause="basic.ack")
        return
    d.client.publish(routing_key="done")
    if step % 3 == 2:
        d.client.ack(multiple=True)
        d.server.confirm(multiple=True)


def feed() -> None:
    """The shop on standard output, each packet at its time."""
    octets = shop()
    out = sys.stdout.buffer
    out.write(octets[:24])
    began = time.monotonic()
    first = 0
    at = 24
    while at < len(octets):
        seconds, fraction, size, _ = struct.unpack_from("<IIII", octets, at)
        moment = seconds * 1_000_000 + fraction
        first = first or moment
        wait = (moment - first) / 1_000_000 - (time.monotonic() - began)
        if wait > 0:
            out.flush()
            time.sleep(wait)
        out.write(octets[at : at + 16 + size])
        at += 16 + size
    out.flush()
    time.sleep(60)


def tmux(*words: str) -> str:
    return subprocess.run([*TMUX, *words], check=True, capture_output=True, text=True).stdout


def screen(columns: int, lines: int, options: str) -> None:
    """A terminal on which it runs."""
    python = f"{sys.executable} -m amqpscope"
    command = f"{sys.executable} {__file__} feed | {python} sniff {options} -i -"
    size = ("-x", str(columns), "-y", str(lines))
    tmux(
        "new-session",
        "-d",
        *size,
        "-s",
        "shown",
        "-c",
        str(ROOT),
        f"env TERM=xterm-256color sh -c '{command}'",
    )


def picture(name: str, columns: int, title: str) -> None:
    """What stands there now, as SVG."""
    drawn = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="256")
    for line in tmux("capture-pane", "-e", "-p", "-t", "shown").splitlines():
        text = Text.from_ansi(line)
        text.truncate(columns)
        drawn.print(text, no_wrap=True, crop=True)
    svg = drawn.export_svg(title=title, unique_id=name)
    # The fonts are those of whoever looks at it.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    (PICTURES / f"{name}.svg").write_text(svg)


def pages() -> None:
    """Two views of pages, as a browser shows them."""
    with tempfile.TemporaryDirectory() as folder, Browser(Path(folder) / "browser") as browser:
        for capture, view, name, height in (
            ("rhea-transfer-before-attach.pcap", "ladder", "page-ladder", 650),
            ("amqplib-routing.pcap", "map", "page-map", 480),
        ):
            page = Path(folder) / "page.html"
            path = ROOT / "captures" / capture
            command = [sys.executable, "-m", "amqpscope", "draw", str(path), "-o", str(page)]
            subprocess.run(command, check=True, cwd=ROOT)
            size = {"width": 1200, "height": 1100, "deviceScaleFactor": 1, "mobile": False}
            browser.call("Emulation.setDeviceMetricsOverride", **size)
            browser.open(page)
            browser.click(f"#tab-{view}")
            if view == "ladder":
                browser.click("#overview button")
            browser.value("window.scrollTo({ top: 0, behavior: 'instant' })")
            top = browser.value("document.getElementById('tools').getBoundingClientRect().top")
            clip = {"x": 0, "y": top, "width": 1200, "height": height, "scale": 0.75}
            octets = b64decode(browser.call("Page.captureScreenshot", format="png", clip=clip)["data"])
            (PICTURES / f"{name}.png").write_bytes(octets)


def main() -> None:
    if shutil.which("tmux") is None:
        sys.exit("pictures are made with tmux, which is not there")
    PICTURES.mkdir(exist_ok=True)
    top = "amqpscope sniff --top"
    screen(80, 24, "--top")
    time.sleep(19)
    picture("sniff-top-80", 80, top)
    tmux("resize-window", "-t", "shown", "-x", "160", "-y", "32")
    time.sleep(1)
    picture("sniff-top-160", 160, top)
    tmux("send-keys", "-t", "shown", "/", "payments", "Enter", "Enter")
    tmux("resize-window", "-t", "shown", "-x", "120", "-y", "26")
    time.sleep(1)
    picture("sniff-top-inside", 120, top)
    tmux("kill-session", "-t", "shown")
    screen(80, 24, "--only attach,flow,queue,channel")
    time.sleep(17)
    picture("sniff-80", 80, "amqpscope sniff")
    tmux("resize-window", "-t", "shown", "-x", "160", "-y", "24")
    time.sleep(1)
    picture("sniff-160", 160, "amqpscope sniff")
    tmux("kill-session", "-t", "shown")


if __name__ == "__main__":
    if sys.argv[1:] == ["feed"]:
        feed()
    elif sys.argv[1:] == ["pages"]:
        pages()
    else:
        main()
