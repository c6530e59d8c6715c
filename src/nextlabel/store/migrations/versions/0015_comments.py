"""Comments of workers on tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column, and the index by which the last comments are found."""
    op.add_column("leases", sa.Column("comment", sa.Text(), nullable=True))
    op.create_index(
        "ix_leases_comment", "leases", ["campaign", "seq"],
        sqlite_where=sa.text("comment IS NOT NULL"), postgresql_where=sa.text("comment IS NOT NULL"),
    )  # fmt: skip


def downgrade() -> None:
    """Drop them."""
    op.drop_index("ix_leases_comment", "leases")
    op.drop_column("leases", "comment")
