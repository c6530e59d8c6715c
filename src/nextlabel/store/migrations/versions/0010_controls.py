"""Control questions: tasks whose answer is known, and leases on them that the budget does not pay for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the columns, and the index by which controls are found."""
    op.add_column("campaigns", sa.Column("controls", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("tasks", sa.Column("gold", sa.Integer(), nullable=True))
    op.create_index(
        "ix_tasks_gold", "tasks", ["campaign", "lot"],
        sqlite_where=sa.text("gold IS NOT NULL"), postgresql_where=sa.text("gold IS NOT NULL"),
    )  # fmt: skip
    op.add_column("leases", sa.Column("free", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("workers", sa.Column("tested", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("workers", sa.Column("free", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop them."""
    for name in ("free", "tested"):
        op.drop_column("workers", name)
    op.drop_column("leases", "free")
    op.drop_index("ix_tasks_gold", "tasks")
    op.drop_column("tasks", "gold")
    op.drop_column("campaigns", "controls")
