"""The campaign's results as predictions of Label Studio: the label, how sure it is, and which campaign says so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nextlabel.campaigns.service import CampaignService
from nextlabel.integrations.label_studio.api import LabelStudio
from nextlabel.integrations.label_studio.project import OWN_MODEL, Control

#: Predictions that are sent at once.
AT_ONCE: Final = 200
#: Scores that differ by less are the same.
SAME: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Pushed:
    """How many predictions are new, were changed, and were right before."""

    model_version: str
    created: int
    changed: int
    same: int


def push_results(
    studio: LabelStudio, project: int, control: Control, service: CampaignService, campaign: str
) -> Pushed:
    """Write the result of every task that somebody has labelled; the same again changes nothing."""
    version = f"{OWN_MODEL}:{campaign}"
    there = {int(one["task"]): one for one in studio.predictions(project) if one.get("model_version") == version}
    new: list[dict[str, Any]] = []
    created = changed = same = 0
    for result in service.results(campaign):
        if result.labels == 0:
            continue
        task, score = int(result.task), round(result.probability, 6)
        before = there.get(task)
        if before is None:
            new.append({"task": task, "result": control.result(result.label), "score": score, "model_version": version})
        elif control.label_of(before["result"]) == result.label and abs((before["score"] or 0) - score) < SAME:
            same += 1
        else:
            studio.change_prediction(before["id"], {"result": control.result(result.label), "score": score})
            changed += 1
    for first in range(0, len(new), AT_ONCE):
        studio.add_predictions(project, new[first : first + AT_ONCE])
        created += len(new[first : first + AT_ONCE])
    return Pushed(version, created, changed, same)
