"""A model labels a campaign: what functions may return, what they cost, failures, learners that vote out of fold."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nextlabel as nl
from nextlabel.client.annotation import (
    INTERRUPTED,
    MOST_IN_A_ROW,
    Answer,
    Learning,
    ModelCalls,
    Pace,
    buy_labels,
    checked_answer,
    default_name,
    is_learner,
    learn_along,
    load_model,
    predict_tasks,
    together,
)
from nextlabel.crowd.learner import FOLDS, folds_of
from nextlabel.errors import ConflictError, InputError, NextlabelError

LABELS = ("no", "yes")
WORDS = {"no": ("dull", "grey"), "yes": ("bright", "red")}


def truth(number: int) -> str:
    return LABELS[number % 2]


def text(number: int) -> str:
    """A text that gives its label away to whoever has learnt the words."""
    return f"{WORDS[truth(number)][number // 2 % 2]} {number}"


@pytest.fixture
def campaign() -> Iterator[nl.Campaign]:
    with created(12) as found:
        yield found


def created(tasks: int, **settings: Any) -> nl.Campaign:
    rows = [{"id": f"t{k}", "text": text(k), "email": f"{k}@example.org"} for k in range(tasks)]
    given = {"budget": 40, "labels": LABELS, "lease_seconds": 600.0, "turn_away": False, **settings}
    return nl.Campaign.create("memory:", rows, **given)


def calls(function: Callable[[Any], Any], **more: Any) -> ModelCalls:
    return ModelCalls(function, LABELS, **{"sleep": lambda seconds: None, **more})


def by_words(payload: Any) -> str:
    return "yes" if payload["text"].split()[0] in WORDS["yes"] else "no"


class TestAnswers:
    def test_labels_and_probabilities_in_every_form(self) -> None:
        assert checked_answer("yes", LABELS) == Answer("yes")
        assert checked_answer(1, ("0", "1")) == checked_answer(np.int64(1), ("0", "1")) == Answer("1")
        for given in ({"yes": 0.75, "no": 0.25}, [0.25, 0.75], np.array([0.25, 0.75])):
            assert checked_answer(given, LABELS) == Answer("yes", (0.25, 0.75))
        assert checked_answer({"yes": 1}, LABELS) == Answer("yes", (0.0, 1.0))
        assert checked_answer(None, LABELS) is None

    @pytest.mark.parametrize(
        ("returned", "sentence"),
        [
            ("maybe", "'maybe', which is not one of the campaign's labels"),
            (True, "'True', which is not one of the campaign's labels"),
            ({"maybe": 1.0}, "a probability for 'maybe'"),
            ([1.0], "1 probabilities, and the campaign has 2 labels"),
            ([0.5, 0.2], "add up to 0.7"),
            ([-0.5, 1.5], "'-0.5', which is no probability"),
            (["no", "yes"], "'no', which is no probability"),
        ],
    )
    def test_others_are_refused_in_a_sentence(self, returned: Any, sentence: str) -> None:
        with pytest.raises(InputError, match=sentence):
            checked_answer(returned, LABELS)


class TestPredicting:
    def test_every_task_once_and_a_second_run_has_nothing_to_do(self, campaign: nl.Campaign) -> None:
        seen: list[Any] = []

        def function(payload: Any) -> Any:
            seen.append(payload)
            return by_words(payload)

        outcome = predict_tasks(campaign, "m", calls(function))
        assert (outcome.labels, outcome.known, outcome.charged) == (12, 0, 0)
        assert sorted(payload["text"] for payload in seen) == sorted(text(k) for k in range(12))
        assert all("email" not in payload for payload in seen)  # what workers are not shown, models are not either
        assert {one.worker for one in campaign.labels()} == {"model:m"}
        assert campaign.status().spent == 0
        again = predict_tasks(campaign, "m", calls(function))
        assert (again.labels, again.known, len(seen)) == (0, 12, 12)

    def test_probabilities_batches_and_a_column(self, campaign: nl.Campaign) -> None:
        sizes: list[int] = []

        def function(texts: list[str]) -> list[list[float]]:
            sizes.append(len(texts))
            return [[0.05, 0.95] if one.split()[0] in WORDS["yes"] else [0.7, 0.3] for one in texts]

        predict_tasks(campaign, "m", calls(function, batches=True, column="text"), batch=5)
        assert sizes == [5, 5, 2]
        assert {(one.worker, one.label) for one in campaign.labels()} == {
            ("model:m (sure)", "yes"), ("model:m (fairly sure)", "no"),
        }  # fmt: skip
        with pytest.raises(InputError, match="no column 'email' that workers are shown"):
            predict_tasks(campaign, "n", calls(function, column="email"))

    def test_least_certain_first_and_control_questions_before_all(self, campaign: nl.Campaign) -> None:
        campaign.set_gold({"t7": "yes"})
        for worker in ("ann", "bob"):
            while lease := campaign.ask(worker):
                campaign.tell(lease, by_words(lease.payload)) if lease.task in ("t0", "t1") else campaign.release(lease)
        order: list[str] = []
        predict_tasks(campaign, "m", calls(lambda payload: order.append(payload["text"])), most=11)
        assert order[0] == text(7)
        assert not {text(0), text(1)} & set(order[:9])

    def test_cost_is_charged_and_the_function_is_not_called_for_what_cannot_be_paid(self) -> None:
        made: list[Any] = []
        with created(60, budget=10) as campaign:
            outcome = predict_tasks(campaign, "m", calls(lambda x: made.append(x) or "no"), cost=0.25)
            assert (outcome.labels, outcome.charged, len(made)) == (40, 10, 40)
            assert campaign.status().left == 0
            assert outcome.ended == "The budget does not pay for another prediction."

    def test_people_who_spend_the_budget_meanwhile(self) -> None:
        with created(60, budget=10) as campaign:

            def function(payload: Any) -> str:
                if campaign.status().spent < 8 and (lease := campaign.ask("ann")):
                    campaign.tell(lease, "no")
                return "no"

            outcome = predict_tasks(campaign, "m", calls(function), cost=0.25)
            assert (outcome.labels, outcome.charged) == (8, 2)
            assert campaign.status().spent == campaign.status().budget == 10
            assert outcome.ended == "The budget was spent by others before all predictions were paid for."

    @pytest.mark.parametrize("cost", [0.01, 0.03, 0.3, 1.0, 2.5, 0.0004])
    def test_little_is_lost_to_rounding(self, cost: float) -> None:
        exact = together(cost) * cost
        assert 0.0 <= np.ceil(exact - 1e-9) - exact <= 0.03 * exact

    def test_what_was_answered_is_saved_when_it_is_interrupted(self, campaign: nl.Campaign) -> None:
        answered: list[Any] = []

        def function(payload: Any) -> str:
            if len(answered) == 5:
                raise KeyboardInterrupt
            answered.append(payload)
            return "no"

        outcome = predict_tasks(campaign, "m", calls(function))
        assert (outcome.labels, outcome.ended) == (5, INTERRUPTED)
        assert len(list(campaign.labels())) == 5

    def test_a_label_that_is_none_of_the_campaigns_ends_it(self, campaign: nl.Campaign) -> None:
        with pytest.raises(InputError, match="'perhaps', which is not one of the campaign's labels"):
            predict_tasks(campaign, "m", calls(lambda payload: "no" if payload["text"] != text(3) else "perhaps"))
        assert len(list(campaign.labels())) == 3  # those before it

    def test_policies_that_take_workers_to_be_alike(self) -> None:
        with created(3, policy="uncertainty") as campaign, pytest.raises(ConflictError, match="count like a person"):
            predict_tasks(campaign, "m", calls(by_words))


class TestFailures:
    def test_a_call_is_tried_again_after_the_seconds_it_says(self, campaign: nl.Campaign) -> None:
        waits: list[float] = []
        failures = [ValueError("x"), ValueError("y")]
        told = ValueError("busy")
        told.retry_after = 17  # type: ignore[attr-defined]
        failures.append(told)

        def function(payload: Any) -> str:
            if failures:
                raise failures.pop(0)
            return "no"

        outcome = predict_tasks(campaign, "m", calls(function, sleep=waits.append))
        assert waits == [1.0, 2.0, 17.0]
        assert (outcome.labels, outcome.failed) == (12, 0)

    def test_a_task_is_given_up_with_one_sentence(self, campaign: nl.Campaign) -> None:
        said: list[str] = []

        def function(payload: Any) -> str:
            if payload["text"] == text(3):
                raise ValueError("no idea")
            return "no"

        outcome = predict_tasks(campaign, "m", calls(function, say=said.append, tries=2))
        assert said == ["task 't3': the function failed 2 times and was given up: ValueError: no idea."]
        assert (outcome.labels, outcome.failed, outcome.passed) == (11, 1, 0)

    def test_a_function_that_always_fails_ends_the_run(self) -> None:
        with created(30) as campaign, pytest.raises(NextlabelError, match="one after another, last with KeyError"):
            predict_tasks(campaign, "m", calls({}.__getitem__, column="text", tries=1))
        assert MOST_IN_A_ROW < 30

    def test_too_few_answers_of_a_batch(self, campaign: nl.Campaign) -> None:
        with pytest.raises(InputError, match="1 answer for a list of 4 tasks"):
            predict_tasks(campaign, "m", calls(lambda payloads: ["no"], batches=True), batch=4)


class TestPace:
    def test_tasks_are_spaced(self) -> None:
        now, waits = [0.0], []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            now[0] += seconds

        pace = Pace(30, sleep, lambda: now[0])
        for _ in range(3):
            pace.wait(1)
        pace.wait(10)
        pace.wait(1)
        assert waits == [2.0, 2.0, 2.0, 20.0]
        now[0] += 100.0
        pace.wait(1)
        assert len(waits) == 4


class TestBuying:
    def test_labels_are_bought_by_ask_and_tell(self) -> None:
        with created(12, budget=7) as campaign:
            outcome = buy_labels(campaign, "m", calls(by_words))
            assert (outcome.labels, outcome.charged) == (7, 7)
            assert outcome.ended == "All labels of this campaign have been bought."
            assert {(one.worker, one.counted) for one in campaign.labels()} == {("model:m", True)}

    def test_leases_are_given_back(self, campaign: nl.Campaign) -> None:
        held: list[int] = []

        def function(payload: Any) -> str | None:
            held.append(campaign.status().reserved)
            if len(held) == 1:
                return None
            if len(held) == 2:
                raise ValueError("no idea")
            raise KeyboardInterrupt

        outcome = buy_labels(campaign, "m", calls(function, tries=1))
        assert held == [1, 1, 1] and campaign.status().reserved == 0
        assert (outcome.labels, outcome.passed, outcome.failed, outcome.ended) == (0, 1, 1, INTERRUPTED)
        with pytest.raises(InputError, match="not one of the campaign's labels"):
            buy_labels(campaign, "m", calls(lambda payload: "perhaps"))
        assert campaign.status().reserved == 0

    def test_it_waits_while_the_campaign_is_paused(self, campaign: nl.Campaign) -> None:
        campaign.pause()
        waits: list[float] = []

        def sleep(seconds: float) -> None:
            waits.append(seconds)
            campaign.resume()

        assert buy_labels(campaign, "m", calls(by_words), most=3, sleep=sleep).labels == 3
        assert waits == [30.0]


class WordLearner:
    """Remembers by which words it was taught each label; ``fits`` has the texts of every fit."""

    fits: list[list[str]]

    def __init__(self) -> None:
        self.fits = []

    def __deepcopy__(self, memo: Any) -> WordLearner:
        copy = WordLearner()
        copy.fits = self.fits
        return copy

    def fit(self, texts: list[str], labels: np.ndarray) -> None:
        self.fits.append(list(texts))
        self.classes_ = sorted(set(labels.tolist()))
        self.known = {one.split()[0]: label for one, label in zip(texts, labels.tolist(), strict=True)}

    def predict_proba(self, texts: list[str]) -> Any:
        said = [self.known.get(one.split()[0]) for one in texts]
        even = [1.0 / len(self.classes_)] * len(self.classes_)
        return np.array([even if one is None else [0.1 + 0.8 * (one == c) for c in self.classes_] for one in said])


def label_by_people(campaign: nl.Campaign, labels: int) -> None:
    for k in range(labels):
        lease = campaign.ask(f"p{k % 3}")
        assert lease
        campaign.tell(lease, truth(int(lease.task[1:])))


def learner_of(campaign: nl.Campaign) -> dict[str, Any] | None:
    """What the last refit says of its learner."""
    return [event.data.get("learner") for event in campaign.events() if event.kind == "refitted"][-1]


class TestLearning:
    def test_what_it_says_out_of_fold_is_where_labels_start(self) -> None:
        with created(60, budget=120) as campaign:
            learner = WordLearner()
            model = Learning(campaign, learner, refit_every=30, column="text")
            label_by_people(campaign, 29)
            assert not model.step()
            label_by_people(campaign, 1)
            assert model.step() and not model.step()
            assert (model.fitted, model.due) == (30, 60)
            people = {one.task for one in campaign.labels()}
            for fitted in learner.fits:  # no fit has seen a task of the part that it then speaks of
                assert len(set(folds_of([f"t{one.split()[1]}" for one in fitted]))) < FOLDS
            assert {one for fitted in learner.fits for one in fitted} == {text(int(task[1:])) for task in people}
            label_by_people(campaign, 30)
            assert model.step()
            label_by_people(campaign, 1)
            word = learner_of(campaign)
            assert word is not None and word["bits"] > 0.3
            assert sum(one.label == truth(int(one.task[1:])) for one in campaign.results()) == 60
            assert not any(one.worker.startswith("model:") for one in campaign.labels())

    def test_models_teach_it_nothing(self) -> None:
        with created(30, budget=60) as campaign:
            wrong = calls(lambda payload: "yes" if by_words(payload) == "no" else "no")
            buy_labels(campaign, "wrong", wrong, most=10)
            predict_tasks(campaign, "wrong too", wrong)
            label_by_people(campaign, 20)
            learner = WordLearner()
            assert Learning(campaign, learner, 20, "text").step()
            people = {one.task for one in campaign.labels() if one.worker.startswith("p")}
            assert {one.split()[1] for fitted in learner.fits for one in fitted} == {task[1:] for task in people}

    def test_it_follows_a_campaign_to_its_end(self) -> None:
        said: list[str] = []
        with created(30, budget=50) as campaign:
            model = Learning(campaign, WordLearner(), 20, "text", said.append)
            outcome = learn_along(model, "words", sleep=lambda seconds: label_by_people(campaign, 10))
            assert campaign.status().state == "closed"
            assert (outcome.ended, outcome.taught) == ("The campaign is closed.", 50)
            assert said == [f"The learner was taught by {many} labels and foretold 30 tasks." for many in (20, 40, 50)]
            assert learn_along(Learning(campaign, WordLearner(), 20, "text"), "words", once=True).taught == 50

    def test_too_few_labels(self) -> None:
        said: list[str] = []
        with created(20) as campaign:
            with pytest.raises(ConflictError, match="no labels that the learner could be taught by"):
                learn_along(Learning(campaign, WordLearner(), column="text"), "words", once=True)
            for number, label in enumerate(("no", "no", "yes")):
                lease = campaign.ask(f"p{number}")
                assert lease
                campaign.tell(lease, label)
                if number:
                    assert not Learning(campaign, WordLearner(), number + 1, "text", said.append).step()
            assert said == [
                "All of the 2 labels so far are the same: the learner waits for others.",
                "3 labels are too few for a learner, which waits for more.",
            ]

    def test_predict_alone_and_learners_that_fail(self) -> None:
        class Predicts:
            def fit(self, texts: list[str], labels: np.ndarray) -> Predicts:
                self.known = {one.split()[0]: label for one, label in zip(texts, labels.tolist(), strict=True)}
                return self

            def predict(self, texts: list[str]) -> list[int]:
                return [self.known.get(one.split()[0], 0) for one in texts]

        class Others(Predicts):
            classes_ = (0, 7)

            def predict_proba(self, texts: list[str]) -> Any:
                return np.full((len(texts), 2), 0.5)

        class Fails(Predicts):
            def predict(self, texts: list[str]) -> list[int]:
                raise ValueError("no such word")

        with created(40) as campaign:
            label_by_people(campaign, 30)
            assert Learning(campaign, Predicts(), 5, "text").step()
            for learner, sentence in ((Others(), "2 answers"), (Fails(), "cannot predict: ValueError: no such word")):
                said: list[str] = []
                assert not Learning(campaign, learner, 5, "text", said.append).step()
                assert sentence in said[0]
                with pytest.raises(InputError, match=sentence):
                    Learning(campaign, learner, 5, "text").step(final=True)


class TestLoading:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", list(sys.path))
        before = set(sys.modules)
        yield tmp_path
        for name in set(sys.modules) - before:
            del sys.modules[name]

    def test_functions_objects_and_classes(self, folder: Path) -> None:
        (folder / "annotation_model.py").write_text(
            "def label(x): return 'no'\n"
            "class Learner:\n    def fit(self, x, y): pass\n    def predict(self, x): pass\n"
            "other = Learner()\nnumber = 3\nclass Picky:\n    def __init__(self, x): pass\n",
            encoding="utf-8",
        )
        assert load_model("annotation_model:label")(1) == "no"
        assert is_learner(load_model("annotation_model:Learner")) and is_learner(load_model("annotation_model:other"))
        assert default_name("package.annotation_model:label") == "annotation_model"
        for given, sentence in {
            "annotation_model": "not of the form module:function",
            "annotation_model:": "not of the form module:function",
            "annotation_none:label": "there is no module 'annotation_none'",
            "annotation_model:none": "module 'annotation_model' has no 'none'",
            "annotation_model:number": "neither a function nor an object",
            "annotation_model:Picky": "cannot be made without arguments: TypeError",
        }.items():
            with pytest.raises(InputError, match=sentence):
                load_model(given)

    def test_modules_that_cannot_be_imported(self, folder: Path) -> None:
        (folder / "annotation_broken.py").write_text("1 / 0\n", encoding="utf-8")
        (folder / "annotation_needs.py").write_text("import annotation_missing\n", encoding="utf-8")
        with pytest.raises(InputError, match="cannot be imported: ZeroDivisionError: division by zero"):
            load_model("annotation_broken:x")
        with pytest.raises(InputError, match="needs 'annotation_missing', which is not installed"):
            load_model("annotation_needs:x")
