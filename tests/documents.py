"""Reads Markdown pages and runs what they show: Python blocks, commands, and the outputs printed below them.

A page is run from top to bottom in an empty folder. What is run:

- ```` ```python ```` blocks. Blocks of one page share their names, until a block begins with ``import`` again.
- ``nextlabel ...`` and ``python examples/...`` in blocks of commands (fenced as ``bash`` or not at all, or indented),
  with or without ``$`` before them. Numbers in a comment behind a command have to be in its output. Other lines of
  such a block are output.
- A ```` ```text ```` block directly below a block is its output: each line has to be among the lines printed, in this
  order; numbers have to agree to the digits shown, so a page may show fewer digits than the command; ``…`` stands for
  anything. Lines that begin with ``seconds`` are not compared.

An HTML comment before a block says what cannot be seen in it: ``<!-- run: no, REASON -->`` (it needs another program,
or takes more than a minute), ``<!-- run: file NAME -->`` (write the block to this file).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FENCE = re.compile(r"^(?P<indent> *)(?P<fence>```+) *(?P<kind>[\w-]*)")
DIRECTIVE = re.compile(r"^ *<!-- run: (?P<what>no|file)[, ]+(?P<rest>.+?) -->$")
NUMBER = re.compile(r"([-+\u2212]?(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?)")
RUNS = ("nextlabel ", "python examples/")
#: First words of commands that are not run unless a page says so: every other first word needs a directive.
PROGRAMS = ("nextlabel", "python", "python3", "make", "pip", "source", "createdb", "git", "sqlite3", ".venv/bin/pip")
OUTPUTS = ("text", "console")


def pages() -> list[Path]:
    """README, CONTRIBUTING and every page of docs."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass
class Block:
    """A block of a page: what it is (``python``, ``commands``, ``file``, ``output`` or ``other``) and what it says."""

    kind: str
    text: str
    line: int
    #: Why it is not run, the name of the file that it is, or "".
    note: str = ""
    output: str = ""
    #: Whether nothing but blank lines lies between it and the block before.
    follows: bool = False

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command with the comment behind it."""
        for line in command_lines(self.text):
            command, _, comment = line.partition("  #")
            if is_command(command):
                yield " ".join(command.removeprefix("$ ").split()), comment.strip()


@dataclass
class Page:
    """A page's blocks in order."""

    path: Path
    blocks: list[Block] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    def snippets(self) -> list[list[Block]]:
        """The Python blocks that share names; blocks that are not run are among them, for the type checker."""
        found: list[list[Block]] = []
        for block in self.blocks:
            if block.kind == "python":
                if not found or block.text.startswith(("import ", "from ")):
                    found.append([])
                found[-1].append(block)
        return found


def command_lines(text: str) -> list[str]:
    """The lines of a block, those continued with a backslash put together."""
    return text.replace("\\\n", " ").splitlines()


def is_command(line: str) -> bool:
    return line.removeprefix("$ ").split(" ")[0] in PROGRAMS


def kind_of(info: str, text: str) -> str:
    """What a block is, by the word behind its fence or by how its lines begin."""
    if info == "python":
        return "python"
    if info in ("bash", "sh", "") and any(map(is_command, command_lines(text))):
        return "commands"
    return "output" if info in OUTPUTS else "other"


def raw_blocks(lines: list[str]) -> Iterator[tuple[int, int, str, str]]:
    """Start, end, word behind the fence and text of every fenced or indented block."""
    at = 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        start = at
        if fence:
            indent = len(fence["indent"])
            at += 1
            while at < len(lines) and not lines[at].strip().startswith(fence["fence"]):
                at += 1
            yield start, at + 1, fence["kind"], "\n".join(line[indent:] for line in lines[start + 1 : at]) + "\n"
            at += 1
        elif (
            lines[at].startswith("    ")
            and lines[at].strip().removeprefix("$ ").startswith(RUNS)
            and not lines[at - 1].strip()
        ):
            while at < len(lines) and lines[at].startswith("    "):
                at += 1
            yield start, at, "", "\n".join(line[4:] for line in lines[start:at]) + "\n"
        else:
            at += 1


def read_page(path: Path) -> Page:
    """The blocks of a Markdown file, outputs attached to what printed them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    page = Page(path)
    end = 0
    for start, stop, info, text in raw_blocks(lines):
        between = [line for line in lines[end:start] if line.strip()]
        note = DIRECTIVE.match(between[-1]) if between else None
        block = Block(kind_of(info, text), text, start + 1, follows=not between)
        if block.kind == "commands":
            block.output = "\n".join(line for line in command_lines(text) if not is_command(line))
        if note and note["what"] == "file":
            block.kind, block.note = "file", note["rest"]
        elif note:
            block.note = note["rest"]
        if block.kind == "output" and block.follows and page.blocks and page.blocks[-1].kind in ("python", "commands"):
            page.blocks[-1].output += text
        else:
            page.blocks.append(block)
        end = stop
    return page


def same_number(shown: str, printed: str) -> bool:
    """Whether a printed number rounds to the shown one at the digits shown."""
    one, other = (float(text.replace(",", "").replace("\u2212", "-")) for text in (shown, printed))
    digits = re.sub(r"e.*", "", shown).partition(".")[2]
    exponent = int(shown.partition("e")[2] or 0)
    return math.isclose(one, other, rel_tol=1e-12, abs_tol=0.5000001 * 10.0 ** (exponent - len(digits)))


def same_line(shown: str, printed: str) -> bool:
    """Whether a printed line is the shown one: words alike, numbers to the digits shown, ``…`` for anything."""
    if "…" in shown:
        pattern = ".*".join(re.escape(" ".join(piece.split())) for piece in shown.split("…"))
        return re.fullmatch(pattern, " ".join(printed.split())) is not None
    one, other = (NUMBER.split(" ".join(text.split())) for text in (shown, printed))
    if len(one) != len(other):
        return False
    return all(
        same_number(a, b) if odd else " ".join(a.split()) == " ".join(b.split())
        for odd, a, b in zip([i % 2 for i in range(len(one))], one, other, strict=True)
    )


def missing(shown: str, printed: str) -> str | None:
    """The first shown line that is not printed after those before it, or None."""
    rest = iter(printed.splitlines())
    for line in shown.splitlines():
        bare = line.strip(" ─…")
        if bare and not bare.startswith("seconds") and not any(same_line(line, other) for other in rest):
            return line
    return None


def missing_number(comment: str, printed: str) -> str | None:
    """The first number of a comment that is not in the output, or None."""
    found = NUMBER.findall(printed)
    return next((n for n in NUMBER.findall(comment) if not any(same_number(n, other) for other in found)), None)
