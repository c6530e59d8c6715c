"""Scores from a CSV file: what is read, what is refused with its row, and how they become classes of tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nextlabel as nl
from nextlabel.errors import FileFormatError, ProblemError
from nextlabel.model.tasks import LEAST, read_scores, score_classes


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "items.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


class TestRead:
    @pytest.mark.parametrize(
        "text",
        [
            "probability\n0.25\n0.5\n",
            "id,probability,note\n1,0.25,a\n2,0.5,b",
            'id, probability ,note\r\n1, 0.25 ,"a, b"\r\n2,5e-1,"c ""d"""\r\n',
            "\ufeffprobability,id\n0.25,1\n\n0.5,2\n\n",
            'probability,text\n0.25,"two\nlines"\n0.5,x\n',
            "id;probability\n1;0,25\n2;0,5\n",
            "id;Score\n1;0.25\n2;0.5\n;\n",
        ],
    )
    def test_values(self, tmp_path: Path, text: str) -> None:
        scores = read_scores(write(tmp_path, text))
        assert scores.values.tolist() == [0.25, 0.5]
        assert scores.moved == 0
        assert scores.note("x") == ""

    def test_column(self, tmp_path: Path) -> None:
        assert read_scores(write(tmp_path, "p,q\n0.1,0.2\n"), "q").values.tolist() == [0.2]

    def test_certain_scores_are_moved_and_counted(self, tmp_path: Path) -> None:
        scores = read_scores(write(tmp_path, "probability\n0\n1\n0.9999\n0.001\n0.5\n"))
        assert scores.values.tolist() == [LEAST, 1 - LEAST, 1 - LEAST, 0.001, 0.5]
        assert scores.moved == 3
        assert scores.note("x.csv").startswith("3 of 5 scores were moved to 0.001 or 0.999")

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "is empty."),
            ("\n\n", "is empty."),
            ("probability\n", "has a header and no rows."),
            ("id,p\n1,0.5\n", "no column 'probability'; it has the columns id, p."),
            ("probability,probability\n1,0.5\n", "more than one column 'probability';"),
            ("probability\n0.5\nhigh\n", "probability in row 3 of {path} is 'high', not a number from 0 to 1."),
            ("id,probability\n1,0.5\n2,\n", "probability in row 3 of {path} is '', not a number from 0 to 1."),
            ("probability\n0.5\n\n75\n", "probability in row 4 of {path} is '75', not a number from 0 to 1."),
            ("probability\n-0.1\n", "row 2 of {path} is '-0.1', not a number"),
            ("probability\nnan\n", "row 2 of {path} is 'nan', not a number"),
            ("id,probability\n1,0.5\n2\n", "row 3 of {path} has 1 cell and its header 2."),
            (b"probability\n\xff\xfe\n", "not a number from 0 to 1."),
            (b"\xef\xbb\xbfprobability\n\xff\n", "line 2 of {path} is not UTF-8."),
        ],
    )
    def test_refused(self, tmp_path: Path, text: str | bytes, words: str) -> None:
        path = write(tmp_path, text)
        with pytest.raises(FileFormatError) as caught:
            read_scores(path)
        assert words.format(path=path) in str(caught.value)
        assert caught.value.hint

    def test_many_columns_are_not_all_listed(self, tmp_path: Path) -> None:
        path = write(tmp_path, ",".join(f"x{k}" for k in range(50)) + "\n")
        with pytest.raises(FileFormatError, match=r"x11 and 38 more\."):
            read_scores(path)

    def test_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(FileFormatError, match="there is no file"):
            read_scores(tmp_path / "nowhere.csv")
        with pytest.raises(FileFormatError, match="is a folder"):
            read_scores(tmp_path)

    def test_a_field_that_is_too_large(self, tmp_path: Path) -> None:
        with pytest.raises(FileFormatError, match=r"line 2 of .* cannot be read: field larger"):
            read_scores(write(tmp_path, "probability,text\n0.5," + "x" * 200_000 + "\n"))


class TestClasses:
    @given(st.lists(st.sampled_from([0.1, 0.2, 0.25, 0.7]) | st.floats(0.001, 0.999), min_size=1), st.floats(0.1, 50))
    def test_as_from_priors(self, values: list[float], strength: float) -> None:
        classes = score_classes(values, strength=strength, threshold=0.6)
        priors = [(strength * p, strength * (1 - p)) for p in values]
        assert nl.Problem(classes, 3) == nl.Problem.from_priors(priors, 3, 0.6)

    def test_known_accuracy(self) -> None:
        reward = nl.rewards.SquaredError()
        classes = score_classes([0.2, 0.2, 0.9], accuracy=0.8, reward=reward)
        assert classes == (
            nl.TaskClass(2, nl.priors.OneCoin(0.2, 0.8), reward=reward),
            nl.TaskClass(1, nl.priors.OneCoin(0.9, 0.8), reward=reward),
        )

    def test_neither_or_both(self) -> None:
        with pytest.raises(ProblemError, match="either a strength or an accuracy"):
            score_classes([0.5])
        with pytest.raises(ProblemError, match="either a strength or an accuracy"):
            score_classes([0.5], strength=4, accuracy=0.8)
        with pytest.raises(ProblemError, match="strength -4"):
            score_classes([0.5], strength=-4)

    def test_a_hundred_thousand(self, tmp_path: Path) -> None:
        """One class a score, none lost on the way through the file."""
        values = np.random.default_rng(0).beta(2, 2, size=100_000)
        path = write(tmp_path, "id,probability\n" + "".join(f"{k},{p!r}\n" for k, p in enumerate(values.tolist())))
        problem = nl.Problem(score_classes(read_scores(path).values, strength=4), 300_000)
        assert problem.tasks == 100_000
        assert len(problem.classes) == len(np.unique(np.clip(values, LEAST, 1.0 - LEAST)))
