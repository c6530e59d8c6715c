"""How many tasks of each group a worker has held, for workers who have held most of one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the table; it is filled for a worker when the first long search has been made for them."""
    op.create_table(
        "held_counts",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=False),
        sa.Column("klass", sa.Integer(), nullable=False),
        sa.Column("node", sa.Integer(), nullable=False),
        sa.Column("w", sa.Integer(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_held_counts_campaign")),
        sa.PrimaryKeyConstraint("campaign", "worker", "klass", "node", "w", name=op.f("pk_held_counts")),
    )


def downgrade() -> None:
    """The counts can be had from leases and tasks."""
    op.drop_table("held_counts")
