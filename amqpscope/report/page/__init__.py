"""The frame of a page: one file that opens from a disk, without a network, in light and dark and on paper.

Safety. A page has text of peers that nobody trusts. It stands in one block of JSON, in which no character
can end the block, and the script of the page puts it into the document as text only (`elements.js`). The
policy of the page allows the page's own script and style by their digests and nothing else: no other script
runs, and nothing is loaded.
"""

import hashlib
import json
from base64 import b64encode
from html import escape
from importlib.resources import files
from typing import Final

__all__ = ["data_text", "framed", "page_html", "resource"]

# What could end the block of JSON, or a line of it for an old parser.
_UNSAFE: Final = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


def data_text(value: object) -> str:
    """The data of a page as JSON, safe inside a page."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_UNSAFE)


def resource(package: str, name: str) -> str:
    """The text of a file that belongs to a package."""
    return files(package).joinpath(name).read_text("utf-8")


def page_html(title: str, body: str, style: str, script: str, data: str) -> str:
    """A page whose script draws its data.

    title: any text. body, style, script: the page's own, which come behind those that all pages share. data:
    see `data_text`.
    """
    shared = __name__
    whole = "".join(['"use strict";\n', resource(shared, "elements.js"), script])
    block = f'<script type="application/json" id="data">{data}</script>'
    return framed(title, f"{body}{block}\n", f"{resource(shared, 'base.css')}{style}", whole)


def framed(title: str, body: str, style: str, script: str = "") -> str:
    """A whole file: the body, with the style and the script that its policy allows.

    title: any text. body: in it, all text of peers is escaped already.
    """
    policy = f"default-src 'none'; style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    if script:
        policy += f"; script-src '{_digest(script)}'"
        body = f"{body}<script>{script}</script>\n"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def _digest(text: str) -> str:
    """What a Content-Security-Policy calls an inline script or style."""
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
