"""How workers stand with the requester, labels that were dropped, and settings that were changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0005"


def upgrade() -> None:
    """Add the columns; what each worker's labels cost the budget follows from the leases."""
    op.add_column("campaigns", sa.Column("amended", sa.Text(), nullable=False, server_default="{}"))
    op.add_column("leases", sa.Column("dropped", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("workers", sa.Column("bought", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("workers", sa.Column("dropped", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("workers", sa.Column("standing", sa.String(length=16), nullable=False, server_default="active"))
    op.add_column("workers", sa.Column("reason", sa.String(length=500), nullable=False, server_default=""))
    op.execute(
        "UPDATE workers SET bought = (SELECT count(*) FROM leases WHERE leases.campaign = workers.campaign "
        "AND leases.worker = workers.worker AND leases.counted)"
    )


def downgrade() -> None:
    """Drop the columns."""
    for name in ("reason", "standing", "dropped", "bought"):
        op.drop_column("workers", name)
    op.drop_column("leases", "dropped")
    op.drop_column("campaigns", "amended")
