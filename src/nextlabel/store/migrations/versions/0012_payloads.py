"""Payloads of tasks in a table of their own, which the log and the rows of tasks refer to (``store.payloads``).

Tasks that are there keep their payloads in both places, where they are read as before: nothing has to be rewritten,
however large the database is.
"""

from __future__ import annotations

import json

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0010"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "payloads",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_payloads_campaign")),
        sa.PrimaryKeyConstraint("campaign", "number", name=op.f("pk_payloads")),
    )


def downgrade() -> None:
    """Write payloads into the rows of tasks and, event by event, into the log."""
    connection = op.get_bind()
    connection.execute(
        sa.text(
            "UPDATE tasks SET payload = (SELECT p.data FROM payloads p WHERE p.campaign = tasks.campaign "
            "AND p.number = tasks.number) WHERE payload = ''"
        )
    )
    marked = sa.text(
        "SELECT campaign, seq FROM events WHERE kind = 'tasks_added' AND data LIKE '%, \"payloads\": \"apart\"}'"
    )
    for campaign, seq in connection.execute(marked).all():
        which = {"campaign": campaign, "seq": seq}
        of_event = "campaign = :campaign AND seq = :seq"
        data = json.loads(connection.execute(sa.text(f"SELECT data FROM events WHERE {of_event}"), which).scalar_one())
        del data["payloads"]
        between = sa.text(
            "SELECT number, data FROM payloads WHERE campaign = :campaign AND number >= :first AND number < :end"
        )
        span = {"campaign": campaign, "first": data["first"], "end": data["first"] + len(data["tasks"])}
        stored = {number: json.loads(text) for number, text in connection.execute(between, span)}
        data["tasks"] = [
            [key, stored[number], klass] for number, (key, klass) in enumerate(data["tasks"], data["first"])
        ]
        connection.execute(
            sa.text(f"UPDATE events SET data = :data WHERE {of_event}"), {**which, "data": json.dumps(data)}
        )
    op.drop_table("payloads")
