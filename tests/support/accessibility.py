"""What axe-core finds in a page that keeps people from using it with a screen reader or a keyboard.

Its text (`support.npm`) is to be evaluated in the page before.
"""

from __future__ import annotations

import json

from support.browser import Browser

__all__ = ["faults", "in_colours"]


def faults(browser: Browser, within: str = "html", *rules: str) -> list[str]:
    """What axe-core finds serious or critical in an element of the page. rules: only by these, if any."""
    options: dict[str, object] = {"resultTypes": ["violations"], "preload": False, "iframes": False}
    if rules:
        options["runOnly"] = list(rules)
    found = browser.value(
        f"axe.run({within!r}, {json.dumps(options)}).then((result) => result.violations.map("
        "(one) => [one.impact, `${one.id}: ${one.nodes[0].html}: ${one.nodes[0].failureSummary}`]))"
    )
    return [text for impact, text in found if impact in ("serious", "critical")]


def in_colours(browser: Browser, scheme: str) -> None:
    """Prefer `light` or `dark`."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.call("Emulation.setEmulatedMedia", features=features)
