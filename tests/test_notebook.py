"""What notebooks show: the numbers of the result, every text escaped, tags that close."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import nextlabel as nl
from nextlabel.notebook import interval_picture, table_html

WICKED = "<script>alert('x')</script>"


class Closing(HTMLParser):
    """Notices tags that are not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def shown(result: object) -> str:
    page = result._repr_html_()  # type: ignore[attr-defined]
    found = Closing(page)
    assert not found.open and "script" not in found.seen and "table" in found.seen
    return str(page)


def test_a_crowd() -> None:
    rows = [(f"t{k}", worker, k % 2) for k in range(8) for worker in (WICKED, "bob")]
    crowd = nl.learn_crowd(dict(zip(["task", "worker", "label"], zip(*rows, strict=True), strict=True)))
    page = shown(crowd)
    assert "&lt;script&gt;" in page and f"{crowd.by_name['bob'].accuracy.mean:.1%}" in page and page.count("<svg") == 2


def test_a_bound_and_a_study() -> None:
    problem = nl.Problem.identical(tasks=10, budget=20, prior=nl.Beta(1, 1))
    study = nl.simulate(problem, ["okg", "uniform"], replications=5)
    page = shown(study)
    for result in study.results:
        assert f"{result.per_task.mean:.6f}" in page
    assert f"{study.bound.per_task:.6f}" in page and f"{study.bound.per_task:.6f}" in shown(study.bound)
    assert escape(study.bound.assumes) in shown(study.bound)


def test_a_backtest() -> None:
    rows = [(f"t{k}", f"w{j}", (k + (j == 3)) % 2) for k in range(12) for j in range(5)]
    labels = dict(zip(["task", "worker", "label"], zip(*rows, strict=True), strict=True))
    found = nl.backtest(labels, policies=["crowd-uncertainty"], replications=2)
    assert "12 tasks replayed" in shown(found) and "crowd-uncertainty" in shown(found)


def test_a_certificate() -> None:
    with nl.Campaign.create("memory:", tasks=["a", "b"], budget=4, policy="okg") as campaign:
        certificate = campaign.certificate()
    page = shown(certificate)
    assert (
        f"{certificate.now:.1%}" in page and f"{certificate.upper:.1%}" in page and escape(certificate.assumes) in page
    )


def test_tables_escape_every_text() -> None:
    page = table_html(WICKED, [WICKED], [[WICKED]], [WICKED])
    assert page.count("&lt;script&gt;") == 4 and "<script" not in page


def test_intervals_stay_inside_their_picture() -> None:
    for picture in (interval_picture(2.0, -1.0, 3.0), interval_picture(0.5, 0.5, 0.5, 1.0, 1.0)):
        places = [float(x) for x in re.findall(r'(?:x1|x2|cx)="([\d.]+)"', picture.text)]
        assert places and all(3 <= x <= 117 for x in places)
