"""One campaign inside a program: the same rules as over HTTP, without a server.

>>> import nextlabel as nl
>>> campaign = nl.Campaign.create("memory:", tasks=["is a whale a fish?", "is a bat a bird?"], budget=4)
>>> lease = campaign.ask(worker="ann")
>>> if lease:
...     campaign.tell(lease, label=1).status
'labelled'
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, Unpack

from nextlabel.application.certificate import Certificate
from nextlabel.application.frames import labels_frame, results_frame
from nextlabel.application.guarantees import GuaranteeStatus
from nextlabel.application.imports import ImportStatus, imports_of
from nextlabel.application.service import CampaignService, Clock
from nextlabel.application.status import CampaignStatus, status_of
from nextlabel.application.webhooks import Webhooks
from nextlabel.application.worker_reports import WorkerReport, report_of
from nextlabel.campaign.declaration import ChangeOptions, SettingOptions, spells_settings
from nextlabel.campaign.events import Event
from nextlabel.campaign.external_answers import Skipped
from nextlabel.campaign.new_tasks import row_tables, task_tables
from nextlabel.campaign.replies import (
    Added,
    AddedFeatures,
    AddedPredictions,
    AuditItem,
    ChangedLabels,
    Lease,
    NoTask,
    Receipt,
    lease_id_of,
)
from nextlabel.campaign.results import GivenLabel, Result
from nextlabel.campaign.settings import CampaignSettings
from nextlabel.campaign.states import Standing
from nextlabel.campaign.webhooks import Webhook
from nextlabel.errors import NotFoundError
from nextlabel.files.frames import Library
from nextlabel.prose import without_passwords
from nextlabel.store.sql import open_store
from nextlabel.store.verify import Verification

#: Events that are read at once.
PAGE = 1_000


class Campaign:
    """A campaign in the store at an address (``store.engine``); several programs and services may use it at once."""

    def __init__(self, campaign_service: CampaignService, id: str) -> None:
        self._service, self.id = campaign_service, id

    @classmethod
    @spells_settings()
    def create(
        cls,
        url: str,
        tasks: Any = (),
        *,
        id: str | None = None,
        clock: Clock | None = None,
        score_column: str | None = None,
        **settings: Unpack[SettingOptions],
    ) -> Self:
        """Create a campaign; ``budget`` is required, the other settings have defaults (``campaign.declaration``).

        ``tasks`` are texts, tables with the keys of ``campaign.new_tasks``, or a data frame with one row per task;
        its column ``score_column`` has a model's scores to start from.
        """
        service = CampaignService(open_store(url), clock)
        try:
            return cls(
                service, service.create(CampaignSettings.from_dict(settings), id, task_tables(tasks, score_column)).id
            )
        except BaseException:
            service.close()
            raise

    @classmethod
    def open(cls, url: str, id: str | None = None, *, clock: Clock | None = None) -> Self:
        """Open a campaign that exists; without ``id``, the only one."""
        service = CampaignService(open_store(url, create=False), clock)
        try:
            if id is None:
                there = service.store.campaigns()
                if len(there) != 1:
                    raise NotFoundError(
                        f"there are {len(there)} campaigns at {without_passwords(url)}.",
                        f"Name one of {', '.join(row.id for row in there)}." if there else "Create one first.",
                    )
                id = there[0].id
            service.store.row(id)
        except BaseException:
            service.close()
            raise
        return cls(service, id)

    def add_tasks(self, tasks: Any, *, score_column: str | None = None, key: str = "") -> Added:
        """Add tasks, all of them or none; tasks that were added under the same ``key`` are not added again."""
        return self._service.add_tasks(self.id, task_tables(tasks, score_column), key or None)

    def add_predictions(self, model: str, predictions: Any, *, cost: float = 0.0) -> AddedPredictions:
        """Add what a model predicts as labels of worker ``model:NAME``: tables with task and label or probabilities.

        ``cost`` is what one prediction costs in labels of the budget.
        """
        return self._service.add_predictions(self.id, model, row_tables(predictions), cost)

    def add_features(self, features: Any, *, replace: bool = False) -> AddedFeatures:
        """Add what is known of items beside their labels, in a form of ``files.features``: labels then teach more.

        Items may come later than their features, and some may have none. An item's features may be given anew; all
        have the same columns, unless ``replace`` takes away those that are there.
        """
        return self._service.add_features(self.id, features, replace)

    def imports(self) -> list[ImportStatus]:
        """The last imports of many tasks, and how far each has got."""
        self._service.store.row(self.id)  # a campaign that is not there has none
        return imports_of(self._service.store, self.id)

    def ask(self, worker: str) -> Lease | NoTask:
        """A task for the worker, or the reason why there is none; ``if lease:`` tells them apart."""
        return self._service.ask(self.id, worker)

    def tell(self, lease: Lease | str, label: object, comment: str | None = None) -> Receipt:
        """Record the worker's answer to a lease, and a comment on the task if there is one."""
        return self._service.tell(lease_id_of(lease), label, comment=comment)

    def release(self, lease: Lease | str, comment: str | None = None) -> Receipt:
        """The worker passes the task on, perhaps with a comment; it does not come back to the same worker."""
        return self._service.release(lease_id_of(lease), comment=comment)

    def renew(self, lease: Lease | str) -> Receipt:
        """Give the worker more time."""
        return self._service.renew(lease_id_of(lease))

    def undo(self, lease: Lease | str) -> Receipt:
        """Take the worker's answer back."""
        return self._service.undo(lease_id_of(lease))

    def set_answer(self, worker: str, task: str, answer: object | Skipped | None) -> Receipt | None:
        """Make a worker's answer to a task what another tool says it is, with or without a lease.

        ``None``: the tool has no answer (any more); ``Skipped()``: the worker passed the task on.
        """
        return self._service.set_answer(self.id, worker, task, answer)

    def pause(self) -> CampaignStatus:
        """Hand out no tasks until ``resume``."""
        return status_of(self._service.pause(self.id))

    def resume(self) -> CampaignStatus:
        """Hand out tasks again."""
        return status_of(self._service.resume(self.id))

    @spells_settings(changing=True)
    def change(self, **values: Unpack[ChangeOptions]) -> CampaignStatus:
        """Change settings that may change (``campaign.declaration``); None removes those that need not be there."""
        return status_of(self._service.change(self.id, values))

    def delete(self) -> None:
        """Delete the campaign with its tasks, labels, log and links, for good; its id is not given out again."""
        self._service.delete(self.id)

    def workers(self) -> list[WorkerReport]:
        """What each worker did, is owed and is worth, those with the most labels first."""
        return self._service.worker_reports.of(self.id)

    def agreement(self) -> dict[str, Any]:
        """Krippendorff's alpha, Fleiss' and Cohen's kappa of the labels that count, with 95% intervals."""
        found = self._service.worker_reports.learnt(self.id).agreement
        return {} if found is None else found.as_dict()

    def order(self) -> dict[str, Any]:
        """The ``items`` of a campaign for pairs, the best first: item, rank, score, its sd, comparisons."""
        return self._service.order(self.id)

    def pause_worker(self, worker: str, reason: str = "") -> WorkerReport:
        """Give this worker no new task until ``restore_worker``; an item that they hold is theirs to finish."""
        return self._standing(worker, "paused", reason)

    def block_worker(self, worker: str, reason: str = "") -> WorkerReport:
        """Give this worker no task, take back what they hold, and count no answer that still comes."""
        return self._standing(worker, "blocked", reason)

    def restore_worker(self, worker: str) -> WorkerReport:
        """Give a worker who was paused or blocked tasks again."""
        return self._standing(worker, "active")

    def _standing(self, worker: str, standing: Standing, reason: str = "") -> WorkerReport:
        row = self._service.set_standing(self.id, worker, standing, reason)
        return report_of(row, self._service.store.row(self.id).config.pay_per_label)

    def erase_worker(self, worker: str) -> WorkerReport:
        """Erase a person's name, comments, visits and links for good; their labels stay, under the name returned."""
        return report_of(self._service.erase_worker(self.id, worker), self.status().settings.pay_per_label)

    def worker_record(self, worker: str) -> dict[str, Any]:
        """All that is kept about a person in this campaign: tallies, visits, and every label with its comment."""
        return self._service.worker_reports.record(self.id, worker)

    def drop_labels(self, worker: str, reason: str = "") -> ChangedLabels:
        """Leave the labels of a worker out of the results; they stay spent, and their tasks may get others."""
        return self._service.drop_labels(self.id, worker, reason)

    def restore_labels(self, worker: str) -> ChangedLabels:
        """Take dropped labels in again, where their tasks have room for them."""
        return self._service.restore_labels(self.id, worker)

    def set_gold(self, answers: Mapping[str, object]) -> int:
        """Known answers by the ids of tasks, which are control questions from now on; how many are new or corrected."""
        return self._service.set_gold(self.id, answers)

    def adjudicate(self, answers: Mapping[str, object]) -> int:
        """Set the answers of tasks by their ids: final, known to the model, marked in the results; how many are new."""
        return self._service.adjudicate(self.id, answers)

    def undo_adjudication(self, tasks: Sequence[str]) -> int:
        """Let the labels decide about tasks again."""
        return self._service.undo_adjudication(self.id, tasks)

    def freeze(self, audits: int | Sequence[int] | None = None, of: str | None = None) -> GuaranteeStatus:
        """Freeze the labels and draw items for an expert, for at most ``at_most_wrong`` wrong labels.

        Several growing numbers of ``audits`` plan several looks; ``of`` limits the statement to items with that label.
        """
        return self._service.guarantees.freeze(self.id, audits, of)

    def next_look(self) -> GuaranteeStatus:
        """Draw the items of the next look, if several were planned."""
        return self._service.guarantees.next_look(self.id)

    def guarantee(self) -> GuaranteeStatus:
        """How far the guarantee is, and its sentence."""
        return self._service.guarantees.status(self.id)

    def guarantee_items(self) -> list[AuditItem]:
        """The items that the expert was asked for so far, with the answers."""
        return self._service.guarantees.items(self.id)

    def answer_guarantee(self, answers: Mapping[str, object]) -> int:
        """The expert's answers by the ids of the items that are asked for."""
        return self._service.guarantees.answer(self.id, answers)

    def reopen_labels(self) -> GuaranteeStatus:
        """Let labels decide again, which voids the certificate."""
        return self._service.guarantees.reopen(self.id)

    def guarantee_record(self) -> dict[str, Any]:
        """Frozen labels, draw and answers, with which anybody can check the certificate."""
        return self._service.guarantees.record(self.id).record()

    def draw_audit(self, items: int, seed: int = 0) -> list[AuditItem]:
        """Draw tasks at random for an expert; all that are drawn so far."""
        self._service.audits.draw(self.id, items, seed)
        return self.audit_items()

    def answer_audit(self, answers: Mapping[str, object]) -> int:
        """The expert's answers by the ids of drawn tasks; the certificate follows them."""
        return self._service.audits.answer(self.id, answers)

    def audit_items(self) -> list[AuditItem]:
        """The tasks that were drawn for an audit, with the answers so far."""
        return self._service.audits.items(self.id)

    def accept_clock(self) -> bool:
        """Accept the clock's time although it is far from the last event (``ClockError``); False if it is not."""
        return self._service.accept_clock(self.id)

    def status(self) -> CampaignStatus:
        """State, settings and counters."""
        return status_of(self._service.store.row(self.id))

    def results(self) -> Iterator[Result]:
        """Every task with its most likely label."""
        return self._service.results(self.id)

    def labels(self, *, unanswered: bool = False, dropped: bool = False) -> Iterator[GivenLabel]:
        """Every worker's answer, one by one; also leases without one, and labels that were dropped, if asked for."""
        return self._service.labels(self.id, unanswered, dropped)

    def results_frame(self, library: Library = "pandas") -> Any:
        """The results as a data frame of pandas or Polars, with the columns that the tasks came with."""
        return results_frame(self._service, self.id, library)

    def labels_frame(self, library: Library = "pandas", *, unanswered: bool = False, dropped: bool = False) -> Any:
        """The labels as a data frame in crowd-kit's columns (``task``, ``worker``, ``label``) and ours after them."""
        return labels_frame(self.labels(unanswered=unanswered, dropped=dropped), library)

    def events(self, after: int = 0) -> Iterator[Event]:
        """The log, from the event after number ``after`` on."""
        while page := self._service.store.events(self.id, after, PAGE):
            yield from page
            after = page[-1].seq

    def certificate(self, *, wait: bool = False) -> Certificate:
        """Expected accuracy now, forecast, and the most that any policy can be expected to reach.

        The last one is worked out in the background; with ``wait`` all is by the labels that are there now.
        """
        return self._service.certificate(self.id, wait)

    def webhooks(self) -> list[Webhook]:
        """The addresses that are told what happens, and how far each has got."""
        return Webhooks(self._service.store).of(self.id)

    def enable_webhook(self, id: str) -> Webhook:
        """Go on with a webhook that was disabled, or try one that fails at once; it is told all that it has missed."""
        return Webhooks(self._service.store).enable(self.id, id)

    def remove_webhook(self, id: str) -> None:
        """Send an address no more messages."""
        Webhooks(self._service.store).remove(self.id, id)

    def verify(self) -> Verification:
        """Replay the log beside the campaign, and report the rows that do not follow from it."""
        return self._service.verify(self.id)

    def rebuild(self) -> CampaignStatus:
        """Replay the log, and write anew whatever does not follow from it."""
        return status_of(self._service.rebuild(self.id))

    def close(self) -> None:
        """Close the store."""
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
