"""Visits of workers whom a platform sends, by the platform's ids."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "visits",
        sa.Column("platform", sa.String(length=16), nullable=False),
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("campaign", sa.String(length=48), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=False),
        sa.Column("study", sa.String(length=128), nullable=False),
        sa.Column("begun_at", sa.Double(), nullable=False),
        sa.Column("labels_before", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(length=128), nullable=False),
        sa.Column("status_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("platform", "id", "campaign", name=op.f("pk_visits")),
    )
    op.create_index("ix_visits_worker", "visits", ["campaign", "worker"])


def downgrade() -> None:
    """Drop it."""
    op.drop_index("ix_visits_worker", "visits")
    op.drop_table("visits")
