"""What a user's function may return for a task, checked against the campaign's labels.

============================== ==================================================================================
returned                       meaning
============================== ==================================================================================
``"yes"`` or ``1``             a label by its name
``{"no": 0.2, "yes": 0.8}``    a probability for each label; a label that is left out has 0
``[0.2, 0.8]``                 the same in the order of the campaign's labels; NumPy arrays too
``None``                       no answer: the task is left to others
============================== ==================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nextlabel.errors import InputError
from nextlabel.files.predictions import SLACK
from nextlabel.prose import listed

#: Before a label's name in a prediction's column of probabilities (``files.predictions``).
COLUMN = "p_"


class Answer(NamedTuple):
    """A label, and the probabilities of all labels where the function gave them."""

    label: str
    probabilities: tuple[float, ...] | None = None

    def row(self, task: str, labels: Sequence[str]) -> dict[str, Any]:
        """The prediction as ``add_predictions`` reads it."""
        if self.probabilities is None:
            return {"task": task, "label": self.label}
        named = {COLUMN + label: p for label, p in zip(labels, self.probabilities, strict=True)}
        return {"task": task, **named}


def checked_answer(returned: Any, labels: Sequence[str]) -> Answer | None:
    """What was returned as an answer; None for none, an InputError for what is neither."""
    if returned is None:
        return None
    if hasattr(returned, "tolist"):  # NumPy's arrays and numbers
        returned = returned.tolist()
    if isinstance(returned, Mapping):
        return _from_probabilities(_in_order({str(name): p for name, p in returned.items()}, labels), labels)
    if isinstance(returned, list | tuple):
        if len(returned) != len(labels):
            raise InputError(
                f"the function returned {len(returned)} probabilities, and the campaign has {len(labels)} labels.",
                f"Return one for each of {listed(labels)}, in this order.",
            )
        return _from_probabilities(list(returned), labels)
    name = str(returned)
    if isinstance(returned, bool) or name not in labels:
        raise InputError(
            f"the function returned {name[:60]!r}, which is not one of the campaign's labels.",
            f"Return one of {listed(labels)}, probabilities, or None for no answer.",
        )
    return Answer(name)


def _in_order(named: dict[str, Any], labels: Sequence[str]) -> list[Any]:
    unknown = next((name for name in named if name not in labels), None)
    if unknown is not None:
        raise InputError(
            f"the function returned a probability for {unknown[:60]!r}, which is not one of the campaign's labels.",
            f"They are {listed(labels)}.",
        )
    return [named.get(label, 0.0) for label in labels]


def _from_probabilities(found: list[Any], labels: Sequence[str]) -> Answer:
    for p in found:
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0.0 <= float(p) <= 1.0 + SLACK:
            raise InputError(
                f"the function returned {str(p)[:40]!r}, which is no probability.", "Return numbers from 0 to 1."
            )
    total = math.fsum(map(float, found))
    if abs(total - 1.0) > SLACK:
        raise InputError(
            f"the function returned probabilities that add up to {total:.4g}.", "Return such that add up to 1."
        )
    shares = tuple(float(p) / total for p in found)
    return Answer(labels[max(range(len(shares)), key=lambda k: shares[k])], shares)
