"""The page of a campaign says one number for one thing, also while its certificate is an older one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nextlabel.web.dashboard.view import chart_data
from nextlabel.web.render import render


def view(**values: Any) -> dict[str, Any]:
    row = SimpleNamespace(config=SimpleNamespace(knows_workers=True, answer="choice"), tasks=9, budget=20, spent=12)
    certificate = SimpleNamespace(
        now=0.886, low=0.859, high=0.912, audit=None, arrivals=None, rests_on="Labels.", upper=None, curve=(),
        history=(), as_of_labels=12,
    )  # fmt: skip
    return {"row": row, "certificate": certificate, "summary": None, "forecast": None, "is_accuracy": True, **values}


@pytest.mark.parametrize("fresh", [True, False])
def test_the_sentence_and_the_chart_say_what_the_tile_says(fresh: bool) -> None:
    summary = SimpleNamespace(accuracy=0.906, low=0.883, high=0.929, by_labels=(), by_probability=()) if fresh else None
    shown = view(summary=summary)
    said = render("dashboard/parts/certificate.html", **shown)
    expected = ("90.6%", "88.3% to 92.9%") if fresh else ("88.6%", "85.9% to 91.2%")
    assert all(one in said for one in expected) and chart_data(shown)["now"] == (0.906 if fresh else 0.886)
