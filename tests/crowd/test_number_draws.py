"""How many numbers are right by the model's own word, against drawn crowds whose truths are known."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.number_crowds import drawn_crowd, own_word

import nextlabel as nl
from nextlabel.crowd.answers import Number
from nextlabel.crowd.number_draws import draw_numbers, expected_numbers, part_of
from nextlabel.crowd.numbers import NumberLabels, fit_numbers

KIND = Number(0.0, 100.0)


@pytest.mark.parametrize("sds", [(3.0, 8.0, 20.0), (5.0,)])
def test_the_share_right_and_its_interval(sds: tuple[float, ...]) -> None:
    found = np.array([own_word(seed, 400, sds) for seed in range(12)])
    said, low, high, right = found.T
    assert abs((said - right).mean()) < 0.06
    assert ((low <= right) & (right <= high)).mean() >= 0.7
    assert (high - low).mean() < 0.3


def test_precisions_are_drawn_around_those_of_the_crowd() -> None:
    truth, data, sd = drawn_crowd(3, 800, (3.0, 8.0, 20.0))
    fit = fit_numbers(data, KIND)
    drawn = list(draw_numbers(fit, part_of(fit, data, np.ones(data.tasks, dtype=np.bool_)), 40, newcomers=5))
    own = np.median([one.scale / np.sqrt(one.own) for one in drawn], axis=0)
    assert np.abs(np.log(own / sd)).max() < 0.6
    assert all(one.new.shape == (5,) and (one.total > 0).all() for one in drawn)
    assert np.abs(np.mean([one.mean for one in drawn], axis=0) - truth).mean() < 4.0


def test_the_same_labels_say_the_same_and_known_items_are_not_asked() -> None:
    _, data, _ = drawn_crowd(4, 300, (5.0,))
    fit, asked = fit_numbers(data, KIND), np.arange(data.tasks) < 60
    first, again = (expected_numbers(KIND, fit, data, asked, fit.estimate) for _ in range(2))
    assert first == again and first.low <= first.mean <= first.high
    assert np.isnan(expected_numbers(KIND, fit, data, ~(asked | True), fit.estimate).mean)


def test_workers_who_came_after_the_fit() -> None:
    _, data, _ = drawn_crowd(5, 300, (5.0,))
    early = data.worker < 6
    fit = fit_numbers(NumberLabels(data.task[early], data.worker[early], data.number[early], data.tasks, 6), KIND)
    found = expected_numbers(KIND, fit, data, np.ones(data.tasks, dtype=np.bool_), fit.estimate)
    assert 0.0 < found.mean < 1.0


def test_a_live_campaign_has_a_bound_after_three_labels_for_every_item() -> None:
    rng = np.random.default_rng(1)
    truth, sd = rng.normal(50, 15, 30).clip(0, 100), np.array([4.0, 6.0, 12.0, 5.0, 9.0, 7.0])
    tasks = [{"id": str(k), "text": "x"} for k in range(30)]
    with nl.Campaign.create("memory:", tasks, budget=150, answer="number", range="0..100") as campaign:
        for n in range(150):
            if n == 60:
                early = campaign.certificate(wait=True)
                assert early.upper is None and early.withheld == "It is known after three labels for every item."
            if n == 100:
                late = campaign.certificate(wait=True)
            worker = int(rng.integers(6))
            while not (lease := campaign.ask(f"w{worker}")):
                worker = (worker + 1) % 6
            number = float(np.clip(truth[int(lease.task)] + sd[worker] * rng.standard_normal(), 0, 100))
            campaign.tell(lease, round(number, 2))
        assert late.upper is not None and late.forecast is not None
        assert late.now < late.forecast <= late.upper <= 1.0 and "normal error" in late.assumes
        right = np.mean([abs(float(one.label) - truth[int(one.task)]) <= 5.0 for one in campaign.results()])
        assert right <= late.upper + 0.1
        assert campaign.verify().right


def test_of_many_items_a_part_is_drawn_and_all_labels_count_for_their_workers() -> None:
    """Six labels of each worker are of the part, 150 of the others: without them half of the share right is lost."""
    rng, items, workers = np.random.default_rng(7), 100_000, 2000
    task = np.repeat(np.arange(items), 3)
    worker, truth = rng.integers(0, workers, len(task)), rng.normal(50, 15, items)
    said = truth[task] + rng.choice([4.0, 8.0], workers)[worker] * rng.standard_normal(len(task))
    data = NumberLabels(task, worker, np.clip(said, 0, 100), items, workers)
    fit = fit_numbers(data, KIND)
    found = expected_numbers(KIND, fit, data, np.ones(items, dtype=np.bool_), fit.estimate)
    assert abs(found.mean - (np.abs(fit.estimate - truth) <= 5.0).mean()) < 0.01
