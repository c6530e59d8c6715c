"""How often each worker was told that there is nothing for them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the column."""
    op.add_column("workers", sa.Column("turned_away", sa.BigInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("workers", "turned_away")
