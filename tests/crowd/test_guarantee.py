"""Labels with a guarantee: the rule against exact fractions and every case of small sizes, and a promise end to end."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import nextlabel as nl
from guarantee_record import proved
from nextlabel.cli.app import run
from nextlabel.crowd.guarantee import (
    BestOrder,
    allowed_at_looks,
    allowed_errors,
    chance_of_miss,
    choose_audits,
    fewest_audits,
    first_too_many,
    recalibrated,
)

#: n, K, eps, alpha, r, c, largest chance of a miss (docs/guarantee.md; exact fractions, to four digits).
TABLE = [
    (100, 30, "0.05", "0.05", 6, None, None),
    (300, 60, "0.05", "0.05", 16, 0, 0.0254),
    (800, 100, "0.05", "0.05", 41, 1, 0.0230),
    (800, 200, "0.05", "0.05", 41, 6, 0.0285),
    (1000, 200, "0.05", "0.05", 51, 6, 0.0407),
    (1000, 300, "0.10", "0.05", 101, 31, 0.0473),
    (1923, 500, "0.05", "0.05", 97, 23, 0.0459),
    (10000, 500, "0.02", "0.05", 201, 4, 0.0214),
    (10000, 1000, "0.05", "0.05", 501, 42, 0.0379),
]


def exact_chance(n: int, K: int, r: int, c: int) -> Fraction:
    """P(H <= c), r + c draws from n items of which K are marked, in whole numbers."""
    ways = sum(comb(K, h) * comb(n - K, r + c - h) for h in range(c + 1) if h <= K and 0 <= r + c - h <= n - K)
    return Fraction(ways, comb(n, r + c))


@pytest.mark.parametrize(("n", "K", "eps", "alpha", "r", "c", "miss"), TABLE)
def test_the_table(n: int, K: int, eps: str, alpha: str, r: int, c: int | None, miss: float | None) -> None:
    assert first_too_many(n, eps) == r
    assert allowed_errors(n, K, r, alpha) == c
    if c is not None:
        assert miss is not None
        assert chance_of_miss(n, K, r, c) == pytest.approx(miss, abs=5e-5)
        assert exact_chance(n, K, r, c) <= Fraction(alpha) < exact_chance(n, K, r, c + 1)


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 300), st.data())
def test_allowances_and_audits_are_the_exact_ones(n: int, data: st.DataObject) -> None:
    K, r = data.draw(st.integers(1, n)), data.draw(st.integers(1, n))
    alpha = data.draw(st.sampled_from([Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(1, 2)]))
    c = allowed_errors(n, K, r, alpha)
    if n - K < r:
        assert c == K
        return
    assert c is None or exact_chance(n, K, r, c) <= alpha
    more = 0 if c is None else c + 1
    assert more > K or r + more > n or exact_chance(n, K, r, more) > alpha
    if c is not None:
        least = fewest_audits(n, c, r, alpha)
        assert least <= K and exact_chance(n, least, r, c) <= alpha
        assert least == 0 or exact_chance(n, least - 1, r, c) > alpha


def walk(errors: tuple[bool, ...], drawn: frozenset[int], c: int, r: int) -> int:
    """Unaudited errors that stay."""
    return sum(errors[k] for k in kept_items(errors, drawn, c, r))


def kept_items(errors: tuple[bool, ...], drawn: frozenset[int], c: int, r: int) -> list[int]:
    """Unaudited items that stay, numbered from the most certain one: the rule as it is written, item by item."""
    n = len(errors)
    cut, met = n, 0
    for k in range(n):
        met += k in drawn and errors[k]
        if k in drawn and errors[k] and met == c + 1:
            cut = k
            break
    unchecked = [k for k in range(n) if k not in drawn]
    kept = [k for k in unchecked if k < cut]
    return unchecked[: max(len(kept), min(r - 1, len(unchecked)))]


@njit
def every_case(n: int, K: int, most: int, counts: np.ndarray) -> None:
    """counts[c, r] = the largest number of draws, over all patterns of errors, after which r errors or more stay.

    Bit k of a pattern or a draw is item k, the most certain one first. At most r - 1 items are kept by the last
    sentence of the rule, which cannot be r errors, so that the items before the cut decide.
    """
    for errors in range(1 << n):
        stay = np.zeros((most + 1, n + 2), np.int64)
        for drawn in range(1 << n):
            size = 0
            for k in range(n):
                size += drawn >> k & 1
            if size != K:
                continue
            met = left = 0
            for k in range(n):
                if errors >> k & 1:
                    if drawn >> k & 1:
                        if met <= most:
                            stay[met, left] += 1  # the walk stops here if met errors are allowed
                        met += 1
                    else:
                        left += 1
            for c in range(met, most + 1):
                stay[c, left] += 1
        for c in range(most + 1):
            many = 0
            for r in range(n, 0, -1):
                many += stay[c, r]
                counts[c, r] = max(counts[c, r], many)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 12])
def test_guarantee_theorem_1_every_pattern_and_every_draw(n: int) -> None:
    """The chance of too many errors is never above P(H <= c), and some pattern of errors reaches it."""
    for K in range(1, n):
        counts = np.zeros((n, n + 1), dtype=np.int64)
        every_case(n, K, n - 1, counts)
        for r in range(1, n - K + 1):
            for c in range(min(K, n - r) + 1):
                assert Fraction(int(counts[c, r]), comb(n, K)) == exact_chance(n, K, r, c)


def test_guarantee_theorem_2_an_order_that_learns_from_what_was_taken_away() -> None:
    """Every error pattern of six items under every adaptive order of a family that looks at the answers removed."""
    n = 6
    orders = list(permutations(range(n)))[::97]
    for K, r in ((2, 2), (3, 2), (2, 3)):
        draws = [frozenset(draw) for draw in combinations(range(n), K)]
        for c in range(min(K, n - r) + 1):
            for first, second in product(orders, orders):
                for errors in product([False, True], repeat=n):
                    sequence = adaptive_sequence(errors, first, second)  # least certain first
                    certain_first = tuple(errors[k] for k in reversed(sequence))
                    at = {k: n - 1 - place for place, k in enumerate(sequence)}
                    missed = sum(walk(certain_first, frozenset(at[k] for k in d), c, r) >= r for d in draws)
                    assert Fraction(missed, len(draws)) <= exact_chance(n, K, r, c)


def adaptive_sequence(errors: tuple[bool, ...], first: tuple[int, ...], second: tuple[int, ...]) -> list[int]:
    """Take items away by one order until an error shows up, by the other from then on."""
    out: list[int] = []
    while len(out) < len(errors):
        order = second if any(errors[k] for k in out) else first
        out.append(next(k for k in order if k not in out))
    return out


def test_guarantee_theorem_3_looks_share_alpha() -> None:
    """Every draw order of seven items and two looks: the chance that any look misses is at most alpha."""
    n, r, alpha = 7, 2, Fraction(1, 2)
    audits = (2, 4)
    c = allowed_at_looks(n, audits, r, alpha)
    for errors in product([False, True], repeat=n):
        missed = 0
        for order in permutations(range(n)):
            missed += any(
                allowed is not None and walk(errors, frozenset(order[:K]), allowed, r) >= r
                for K, allowed in zip(audits, c, strict=True)
            )
        assert Fraction(missed, 5040) <= alpha
    assert allowed_at_looks(1000, (80, 150, 250), 51, 0.05) == (0, 3, 8)
    assert allowed_at_looks(1000, (200,), 51, 0.05) == (allowed_errors(1000, 200, 51, 0.05),)


def test_guarantee_theorem_4_answers_that_taught_leave_the_draw() -> None:
    """Every pattern of eight labels; two items, chosen by the truth itself, are known before the draw."""
    n, K, alpha = 8, 3, Fraction(1, 2)
    for r in (2, 3):
        c = allowed_errors(n - 2, K, r, alpha)
        assert c is not None
        for errors in product([False, True], repeat=n):
            wrong_first = sorted(range(n), key=lambda k: (not errors[k], k))
            for known in (wrong_first[:2], wrong_first[-2:]):
                rest = tuple(errors[k] for k in range(n) if k not in known)
                draws = [frozenset(draw) for draw in combinations(range(n - 2), K)]
                missed = sum(walk(rest, d, c, r) >= r for d in draws)
                assert Fraction(missed, len(draws)) <= exact_chance(n - 2, K, r, c) <= alpha


def test_guarantee_theorem_5_an_expert_who_errs() -> None:
    """Every pattern of seven labels, every set of items on which the expert is wrong: r - 1 = eps n - q n."""
    n, K, at_most, slips = 7, 3, 2, 1
    r = first_too_many(n, Fraction(at_most, n), Fraction(slips, n))
    assert r == at_most - slips + 1
    c = allowed_errors(n, K, r, Fraction(1, 2))
    assert c is not None
    for errors, slip in product(product([False, True], repeat=n), range(n)):
        opinion = tuple(wrong != (k == slip) for k, wrong in enumerate(errors))  # the label, by the expert's word
        missed = 0
        for drawn in map(frozenset, combinations(range(n), K)):
            kept = kept_items(opinion, drawn, c, r)
            wrong = sum(errors[k] for k in kept) + (slip not in kept)  # two answers: a slip is a wrong label
            missed += wrong > at_most
        assert Fraction(missed, comb(n, K)) <= exact_chance(n, K, r, c)


def test_guarantee_theorem_6_the_items_of_one_label() -> None:
    """The rule on the four items that said yes, whatever the other four are: theorem 1 with n = 4."""
    K, r, c = 2, 2, 0
    for errors in product([False, True], repeat=4):
        missed = sum(walk(errors, frozenset(d), c, r) >= r for d in combinations(range(4), K))
        assert Fraction(missed, comb(4, K)) <= exact_chance(4, K, r, c)


def test_guarantee_theorem_7_several_statements_share_alpha() -> None:
    """Two labels with a statement each: the chance that either is wrong is at most the sum, whatever the draws."""
    K, r, c = 2, 2, 0
    draws = [frozenset(d) for d in combinations(range(5), K)]
    for errors in product([False, True], repeat=5):
        missed = {d for d in draws if walk(errors, d, c, r) >= r}
        either = sum(a in missed or b in missed for a in draws for b in draws)
        assert Fraction(either, len(draws) ** 2) <= 2 * exact_chance(5, K, r, c)


def test_smallest_audits_for_an_allowance() -> None:
    assert [fewest_audits(n, round(first_too_many(n, "0.05") ** 0.7 / 4), first_too_many(n, "0.05"), "0.05")
            for n in (300, 1000, 10_000)] == [92, 157, 528]  # fmt: skip
    assert [fewest_audits(n, round(first_too_many(n, "0.1") ** 0.7 / 4), first_too_many(n, "0.1"), "0.05")
            for n in (300, 1000, 10_000)] == [62, 105, 398]  # fmt: skip


def test_doubtful_labels_get_a_larger_audit() -> None:
    sure, doubtful = np.full(2000, 0.99), np.full(2000, 0.75)
    assert choose_audits(sure, 101, "0.05") < choose_audits(doubtful, 101, "0.05")


def test_an_expert_who_errs() -> None:
    """r - 1 = floor(eps n) - floor(q n)."""
    assert first_too_many(1000, "0.05", "0.01") == 41
    assert first_too_many(300, 0.07) == 22  # 0.07 * 300 is 21 in exact arithmetic


# -- a promise end to end ---------------------------------------------------------------------------------------------


def results(n: int, wrong: float, seed: int) -> tuple[dict[str, list[object]], dict[str, str]]:
    """Labels of which a share is wrong, more of them where the probability is low; and the truth."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.5, 1.0, n)
    label = rng.integers(0, 2, n)
    bad = rng.random(n) < wrong * 2 * (1.5 - p)
    truth = np.where(bad, 1 - label, label)
    words = np.array(["no", "yes"])
    table: dict[str, list[object]] = {
        "task": [f"t{k}" for k in range(n)], "label": list(words[label]), "probability": list(p)
    }  # fmt: skip
    return table, {f"t{k}": str(words[truth[k]]) for k in range(n)}


def answered(promise: nl.results.Guarantee, truth: dict[str, str]) -> nl.results.Guarantee:
    while promise.to_answer:
        promise.tell({task: truth[task] for task in promise.to_answer})
    return promise


@pytest.mark.parametrize("wrong", [0.02, 0.1, 0.3])
def test_misses_are_rare(wrong: float) -> None:
    """Of 200 promises, no more miss than 10% with a chance of a thousandth (31 of 200)."""
    table, truth = results(150, wrong, 3)
    missed = 0
    for seed in range(200):
        promise = answered(nl.guarantee(table, at_most_wrong=0.05, sure=0.9, seed=seed), truth)
        assert promise.certified
        final = dict(zip(promise.tasks, promise.final_labels(), strict=True))
        missed += sum(final[task] != truth[task] for task in truth) > 7
    assert missed <= 31


def test_the_order_never_sees_which_items_were_drawn() -> None:
    """Two draws take labels away in the same sequence, as far as both go."""
    table, truth = results(400, 0.25, 5)
    sequences = []
    for seed in (1, 2):
        promise = answered(nl.guarantee(table, at_most_wrong=0.02, sure=0.95, audits=200, seed=seed), truth)
        sequences.append([task for batch in promise.batches for task in batch])
    a, b = sequences
    shared = min(len(a), len(b)) // 10 * 10 - 10  # the last batch ends where the walk stops
    assert shared > 50 and a[:shared] == b[:shared]


def test_answers_teach_the_order_only_when_they_help() -> None:
    rng = np.random.default_rng(0)
    p, label = rng.uniform(0.6, 0.99, 600), rng.integers(0, 2, 600)
    right = rng.random(600) < np.where(label == 1, p, 0.5)  # probabilities of one label say nothing
    truth = np.where(right, label, 1 - label)
    order = BestOrder(p, label, [recalibrated(p, label, 2)])
    told = np.where(np.arange(600) < 300, truth, -1)
    order.certainty(np.where(np.arange(600) < 150, truth, -1))
    certainty = order.certainty(told)
    assert certainty[label == 0].mean() < 0.6 < certainty[label == 1].mean()


def test_known_truths_teach_and_are_not_drawn() -> None:
    table, truth = results(300, 0.1, 9)
    known = {f"t{k}": truth[f"t{k}"] for k in range(40)}
    promise = nl.guarantee(table, known=known, seed=1)
    assert promise.terms.items == 300 and promise.terms.too_many == 16  # r is that of all items
    assert not set(known) & {promise.tasks[k] for k in promise.permutation}
    final = dict(zip(promise.tasks, answered(promise, truth).final_labels(), strict=True))
    assert all(final[task] == said for task, said in known.items())


@pytest.mark.parametrize("known", [0, 150])
def test_what_is_asked_next_is_the_same_after_the_record_was_read_again(tmp_path: Path, known: int) -> None:
    """Each command reads the record; known truths and batches teach the order one after the other, then as before."""
    table, truth = results(600, 0.25, 3)
    told = {f"t{k}": truth[f"t{k}"] for k in range(known)}
    promise = nl.guarantee(table, at_most_wrong=0.02, known=told, audits=130, seed=1)
    while promise.to_answer:
        promise.save(tmp_path / "record.json")
        assert nl.results.Guarantee.load(tmp_path / "record.json").to_answer == promise.to_answer
        promise.tell({task: truth[task] for task in promise.to_answer})
    assert len(promise.batches) > 5


def test_a_promise_about_one_answer() -> None:
    table, truth = results(600, 0.1, 9)
    promise = answered(nl.guarantee(table, of="yes", seed=1), truth)
    assert promise.terms.items == table["label"].count("yes")
    assert all(promise.labels[promise.tasks.index(task)] == "yes" for task in promise.answers)
    assert "that said 'yes'" in promise.sentences()[0]


def test_looks_along_one_permutation() -> None:
    table, truth = results(1000, 0.08, 2)
    promise = nl.guarantee(table, audits=[80, 150, 250], seed=4)
    assert promise.terms.allowed == (0, 3, 8)
    first = list(promise.to_answer)
    promise.tell({task: truth[task] for task in first})
    promise.next_look()
    assert len(promise.to_answer) == 70 and promise.drawn[:80] == first
    assert answered(promise, truth).certified


def test_workers_labels_order_the_items(data: Path) -> None:
    rte = data / "rte"
    table = nl.read_labels(rte / "labels.csv")
    crowd = nl.learn_crowd(table)
    rows = {
        "task": list(crowd.task_names), "label": list(crowd.predict()),
        "probability": list(crowd.fit.beliefs.max(axis=1)),
    }  # fmt: skip
    gold = dict(line.split(",") for line in (rte / "gold.csv").read_text().split()[1:])
    promise = answered(nl.guarantee(rows, labels=table, seed=0), gold)
    assert promise.certified and len(promise.answers) < 0.45 * 800


class TestCommand:
    """``nextlabel guarantee`` from files."""

    @pytest.fixture
    def files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        monkeypatch.chdir(tmp_path)
        table, truth = results(300, 0.1, 7)
        write("results.csv", ["task", "label", "probability"], zip(*table.values(), strict=True))
        return truth

    def test_to_the_certificate_and_its_check(
        self, files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["guarantee", "results.csv", "--at-most-wrong", "0.05", "--sure", "0.95", "--draw", "draw.csv"]) == 0
        told: dict[str, str] = {}
        draw, state = "draw.csv", {"to_answer": 1}
        while state["to_answer"]:
            told |= {task: files[task] for task in Path(draw).read_text().split()[1:]}
            write("answers.csv", ["task", "label"], told.items())
            capsys.readouterr()
            draw = "rest.csv"
            words = ["guarantee", "results.csv", "--answers", "answers.csv", "--draw", draw, "--save", "final.csv"]
            assert run([*words, "--report", "page.html", "--json"]) == 0
            state = json.loads(capsys.readouterr().out)
        assert state["certified"] and state["too_many"] == 16 and state["audits"] + 0 <= state["expert_answers"]
        assert "95% sure" in state["sentences"][0] and "no assumption" in Path("page.html").read_text()
        final = [line.split(",") for line in Path("final.csv").read_text().split()[1:]]
        assert {row[0]: row[1] for row in final if row[3] == "expert"} == told
        assert proved(Path("results.guarantee.json"), tmp_path).startswith("Checked: At most 5.0%")
        record = json.loads(Path("results.guarantee.json").read_text())
        audited = next(iter(record["answers"]))
        record["answers"].pop(audited)
        Path("results.guarantee.json").write_text(json.dumps(record))
        assert "an item that was drawn or taken away has no answer" in proved(record, tmp_path)

    def test_label_studio_tasks_with_what_the_expert_reads(self, files: dict[str, str]) -> None:
        write("items.csv", ["task", "text", "label"], [(task, f"text of {task}", "no") for task in files])
        assert run(["guarantee", "results.csv", "--draw", "draw.json", "--items", "items.csv"]) == 0
        tasks = json.loads(Path("draw.json").read_text())
        assert tasks[0]["data"]["text"] == f"text of {tasks[0]['data']['task']}" and "label" not in tasks[0]["data"]

    def test_a_look_before_the_draw_freezes_nothing(self, files: dict[str, str]) -> None:
        assert run(["guarantee", "results.csv"]) == 0
        assert not Path("results.guarantee.json").exists()

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (["--audits", "20", "--draw", "d.csv"], "20 audits are too few"),
            (["--audits", "500", "--draw", "d.csv"], "300 items can be drawn"),
            (["--at-most-wrong", "0", "--draw", "d.csv"], "at_most_wrong is 0"),
            (["--at-most-wrong", "1", "--draw", "d.csv"], "at_most_wrong is 1"),
            (["--sure", "1", "--draw", "d.csv"], "sure is 1"),
            (["--at-most-wrong", "1e-300", "--draw", "d.csv"], "at_most_wrong is 1e-300"),
            (["--expert-wrong", "0.1", "--draw", "d.csv"], "an expert who is wrong on 0.1"),
            (["--of", "maybe", "--draw", "d.csv"], "no item has the label 'maybe'"),
            (["--answers", "results.csv"], "there is no results.guarantee.json"),
        ],
    )
    def test_bad_input_before_the_draw(
        self, files: dict[str, str], words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["guarantee", "results.csv", *words]) == 2
        said = capsys.readouterr().err
        assert sentence in said and said.count("error:") == 1
        assert not Path("d.csv").exists() and not Path("results.guarantee.json").exists()

    def test_bad_input_after_the_draw(self, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["guarantee", "results.csv", "--audits", "100", "--draw", "draw.csv"]) == 0
        before = Path("results.guarantee.json").read_text()
        drawn = Path("draw.csv").read_text().split()[1:]
        other = next(task for task in files if task not in drawn)
        right = {task: files[task] for task in drawn}

        def refused(rows: object, sentence: str, *words: str) -> None:
            write("answers.csv", ["task", "label"], rows)
            capsys.readouterr()
            assert run(["guarantee", "results.csv", "--answers", "answers.csv", *words]) == 2
            assert sentence in capsys.readouterr().err
            assert Path("results.guarantee.json").read_text() == before

        refused([*right.items(), (other, "yes")], "nobody asked for")
        refused([*right.items(), (drawn[0], "no" if right[drawn[0]] == "yes" else "yes")], "says two things")
        refused([(task, "blue") for task in drawn], "no answer is one of the labels")
        refused(right.items(), "is not what the items were drawn for", "--at-most-wrong", "0.1")
        refused(right.items(), "is not what the items were drawn for", "--audits", "120")
        assert run(["guarantee", "results.csv", "--draw", "again.csv"]) == 2
        assert "a second draw would void the statement" in capsys.readouterr().err and not Path("again.csv").exists()
        labels = Path("results.csv").read_text()
        Path("results.csv").write_text(labels.replace("no", "yes", 1))
        refused(right.items(), "was changed after the draw")
        Path("results.csv").write_text(labels)
        half = dict(list(right.items())[:50])
        write("answers.csv", ["task", "label"], half.items())
        assert run(["guarantee", "results.csv", "--answers", "answers.csv", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["to_answer"] == 50

    def test_a_seed_marks_the_record(self, files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        for seed in ("1", "2"):
            capsys.readouterr()
            assert run(["guarantee", "results.csv", "--seed", seed, "--draw", "draw.csv", "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["for_tests"]
        assert json.loads(Path("results.guarantee.json").read_text())["seed"] == 2


def write(path: str, header: list[str], rows: object) -> None:
    lines = [",".join(header), *(",".join(map(str, row)) for row in rows)]  # type: ignore[attr-defined]
    Path(path).write_text("\n".join(lines) + "\n")
