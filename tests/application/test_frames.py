"""Data frames in and out: pandas, Polars, and frames that only the interchange protocols can read."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pytest

import nextlabel as nl


@pytest.fixture
def campaign() -> Any:
    tasks = [{"id": f"t{k}", "text": f"text {k}", "stars": k} for k in range(6)]
    with nl.Campaign.create("memory:", tasks=tasks, budget=18, policy="uncertainty") as made:
        for worker, wrong in (("ann", None), ("bob", None), ("eve", "t3")):
            while lease := made.ask(worker):
                made.tell(lease, int(lease.task in {"t0", "t1", "t2"}) ^ (lease.task == wrong))
        yield made


class OnlyInterchange:
    """A frame of a library that nobody has heard of."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __dataframe__(self, *options: Any, **named: Any) -> Any:
        return self._frame.__dataframe__(*options, **named)


class OnlyArrow:
    """A frame that is handed over by Arrow's protocol."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


def test_labels_go_out_and_in(campaign: nl.Campaign) -> None:
    made = campaign.labels_frame()
    assert isinstance(made, pd.DataFrame) and list(made.columns[:3]) == ["task", "worker", "label"]
    assert len(made) == 18 and set(made["worker"]) == {"ann", "bob", "eve"}
    assert str(made["started"].dt.tz) == "UTC" and (made["submitted"] >= made["started"]).all()
    learnt = nl.learn_crowd(made)
    assert learnt.predict()[learnt.task_names.index("t3")] == 0
    polars = campaign.labels_frame("polars")
    assert isinstance(polars, pl.DataFrame) and polars["task"].to_list() == made["task"].to_list()
    plain = polars.select("task", "worker", "label")
    for other in (polars, OnlyInterchange(plain.to_arrow()), OnlyArrow(plain)):
        again = nl.learn_crowd(other)
        assert again.task_names == learnt.task_names and (again.predict_proba() == learnt.predict_proba()).all()


def test_results_have_the_columns_that_tasks_came_with(campaign: nl.Campaign) -> None:
    made = campaign.results_frame()
    assert made.set_index("task").loc["t2", ["label", "text", "stars"]].tolist() == [1, "text 2", 2]
    assert campaign.results_frame("polars")["probability"].to_list() == made["probability"].tolist()


def test_tasks_come_from_every_kind_of_frame() -> None:
    table = pl.DataFrame({"id": ["a", "b"], "text": ["x", "y"]})
    for tasks in (table, table.to_pandas(), OnlyInterchange(table.to_arrow()), OnlyArrow(table)):
        with nl.Campaign.create("memory:", tasks=tasks, budget=2) as made:
            assert [(one.task, one.payload) for one in made.results()] == [("a", {"text": "x"}), ("b", {"text": "y"})]


def test_a_campaign_without_labels_has_frames_without_rows() -> None:
    with nl.Campaign.create("memory:", budget=2) as made:
        for library in ("pandas", "polars"):
            assert made.labels_frame(library).shape == (0, 9) and made.results_frame(library).shape[0] == 0


def test_libraries_that_are_not_there(campaign: nl.Campaign, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(nl.errors.InputError, match="library 'excel' is not known"):
        campaign.labels_frame("excel")  # type: ignore[arg-type]

    def missing(*columns: Any, **named: Any) -> Any:
        raise ModuleNotFoundError("polars")

    monkeypatch.setattr("narwhals.from_dict", missing)
    with pytest.raises(nl.errors.InputError, match="needs the package polars"):
        campaign.results_frame("polars")


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_integers_come_back_as_integers(library: Any) -> None:
    """Tasks and answers of a frame of integers compare with the integers that it came from."""
    items = pd.DataFrame({"id": [7, 8, 9], "text": ["x", "y", "z"], "gold_standard": [1, 0, 1]})
    with nl.Campaign.create("memory:", tasks=items, budget=6, labels=[0, 1]) as made:
        for worker in ("ann", "bob"):
            while lease := made.ask(worker):
                made.tell(lease, int(items.set_index("id").loc[int(lease.task), "gold_standard"]))
        for frame in (made.results_frame(library), made.labels_frame(library)):
            columns = frame.to_pydict() if library == "pyarrow" else {name: list(frame[name]) for name in frame.columns}
            truth = dict(zip(items["id"], items["gold_standard"], strict=True))
            said = zip(columns["task"], columns["label"], strict=True)
            assert columns["task"] and all(truth[task] == label for task, label in said)


def test_names_that_are_no_integers_stay_as_they_are() -> None:
    with nl.Campaign.create("memory:", tasks=[{"id": "07", "text": "x"}, {"id": "8", "text": "y"}], budget=2) as made:
        assert made.results_frame()["task"].tolist() == ["07", "8"]
