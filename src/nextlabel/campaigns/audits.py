"""Audits of campaigns: items drawn at random, and what an expert found of them (``campaign.audits``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nextlabel.campaign.audits import answer_audit, draw_audit
from nextlabel.campaign.replies import AuditItem
from nextlabel.campaign.rows import TaskRow
from nextlabel.campaign.rules import NOT_ANSWERED

if TYPE_CHECKING:
    from nextlabel.campaigns.service import CampaignService


class Audits:
    """The audits of all campaigns of a service."""

    def __init__(self, campaign_service: CampaignService) -> None:
        self._service, self._store = campaign_service, campaign_service.store

    def draw(self, id: str, items: int, seed: int = 0) -> int:
        """Draw tasks at random for an audit; returns how many are drawn now."""
        return self._service.run(id, lambda commands: draw_audit(commands, items, seed))

    def answer(self, id: str, answers: Mapping[str, object]) -> int:
        """What an expert found of tasks that were drawn; returns how many answers are new or corrected."""
        return self._service.run(id, lambda commands: answer_audit(commands, answers))

    def items(self, id: str) -> list[AuditItem]:
        """The tasks that were drawn, with the answers so far; without what the campaign believes of them."""
        row = self._store.row(id)
        tasks = self._store.overview.tasks_numbered(id, [task for task, _ in row.rules.audit])
        return [
            AuditItem(
                tasks[task].key, None if answer == NOT_ANSWERED else row.config.labels[answer], tasks[task].payload
            )
            for task, answer in row.rules.audit
        ]

    def truths(self, id: str) -> Mapping[int, int]:
        """The true answers of audited tasks, by the tasks' numbers; the tasks were drawn at random."""
        audit = self._store.row(id).rules.audit
        return {task: answer for task, answer in audit if answer != NOT_ANSWERED}

    def tasks(self, id: str) -> list[tuple[TaskRow, int]]:
        """Audited tasks with their true answers."""
        truths = self.truths(id)
        tasks = self._store.overview.tasks_numbered(id, truths)
        return [(tasks[number], answer) for number, answer in truths.items()]
