"""Several tokens with names and roles, sessions that end, links that can be revoked, and what a batch consisted of."""

from __future__ import annotations

import time

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
#: Where the only token was kept before, and what it is called from now on.
SETTING, NAME = "requester_token", "requester"


def upgrade() -> None:
    """Add the tables, and give the requester's token a name."""
    op.create_table(
        "access_tokens",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_access_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_access_tokens_hash")),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sessions")),
    )
    op.create_table(
        "link_versions",
        sa.Column("campaign", sa.String(length=48), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("campaign", "worker", name=op.f("pk_link_versions")),
    )
    op.add_column("batches", sa.Column("digest", sa.String(length=64), nullable=True))
    connection, settings, tokens = op.get_bind(), _settings(), _tokens()
    hash = connection.execute(sa.select(settings.c.value).where(settings.c.name == SETTING)).scalar()
    if hash is not None:
        connection.execute(sa.insert(tokens).values(name=NAME, role="requester", hash=hash, created_at=time.time()))
        connection.execute(sa.delete(settings).where(settings.c.name == SETTING))


def downgrade() -> None:
    """Keep the requester's token alone."""
    connection, settings, tokens = op.get_bind(), _settings(), _tokens()
    hash = connection.execute(sa.select(tokens.c.hash).where(tokens.c.name == NAME)).scalar()
    if hash is not None:
        connection.execute(sa.insert(settings).values(name=SETTING, value=hash))
    op.drop_column("batches", "digest")
    for table in ("link_versions", "sessions", "access_tokens"):
        op.drop_table(table)


def _settings() -> sa.TableClause:
    return sa.table("settings", sa.column("name"), sa.column("value"))


def _tokens() -> sa.TableClause:
    return sa.table("access_tokens", *(sa.column(name) for name in ("name", "role", "hash", "created_at")))
