"""Webhooks of campaigns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "webhooks",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("types", sa.String(200), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("delivered", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("first_failed_at", sa.Double(), nullable=True),
        sa.Column("next_at", sa.Double(), nullable=False),
        sa.Column("disabled", sa.Text(), nullable=True),
        sa.Column("last_at", sa.Double(), nullable=True),
        sa.Column("last_reply", sa.Text(), nullable=False),
        sa.Column("owner", sa.String(64), nullable=False),
        sa.Column("claimed_until", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name="fk_webhooks_campaign"),
        sa.PrimaryKeyConstraint("id", name="pk_webhooks"),
    )
    op.create_index("ix_webhooks_campaign", "webhooks", ["campaign"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("webhooks")
