"""How figures look: each policy has one colour and marker in all of them, told apart without colour vision.

The colours are those of Okabe and Ito; policies that share one differ in marker and line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from nextlabel.wording import needs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, GREY, PALE = "#1f2933", "#9aa5b1", "#e4e7eb"
BLUE, RED, GREEN, ORANGE, SKY, PINK, BROWN = (
    "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#8C6D31",
)  # fmt: skip

#: Colour, marker and line of each policy, in the order of legends.
LOOKS: dict[str, tuple[str, str, str]] = {
    "optimum": (INK, "*", "-"),
    "crowd": (RED, "*", "-"),
    "crowd-uncertainty": (GREEN, "v", "--"),
    "auto": (INK, "o", "-"),
    "index": (BLUE, "o", "-"),
    "lagrangian": (GREEN, "D", "-"),
    "resolve": (GREEN, "P", "--"),
    "okg": (RED, "s", "-"),
    "okg-idle": (RED, "v", "--"),
    "okg-pending": (ORANGE, "^", "-"),
    "thompson": (PINK, "p", "-"),
    "ucb1-tuned": (PINK, "h", "--"),
    "ucb1-tuned-literal": (PINK, "x", ":"),
    "kg": (SKY, "<", "--"),
    "kg-random": (SKY, ">", "-"),
    "uncertainty": (BROWN, "d", "-"),
    "apt": (BROWN, "X", "--"),
    "lsa": (BROWN, "+", ":"),
    "overlap": (SKY, "P", ":"),
    "uniform": (INK, "s", "--"),
    "random": (GREY, "o", ":"),
}
RC: dict[str, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "axes.grid": True,
    "grid.color": PALE,
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "legend.frameon": False,
}


def look(policy: str) -> dict[str, Any]:
    """Colour, marker and line of a policy as arguments of ``plot`` and ``errorbar``."""
    colour, marker, line = LOOKS.get(policy, (GREY, ".", ":"))
    own = policy in ("crowd", "auto", "index", "lagrangian")
    return {"color": colour, "marker": marker, "linestyle": line, "zorder": 5 if own else 3, "label": policy}


def in_order(policies: Iterable[str]) -> list[str]:
    """Policies in the order of legends."""
    ranks = {name: rank for rank, name in enumerate(LOOKS)}
    return sorted(set(policies), key=lambda name: (ranks.get(name, len(ranks)), name))


def needs_figures() -> None:
    """Refuse early where no figure can be drawn."""
    with needs("a figure", "matplotlib", "'nextlabel[figures]'"):
        import matplotlib  # noqa: F401


@contextmanager
def drawing(*grid: int, **options: Any) -> Iterator[tuple[Figure, Any]]:
    """A figure and its axes (``matplotlib.pyplot.subplots``) in this style, without a display.

    It is laid out when the block ends, and detached from pyplot, so that it is freed with its last user.
    """
    needs_figures()
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style: Any = RC
    with matplotlib.rc_context(style):
        figure, axes = plt.subplots(*grid, layout="constrained", **options)
        yield figure, axes
        figure.canvas.draw()
        plt.close(figure)


def panel(draw: Callable[..., None], *args: Any) -> Figure:
    """The panel that ``draw(axes, *args)`` draws, on its own, wide enough to be read on a phone."""
    with drawing(figsize=(5.4, 4.4)) as (figure, axes):
        draw(axes, *args)
    return figure
