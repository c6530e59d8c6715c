"""What a Label Studio project says: its choices, its tasks, and what annotations and predictions mean as labels.

An annotation is a label if it has exactly one of the choices. A skipped or empty one, or one with a choice that the
campaign does not know, is none (``SKIPPED``). Of several annotations of one person for one task the newest label
stands. Drafts are not looked at: nobody has submitted them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree

from nextlabel.campaign.external_answers import SKIPPED, Skipped
from nextlabel.campaign.new_tasks import LARGEST_PAYLOAD
from nextlabel.errors import InputError
from nextlabel.prose import listed

#: The field of a task's data that says whose next task it is.
FIELD: Final = "nextlabel"
#: How the model versions begin that nextlabel writes.
OWN_MODEL: Final = "nextlabel"

Answer = str | Skipped


@dataclass(frozen=True, slots=True)
class Control:
    """The choices that people have: the tag's name, what it is about, and its values."""

    name: str
    to_name: str
    labels: tuple[str, ...]

    def result(self, label: str) -> list[dict[str, Any]]:
        """The label as an annotation's or a prediction's result."""
        value = {"choices": [label]}
        return [{"from_name": self.name, "to_name": self.to_name, "type": "choices", "value": value}]

    def label_of(self, result: Any) -> str | None:
        """The one choice of a result, None if it has none, several or an unknown one."""
        chosen = [
            choice
            for part in result or ()
            if isinstance(part, Mapping) and part.get("from_name") == self.name
            for choice in part.get("value", {}).get("choices", ())
        ]
        return chosen[0] if len(chosen) == 1 and chosen[0] in self.labels else None


def control_of(project: Mapping[str, Any], name: str | None = None) -> Control:
    """The project's choices; ``name`` says which, if there are several."""
    number, parsed = project["id"], project.get("parsed_label_config") or {}
    found = {tag: one for tag, one in parsed.items() if one.get("type") == "Choices"}
    if not found:
        raise InputError(
            f"project {number} has no Choices in its labeling interface.",
            "Add a <Choices> tag with the labels, e.g. by the template Text Classification.",
        )
    if name is not None and name not in found:
        raise InputError(
            f"project {number} has no Choices called {name[:60]!r}.", f"Give --control {' or '.join(found)}."
        )
    if name is None and len(found) > 1:
        raise InputError(
            f"project {number} has several Choices: {listed(list(found))}.",
            f"Say which are the labels, e.g. --control {next(iter(found))}.",
        )
    tag = name if name is not None else next(iter(found))
    _check_single(project, tag)
    return Control(tag, found[tag]["to_name"][0], tuple(found[tag]["labels"]))


def _check_single(project: Mapping[str, Any], tag: str) -> None:
    """Refuse choices of which several may be chosen, or that are made for each region."""
    for element in ElementTree.fromstring(project["label_config"]).iter("Choices"):
        if element.get("name") != tag:
            continue
        for attribute, bad in (("choice", "multiple"), ("perRegion", "true"), ("perItem", "true")):
            if element.get(attribute) == bad:
                raise InputError(
                    f'the Choices {tag!r} of project {project["id"]} have {attribute}="{bad}", so that a task can have '
                    "several of them.",
                    'nextlabel takes one label per person and task: set choice="single" in the labeling interface.',
                )


def task_table(task: Mapping[str, Any], url: str) -> dict[str, Any]:
    """A task of the campaign; one with too much data is its address."""
    payload = {name: value for name, value in task["data"].items() if name != FIELD}
    if not payload or len(json.dumps(payload)) > LARGEST_PAYLOAD:
        payload = {"task": f"{url}/projects/{task['project']}/data?task={task['id']}"}
    return {"id": str(task["id"]), "payload": payload}


def user_of(annotation: Mapping[str, Any]) -> int | None:
    """Who made an annotation."""
    by = annotation.get("completed_by")
    found = by.get("id") if isinstance(by, Mapping) else by
    return found if isinstance(found, int) else None


def answer_of(annotation: Mapping[str, Any], control: Control) -> Answer:
    """What an annotation says."""
    label = None if annotation.get("was_cancelled") else control.label_of(annotation.get("result"))
    return SKIPPED if label is None else label


def answers_of(annotations: Iterable[Mapping[str, Any]], control: Control) -> dict[int, Answer]:
    """What each person says about a task."""
    found: dict[int, Answer] = {}
    for annotation in sorted(annotations, key=lambda one: int(one["id"])):
        user, answer = user_of(annotation), answer_of(annotation, control)
        if user is not None and (isinstance(answer, str) or user not in found):
            found[user] = answer
    return found


def prediction_rows(tasks: Sequence[Mapping[str, Any]], control: Control) -> dict[str, list[dict[str, Any]]]:
    """Predictions by the model's name, as ``campaigns.predictions`` takes them; of several for a task, the newest.

    A score is taken for the label's probability where all of a model's scores can be: between one in C and 1.
    """
    newest: dict[str, dict[int, Mapping[str, Any]]] = {}
    for task in tasks:
        for prediction in sorted(task.get("predictions") or (), key=lambda one: int(one["id"])):
            model = str(prediction.get("model_version") or "label-studio").strip()
            label = control.label_of(prediction.get("result"))
            if label is not None and not model.startswith(OWN_MODEL):
                newest.setdefault(model, {})[task["id"]] = {"label": label, "score": prediction.get("score")}
    return {model: _rows(found, control.labels) for model, found in newest.items()}


def _rows(found: Mapping[int, Mapping[str, Any]], labels: Sequence[str]) -> list[dict[str, Any]]:
    scores = [one["score"] for one in found.values()]
    if not all(isinstance(score, int | float) and 1 / len(labels) < score <= 1 for score in scores):
        return [{"task": str(task), "label": one["label"]} for task, one in found.items()]
    return [
        {
            "task": str(task),
            **{
                name: one["score"] if name == one["label"] else (1 - one["score"]) / (len(labels) - 1)
                for name in labels
            },
        }
        for task, one in found.items()
    ]
