"""What README.md and docs/ show is what the program prints, takes and has."""

import importlib.util
import io
import re
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from amqpscope.capture import link_layer
from amqpscope.cli.commands import COMMANDS, GROUPS
from amqpscope.cli.main import run
from amqpscope.cli.manual import described
from amqpscope.policy.configuration import KEYS
from amqpscope.report.forms import NAMES, declared
from amqpscope.rules.profiles import PROFILES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def script(name: str) -> ModuleType:
    """A program of docs/generate, which is no package."""
    specification = importlib.util.spec_from_file_location(name, DOCS / "generate" / f"{name}.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


examples = script("examples")
reference = script("reference")

PAGES = {page.relative_to(ROOT).as_posix(): page.read_text("utf-8") for page in examples.pages()}
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
LANGUAGES = {"console", "json", "mermaid", "py", "python", "sh", "text", "toml", "yaml"}
WRITTEN_BY_THE_SITE = {
    f"docs/reference/{name}.md"
    for name in (
        "api",
        "commands",
        "configuration",
        "diagnoses",
        "link-types",
        "profiles",
        "schemas",
        "tables",
    )
}


def blocks(*languages: str) -> list[tuple[str, str]]:
    """The fenced blocks of these languages: the page, and the text without its indent."""
    return [
        (page, re.sub(rf"^{indent}", "", text, flags=re.MULTILINE))
        for page, whole in PAGES.items()
        for indent, language, text in BLOCK.findall(whole)
        if language in languages
    ]


def headings(text: str) -> set[str]:
    """The anchors of a page, as its site and a forge make them."""
    found = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()).strip() for heading in found)
    return {re.sub(r"[\s]+", "-", heading) for heading in plain}


def test_readme_is_short() -> None:
    readme = PAGES["README.md"]
    assert readme.count("\n") <= 150
    assert len(readme.encode()) <= 8 * 1024


def test_every_block_says_its_language() -> None:
    for page, text in PAGES.items():
        assert {language for _, language, _ in BLOCK.findall(text)} <= LANGUAGES, page


def test_pages_show_what_the_commands_print() -> None:
    stale = [page for page, text in PAGES.items() if examples.renewed(text) != text]
    assert stale == [], "run: python docs/generate/examples.py"
    assert sum(text.count("\n$ amqpscope ") for _, text in blocks("console")) == 0
    assert len(blocks("console")) >= 10


def test_an_example_that_differs_is_found() -> None:
    shown = '<!-- shown: "    9"+1 -->\n```console\n$ amqpscope read captures/demo.pcap\n    9 nothing\n```'
    new = examples.renewed(shown)
    assert "    9  0.006488 0  ←S   sasl-outcome ok" in new and "nothing" not in new
    assert examples.renewed(new) == new


@pytest.mark.parametrize("page", sorted({page for page, _ in blocks("python")}))
def test_the_python_examples_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile("".join(text for its, text in blocks("python") if its == page), page, "exec"), {})
    assert "application-properties" in output.getvalue()
    assert "38 server amqp10/C-CLOSE-LAST the server sends detach after its own close" in output.getvalue()


def test_the_configurations_are_taken(tmp_path: Path) -> None:
    """Of the examples those that are a file of their own, or a table of a shared one."""
    from amqpscope.policy.configuration import read_configuration

    assert blocks("toml")
    for _, example in blocks("toml"):
        name = "pyproject.toml" if "[tool.amqpscope]" in example else "amqpscope.toml"
        (tmp_path / name).write_text(example)
        assert read_configuration(str(tmp_path / name)).values


def test_the_workflows_are_yaml() -> None:
    assert all(yaml.safe_load(example) for _, example in blocks("yaml"))


def test_every_command_and_option_they_name_exists() -> None:
    text = "\n".join(
        text.partition("\n")[0] if text.startswith("$ ") else text for _, text in blocks("sh", "console")
    )
    text = re.sub(r" *\\\n *", " ", text)
    for command in re.findall(r"^(?:.*\| |\$ )?amqpscope (\w+)", text, flags=re.MULTILINE):
        assert command in (*COMMANDS, *GROUPS), command
    helps: dict[str, str] = {}
    for command, options in re.findall(
        r"(?<!/)amqpscope ((?:rules |pipeline |config )?[a-z]+)([^#|\n]*)", text
    ):
        if command not in helps:
            output = io.StringIO()
            with redirect_stdout(output):
                assert run([*command.split(), "--help"]) == 0, command
            helps[command] = output.getvalue()
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", options):
            if not option.startswith("-v"):
                assert option in helps[command], (command, option)


def test_the_table_of_forms_has_all_of_them() -> None:
    rows = [
        line.split("|")[1] for line in PAGES["docs/reference/forms.md"].splitlines() if line.startswith("| `")
    ]
    listed = [re.findall(r"`(\w+)`(?: \(`(\.\w+)`\))?", row) for row in rows]
    assert {name: (suffix,) if suffix else () for row in listed for name, suffix in row if name in NAMES} == {
        name: declared(name).suffixes for name in NAMES
    }


@pytest.mark.parametrize("page", PAGES)
def test_no_link_is_dead(page: str) -> None:
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)\s]+)\)", BLOCK.sub("", PAGES[page])):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        path = (folder / name).resolve() if name else ROOT / page
        shown = path.relative_to(ROOT).as_posix()
        if page != "README.md" and shown.startswith("docs/rules/"):
            path = ROOT / "captures" / shown.removeprefix("docs/")
        elif shown in WRITTEN_BY_THE_SITE:
            continue
        assert path.exists(), target
        if anchor:
            assert anchor in headings(path.read_text("utf-8")), target


def test_the_reference_has_every_command_and_option() -> None:
    page = reference.commands()
    for command in described():
        assert not command.path or f" {command.path} {{ #" in page
        for option in command.options:
            assert f"`{option.shown}`" in page


def test_the_reference_has_every_key_product_and_link_type() -> None:
    assert set(re.findall(r"^\| `([a-z-]+)`", reference.configuration(), re.MULTILINE)) == set(KEYS)
    assert re.findall(r"^## (.*)$", reference.profiles(), re.MULTILINE) == [one.name for one in PROFILES]
    numbers = {str(number) for name, number in vars(link_layer).items() if name.startswith("LINK_")}
    assert set(re.findall(r"^\| (\d+) ", reference.link_types(), re.MULTILINE)) == numbers


def test_every_section_for_contributors_has_its_page() -> None:
    pages = reference.development()
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    for line in filter(None, text.splitlines()):
        assert any(line.removeprefix("#") in page for page in pages.values()), line
    assert "<svg" in pages["architecture"]


def test_the_site_has_every_page() -> None:
    listed = set(re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    written = {
        name.removeprefix("docs/") for name in {*PAGES, *WRITTEN_BY_THE_SITE} if name.startswith("docs/")
    }
    generated = {f"development/{name}.md" for name in reference.development()}
    assert listed == written | generated | {"changelog.md", "rules/README.md"}


def test_there_are_no_placeholders_left() -> None:
    assert not [page for page, text in PAGES.items() if re.search(r"@[A-Z]+@", text)]


def test_the_pattern_of_a_link_in_a_guide_has_links_in_the_demo() -> None:
    (pattern,) = re.findall(r"amqpscope read .*--link '?([^' ]+)'?", PAGES["docs/guides/read.md"])
    output = io.StringIO()
    with redirect_stdout(output):
        assert run(["read", "--link", pattern, str(ROOT / "captures" / "demo.pcap")]) == 0
    assert "transfer" in output.getvalue()


def test_the_site_draws_the_ladders_of_rule_pages() -> None:
    rules = ROOT / "captures" / "rules"
    drawings = script("drawings").Drawings(rules)
    page = (rules / "amqp10" / "C-OPEN-ONCE" / "README.md").read_text("utf-8")
    shown = drawings.replaced(page, "amqp10/C-OPEN-ONCE")
    assert shown.count("](violating.svg)") == shown.count("](clean.svg)") == 1
    assert shown.count("<summary>The same as text</summary>\n\n```text\n") == 2
    assert list(drawings.files) == ["amqp10/C-OPEN-ONCE/violating.svg", "amqp10/C-OPEN-ONCE/clean.svg"]
    assert "× error amqp10/C-OPEN-ONCE" in drawings.files["amqp10/C-OPEN-ONCE/violating.svg"]
    # A picture never shows something else than the text: of another text there is none.
    other = page.replace("sends a second open", "sends a third open")
    assert drawings.replaced(other, "amqp10/C-OPEN-ONCE").count(".svg)") == 1
