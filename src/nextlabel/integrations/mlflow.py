"""MLflow: the traces of an experiment become tasks, and what people say about them goes back as assessments.

============================================== ================================================================
in MLflow                                      in the campaign
============================================== ================================================================
trace                                          task: its id is the trace's, workers see its inputs and outputs
feedback of a HUMAN or LLM_JUDGE               label: value, worker (or model), comment as the rationale
expectation of the CODE ``nextlabel:CAMPAIGN`` what the labels of a task agree on, with its probability
============================================== ================================================================

Each round reads both sides and writes what differs. Nothing is remembered between rounds, so that a lost reply or a
kill of either server leaves no label out and none twice. The campaign has the truth about labels.

MLflow is the one of Opik, Langfuse, Argilla and MLflow whose server runs from a package alone: the others need
ClickHouse, Redis or Elasticsearch beside them. Sources: mlflow.org, REST API; ``mlflow.tracing`` of version 3.17.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import httpx

from nextlabel.application.service import CampaignService
from nextlabel.campaign.new_tasks import LARGEST_PAYLOAD
from nextlabel.campaign.states import PREFIX
from nextlabel.errors import InputError, NotFoundError
from nextlabel.integrations.tool import Tool

#: Traces that are read at once.
PAGE: Final = 500
#: The entry of an assessment's metadata that names the campaign which wrote it.
OWNER: Final = "nextlabel"
#: What MLflow ends inputs and outputs with that it has cut.
CUT: Final = "..."
_TRACES: Final = "/api/3.0/mlflow/traces"

#: Whose assessment it is: kind of source, and its id.
Source = tuple[str, str]


class MLflow(Tool):
    """A tracking server at ``url``; the token is USER:PASSWORD, a bearer token, or empty."""

    title, example = "MLflow", "http://localhost:5000"
    credentials = "Give --token USER:PASSWORD (or a bearer token), or set MLFLOW_TRACKING_TOKEN."

    def __init__(self, url: str, token: str = "", timeout: float = 60.0) -> None:
        user, colon, password = token.strip().partition(":")

        def bearer(request: httpx.Request) -> httpx.Request:
            request.headers["Authorization"] = f"Bearer {user}"
            return request

        super().__init__(url, httpx.BasicAuth(user, password) if colon else bearer if user else None, timeout)

    def experiment(self, name: str) -> str:
        """The id of an experiment by its name or its id."""
        ways = (("get-by-name", {"experiment_name": name}), ("get", {"experiment_id": name}))
        for way, which in ways[: 2 if name.isdigit() else 1]:
            with suppress(NotFoundError):
                found = self.send("GET", f"/api/2.0/mlflow/experiments/{way}", params=which)
                return str(found["experiment"]["experiment_id"])
        raise NotFoundError(
            f"there is no experiment {name!r} at {self.url}, or you may not see it.", "Give its name, or its number."
        )

    def traces(self, experiment: str) -> Iterator[dict[str, Any]]:
        """The traces of an experiment with their assessments, oldest first."""
        place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment}}
        body: dict[str, Any] = {"locations": [place], "max_results": PAGE, "order_by": ["timestamp_ms ASC"]}
        while True:
            found = self.send("POST", f"{_TRACES}/search", body)
            yield from found.get("traces") or ()
            if not found.get("next_page_token"):
                return
            body["page_token"] = found["next_page_token"]

    def whole(self, trace: str) -> tuple[str, str]:
        """The inputs and outputs of a trace, which its first span has, as JSON; empty if nobody has kept its spans."""
        with suppress(NotFoundError):
            found = self.send("GET", "/ajax-api/3.0/mlflow/get-trace-artifact", params={"request_id": trace})
            said: dict[str, str] = next((s["attributes"] for s in found["spans"] if not s.get("parent_span_id")), {})
            return said.get("mlflow.spanInputs", ""), said.get("mlflow.spanOutputs", "")
        return "", ""

    def withdraw(self, trace: str, assessment: str) -> None:
        """Delete an assessment; one that is gone already is as well."""
        with suppress(NotFoundError):
            self.send("DELETE", f"{_TRACES}/{trace}/assessments/{assessment}")


@dataclass(frozen=True, slots=True)
class Synced:
    """What a round did: new tasks, and assessments that were written, withdrawn (changed ones are both) or right."""

    tasks: int
    written: int
    withdrawn: int
    same: int


def sync(
    mlflow: MLflow,
    experiment: str,
    service: CampaignService,
    campaign: str,
    name: str,
    progress: Callable[[float], None] = lambda share: None,
) -> Synced:
    """One round: traces that are new become tasks, and the assessments ``name`` become what the campaign has."""
    traces = {trace["trace_id"]: trace for trace in mlflow.traces(experiment)}
    rows = service.store.tasks_by_key(campaign, list(traces))
    new = [trace for key, trace in traces.items() if key not in rows and trace.get("state") != "IN_PROGRESS"]
    if new:
        service.add_tasks(campaign, [_task(mlflow, trace) for trace in new])
    wanted = _wanted(service, campaign, name)
    written = withdrawn = same = 0
    for done, (key, trace) in enumerate(traces.items(), 1):
        missing = dict(wanted.get(key, {}))
        for there in trace.get("assessments") or ():
            if (there.get("metadata") or {}).get(OWNER) != campaign:
                continue
            source = there["source"]["source_type"], there["source"]["source_id"]
            if source in missing and _same(missing[source], there):
                del missing[source]
                same += 1
            else:  # it was changed, undone or dropped, or a reply was lost and it was written twice
                mlflow.withdraw(key, there["assessment_id"])
                withdrawn += 1
        for assessment in missing.values():
            with suppress(NotFoundError):  # the trace has been deleted
                mlflow.send("POST", f"{_TRACES}/{key}/assessments", {"assessment": {"trace_id": key, **assessment}})
                written += 1
        progress(done / len(traces))
    return Synced(len(new), written, withdrawn, same)


def _task(mlflow: MLflow, trace: Mapping[str, Any]) -> dict[str, Any]:
    """A task from a trace: its inputs and outputs, or the beginnings that MLflow shows if they are too much text."""
    short = trace.get("request_preview", ""), trace.get("response_preview", "")
    whole = mlflow.whole(trace["trace_id"]) if any(text.endswith(CUT) for text in short) else short
    said = whole if any(whole) and len(json.dumps(whole)) <= LARGEST_PAYLOAD else short
    return {"id": trace["trace_id"], "payload": {"request": _plain(said[0]), "response": _plain(said[1])}}


def _wanted(service: CampaignService, campaign: str, name: str) -> dict[str, dict[Source, dict[str, Any]]]:
    """The assessments that each trace should have."""
    wanted: dict[str, dict[Source, dict[str, Any]]] = {}
    named = service.store.row(campaign).config.answer_type.level == "nominal"

    def add(key: str, kind: str, source: Source, label: str, more: Mapping[str, Any], **metadata: object) -> None:
        wanted.setdefault(key, {})[source] = {
            "assessment_name": name,
            "source": {"source_type": source[0], "source_id": source[1]},
            kind: {"value": label if named else json.loads(label)},
            "metadata": {OWNER: campaign, **{key: str(value) for key, value in metadata.items()}},
            **more,
        }

    for one in service[campaign].labels():
        if one.label is not None:
            model = one.worker.startswith(PREFIX)
            source = ("LLM_JUDGE", one.worker.removeprefix(PREFIX)) if model else ("HUMAN", one.worker)
            more = {} if one.submitted is None else dict.fromkeys(("create_time", "last_update_time"), one.submitted)
            more |= {} if one.comment is None else {"rationale": one.comment}
            add(one.task, "feedback", source, one.label, more, counted=one.counted)
    for result in service[campaign].results():
        if result.labels > 0 or result.control or result.source != "labels":  # somebody has said what the answer is
            source, probability = ("CODE", f"nextlabel:{campaign}"), f"{result.probability:.2f}"
            add(result.task, "expectation", source, result.label, {}, probability=probability, labels=result.labels)
    return wanted


def _same(wanted: Mapping[str, Any], there: Mapping[str, Any]) -> bool:
    """Whether an assessment says what it should."""
    kind = "feedback" if "feedback" in wanted else "expectation"
    said = (there.get(kind) or {}).get("value"), there.get("rationale") or None, there["metadata"]
    named = wanted["assessment_name"] == there["assessment_name"]
    return named and said == (wanted[kind]["value"], wanted.get("rationale"), wanted["metadata"])


def _plain(text: str) -> Any:
    """What a text in JSON says; another text says itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def checked_name(name: str) -> str:
    """The name of assessments, e.g. what the question is about."""
    if not 0 < len(name.strip()) <= 250:
        raise InputError(
            f"--assessment {name[:40]!r} is not a text of 1 to 250 characters.", "Give e.g. --assessment quality."
        )
    return name.strip()
