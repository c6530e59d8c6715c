"""Imports of many tasks, which are set aside first and published as a whole."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
ACTIVE = "state IN ('staging', 'publishing', 'ranking')"


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "imports",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("campaign", sa.String(length=48), nullable=False),
        sa.Column("batch", sa.String(length=200), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("owner", sa.String(length=300), nullable=False),
        sa.Column("started_at", sa.Double(), nullable=False),
        sa.Column("beat_at", sa.Double(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.Column("known", sa.BigInteger(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=True),
        sa.Column("config", sa.Text(), nullable=True),
        sa.Column("priors", sa.Text(), nullable=False),
        sa.Column("counts", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_imports")),
    )
    op.create_index(
        "ix_imports_active",
        "imports",
        ["campaign"],
        unique=True,
        sqlite_where=sa.text(ACTIVE),
        postgresql_where=sa.text(ACTIVE),
    )
    op.create_index("ix_imports_campaign", "imports", ["campaign", "started_at"])
    op.create_table(
        "import_chunks",
        sa.Column("import", sa.String(length=32), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["import"], ["imports.id"], name=op.f("fk_import_chunks_import")),
        sa.PrimaryKeyConstraint("import", "first", name=op.f("pk_import_chunks")),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("import_chunks")
    op.drop_index("ix_imports_campaign", "imports")
    op.drop_index("ix_imports_active", "imports")
    op.drop_table("imports")
