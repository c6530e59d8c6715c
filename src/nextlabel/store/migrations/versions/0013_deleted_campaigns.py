"""Campaigns that were deleted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Make the table of their ids."""
    op.create_table(
        "deleted_campaigns",
        sa.Column("id", sa.String(48), nullable=False),
        sa.Column("number", sa.Integer(), nullable=True),
        sa.Column("deleted_at", sa.Double(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deleted_campaigns"),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("deleted_campaigns")
