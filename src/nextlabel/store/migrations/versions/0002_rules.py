"""The rules of a campaign's log, which the first version had in its code."""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

from nextlabel.campaign.legacy_log import RATE_MEMORY, legacy_limits, legacy_ranked

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column, and fill it with what the first version did."""
    op.add_column("campaigns", sa.Column("rules", sa.Text(), nullable=False, server_default="{}"))
    campaigns = sa.table("campaigns", *(sa.column(name) for name in ("number", "config", "classes", "tasks", "rules")))
    connection = op.get_bind()
    for number, config, classes, tasks in connection.execute(
        sa.select(campaigns.c.number, campaigns.c.config, campaigns.c.classes, campaigns.c.tasks)
    ).all():
        settings = json.loads(config)
        limits = legacy_limits(settings["most_labels"], settings["most_in_flight"], classes)
        rules = {
            "rate_memory": RATE_MEMORY, "ranked": legacy_ranked(classes), "limits": [list(limits)] if tasks else [],
        }  # fmt: skip
        connection.execute(sa.update(campaigns).where(campaigns.c.number == number).values(rules=json.dumps(rules)))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("campaigns", "rules")
