"""Rates from recorded times: known rates are found again, and what is not exponential is told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from nextlabel.errors import InputError
from nextlabel.files.labels import LabelTable, read_labels
from nextlabel.model.rates import Rates, distances, estimate_rates, fit_exponential, grid_of
from nextlabel.reporting.figures import rates_figure, survival
from tolerances import ROUNDING

#: A Monday morning.
START = 1767603600.0


def table(assigned: np.ndarray | None, submitted: np.ndarray | None) -> LabelTable:
    given = assigned if assigned is not None else submitted
    assert given is not None
    zero = np.zeros(len(given), dtype=np.int64)
    return LabelTable(zero, None, zero, ("a",), (), ("0", "1"), None, assigned, submitted)


def crowd(n: int = 3000, gap: float = 30.0, took: float = 120.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    assigned = START + np.cumsum(rng.exponential(gap, n))
    return assigned, assigned + rng.exponential(took, n)


def estimate(assigned: np.ndarray | None, submitted: np.ndarray | None, **options: str) -> Rates:
    return estimate_rates(table(assigned, submitted), **options)  # type: ignore[arg-type]


# --- the exponential ------------------------------------------------------------------------------


def test_rate_and_interval_are_the_closed_form() -> None:
    x = np.random.default_rng(1).exponential(2.0, 50)
    fit = fit_exponential(x)
    assert fit.rate == pytest.approx(1 / x.mean(), rel=ROUNDING)
    assert (fit.lower, fit.upper) == pytest.approx(chi2.ppf([0.025, 0.975], 100) / (2 * x.sum()), rel=ROUNDING)
    assert fit.distance == pytest.approx(kstest(x, "expon", args=(0, x.mean())).statistic, rel=ROUNDING)
    assert fit.lower < fit.rate < fit.upper and fit.robust[0] < fit.rate < fit.robust[1]


def test_intervals_hold_the_truth_nineteen_times_in_twenty() -> None:
    rng = np.random.default_rng(2)
    fits = [fit_exponential(rng.exponential(5.0, 40), draws=1) for _ in range(1000)]
    held = sum(fit.lower <= 0.2 <= fit.upper for fit in fits)
    # 950 expected, standard deviation 6.9
    assert 922 <= held <= 978


@pytest.mark.parametrize("in_a_row", [True, False])
@pytest.mark.parametrize("step", [0.0, 1.0, 60.0])
def test_the_p_value_is_uniform_for_exponential_times(step: float, in_a_row: bool) -> None:
    """Whatever the clock's step; an ordinary test would take it, and the estimated rate, for a misfit."""
    rng = np.random.default_rng(3)
    found = []
    for k in range(200):
        x = rng.exponential(40.0, 100)
        if step > 0 and in_a_row:
            x = np.diff(np.floor(np.append(0.0, np.cumsum(x)) / step) * step)
        elif step > 0:
            x = np.floor(rng.random(100) + x / step) * step
        found.append(fit_exponential(x, seed=k, draws=99, in_a_row=in_a_row).p_value)
    below = np.mean(np.array(found) <= 0.1)
    # 0.1 expected, standard deviation 0.021
    assert 0.02 <= below <= 0.18
    assert np.mean(found) == pytest.approx(0.5, abs=0.08)


def test_lilliefors_critical_value() -> None:
    """Upper points of the modified D for an exponential with its rate estimated: Stephens (1974), table 1.5."""
    n = 100
    drawn = np.sort(np.random.default_rng(4).exponential(size=(20_000, n)), axis=1)
    modified = (distances(drawn) - 0.2 / n) * (np.sqrt(n) + 0.26 + 0.5 / np.sqrt(n))
    assert np.quantile(modified, [0.90, 0.95, 0.99]) == pytest.approx([0.990, 1.094, 1.308], abs=0.02)


@pytest.mark.parametrize(
    "name, how",
    [("lognormal", "less"), ("gamma", "less"), ("lognormal-wide", "more"), ("hyperexponential", "more")],
)
def test_other_distributions_are_told_apart(name: str, how: str) -> None:
    rng = np.random.default_rng(5)
    x = {
        "lognormal": lambda: rng.lognormal(4.0, 0.4, 400),
        "gamma": lambda: rng.gamma(4.0, 10.0, 400),
        "lognormal-wide": lambda: rng.lognormal(4.0, 1.4, 400),
        "hyperexponential": lambda: rng.exponential(np.where(rng.random(400) < 0.5, 5.0, 80.0)),
    }[name]()
    fit = fit_exponential(x)
    assert fit.doubtful and fit.p_value <= 0.01
    assert f"are {how} spread than exponential: cv {fit.cv:.2f}" in fit.sentence("Durations")


def test_seeds_repeat_and_many_times_are_tested_on_a_part() -> None:
    x = np.random.default_rng(6).exponential(1.0, 5000)
    one, same = fit_exponential(x, seed=3), fit_exponential(x, seed=3)
    assert one.p_value == same.p_value and one.tested == 2000 and len(one) == 5000


def test_clocks() -> None:
    assert grid_of(np.array([0.0, 120.0, 3600.0])) == 60.0
    assert grid_of(np.array([0.0, 7200.0])) == 3600.0
    assert grid_of(np.array([3.0, 5.0 + 2e-7])) == 1.0
    assert grid_of(np.array([3.0, 5.5])) == 0.0


# --- arrivals and completions ---------------------------------------------------------------------


@pytest.mark.parametrize("unit, scale", [("s", 1), ("min", 60), ("hour", 3600), ("day", 86400)])
def test_known_rates_are_found_within_their_intervals(unit: str, scale: int) -> None:
    rates = estimate(*crowd(), unit=unit)
    assert rates.durations is not None and rates.active is None
    assert rates.arrivals.lower < scale / 30 < rates.arrivals.upper
    assert rates.durations.lower < scale / 120 < rates.durations.upper
    assert not rates.arrivals.doubtful and not rates.durations.doubtful
    assert rates.arrival_rate == rates.arrivals.rate and rates.completion_rate == rates.durations.rate
    said = " ".join(rates.sentences())
    assert "Gaps between arrivals look exponential" in said and "Durations look exponential" in said


def test_durations_like_clockwork() -> None:
    assigned, _ = crowd(1000)
    submitted = assigned + np.random.default_rng(7).gamma(6.25, 20.0, 1000)
    rates = estimate(assigned, submitted, unit="min")
    assert rates.durations is not None
    assert rates.durations.cv == pytest.approx(0.4, abs=0.05)
    assert any(s.startswith("Durations are less spread than exponential: cv 0.4") for s in rates.sentences())
    # less spread than the model has them: the interval that supposes nothing is the narrower one
    assert rates.durations.robust[1] - rates.durations.robust[0] < rates.durations.upper - rates.durations.lower


def test_order_and_blank_times_do_not_matter() -> None:
    assigned, submitted = crowd(500)
    turned = np.random.default_rng(8).permutation(500)
    base, other = estimate(assigned, submitted), estimate(assigned[turned], submitted[turned])
    assert other.arrival_rate == base.arrival_rate
    assert other.completion_rate == pytest.approx(base.completion_rate, rel=ROUNDING)
    blank = np.append(assigned, np.nan), np.append(submitted, np.nan)
    assert estimate(*blank).arrival_rate == base.arrival_rate and estimate(*blank).without_time == 1


def test_without_assignments_the_submissions_stand_in() -> None:
    _, submitted = crowd()
    rates = estimate(None, submitted)
    assert rates.arrivals_from == "submitted_at" and rates.durations is None and rates.completion_rate is None
    assert rates.arrivals.lower < 1 / 30 < rates.arrivals.upper
    said = " ".join(rates.sentences())
    assert "Arrivals are counted when labels came in" in said and "completion rate cannot be told" in said


def test_nights_are_pauses() -> None:
    """Five days of eight hours: workers come every minute by day, and not at all for sixteen hours."""
    rng = np.random.default_rng(9)
    days = [START + 86400 * day + np.cumsum(rng.exponential(60.0, 600)) for day in range(5)]
    moments = np.concatenate([day[day < day[0] + 8 * 3600] for day in days])
    rates = estimate(moments, None, unit="hour")
    assert rates.pauses.count == 4 and rates.active is not None
    assert rates.pauses.share == pytest.approx(4 * 16 / (4 * 24 + 8), abs=0.02)
    assert rates.arrivals.doubtful and not rates.active.doubtful
    assert rates.active.lower < 60 < rates.active.upper
    said = " ".join(rates.sentences())
    assert "4 gaps longer than" in said and "as nights would" in said


def test_exponential_gaps_have_pauses_once_in_a_hundred_times() -> None:
    rng = np.random.default_rng(10)
    some = 0
    for _ in range(300):
        gaps = rng.exponential(1.0, 200)
        some += bool((gaps > np.median(gaps) / np.log(2) * np.log(200 / 0.01)).any())
    assert some <= 12


def test_batches_are_said() -> None:
    assigned, submitted = crowd(200)
    rates = estimate(np.repeat(assigned, 5), np.repeat(submitted, 5))
    assert rates.arrivals.doubtful and rates.arrivals.zeros == pytest.approx(0.8, abs=0.01)
    assert any("are 0: several labels of one moment" in s for s in rates.sentences())


def test_a_clock_of_whole_minutes_is_said_and_not_held_against_them() -> None:
    assigned, submitted = (np.floor(times / 60) * 60 for times in crowd(2000, 100.0, 300.0))
    rates = estimate(assigned, submitted, unit="hour")
    assert rates.durations is not None
    assert not rates.arrivals.doubtful and not rates.durations.doubtful
    assert rates.durations.lower < 3600 / 300 < rates.durations.upper
    assert any("in whole minutes, which the test takes into account" in s for s in rates.sentences())


def test_labels_from_before_they_were_asked_for() -> None:
    assigned, submitted = crowd(300)
    submitted[:3] = assigned[:3] - 5.0
    rates = estimate(assigned, submitted)
    assert rates.backwards == 3 and rates.durations is not None and len(rates.durations) == 297
    assert any("3 labels submitted before" in s for s in rates.sentences())


def test_times_that_say_nothing() -> None:
    zero = np.zeros(2, dtype=np.int64)
    with pytest.raises(InputError, match=r"0 of 2 labels have a time.*--assigned-column"):
        estimate_rates(LabelTable(zero, None, zero, ("a",), (), ("0", "1")))
    with pytest.raises(InputError, match="all labels have the same time"):
        estimate(np.full(5, START), None)
    with pytest.raises(InputError, match="unit 'week' is not known"):
        estimate(*crowd(10), unit="week")
    # no durations where all of them are 0, and no error
    assert estimate(crowd(10)[0], crowd(10)[0]).durations is None


def test_from_a_file_to_the_figure(tmp_path: Path) -> None:
    assigned, submitted = crowd(400)
    times = zip(assigned, submitted, strict=True)
    rows = "".join(f"t{i},w{i % 7},{i % 2},{a:.3f},{s:.3f}\n" for i, (a, s) in enumerate(times))
    path = tmp_path / "labels.csv"
    path.write_text("task,worker,label,assigned_at,submitted_at\n" + rows)
    rates = estimate_rates(read_labels(path), unit="min")
    assert rates.as_dict()["arrivals"]["count"] == 399 and rates.as_dict()["durations"]["exponential"]
    figure = rates_figure(rates)
    left, right = figure.axes
    assert left.get_yscale() == right.get_yscale() == "log"
    figure.savefig(tmp_path / "rates.png")
    assert (tmp_path / "rates.png").stat().st_size > 10_000


def test_figures_with_pauses_and_without_durations() -> None:
    rng = np.random.default_rng(11)
    moments = START + np.concatenate([86400.0 * k + np.cumsum(rng.exponential(60.0, 300)) for k in range(3)])
    figure = rates_figure(estimate(moments, None, unit="min"))
    assert len(figure.axes) == 1
    assert figure.axes[0].get_legend() is not None


def test_survival_curves_fall_and_are_thinned() -> None:
    x = np.random.default_rng(12).exponential(1.0, 20_000)
    fit = fit_exponential(x, draws=1)
    at, above = survival(fit)
    assert len(at) <= 1001 and (np.diff(at) >= 0).all() and (np.diff(above) < 0).all() and above[-1] == 1 / 20_000
    for t, share in zip(at[::100], above[::100], strict=True):
        assert share == pytest.approx((x > t).mean(), abs=ROUNDING)
