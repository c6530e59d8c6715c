"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "campaigns",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=48), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("budget", sa.BigInteger(), nullable=False),
        sa.Column("deadline", sa.Double(), nullable=True),
        sa.Column("lease_seconds", sa.Double(), nullable=True),
        sa.Column("rho", sa.Double(), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.Column("tasks", sa.BigInteger(), nullable=False),
        sa.Column("full", sa.BigInteger(), nullable=False),
        sa.Column("classes", sa.BigInteger(), nullable=False),
        sa.Column("spent", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("given", sa.BigInteger(), nullable=False),
        sa.Column("kept", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.BigInteger(), nullable=False),
        sa.Column("expired", sa.BigInteger(), nullable=False),
        sa.Column("released", sa.BigInteger(), nullable=False),
        sa.Column("closed_seq", sa.BigInteger(), nullable=True),
        sa.Column("closed_reason", sa.String(length=32), nullable=True),
        sa.Column("arrivals", sa.Double(), nullable=False),
        sa.Column("arrival_s", sa.Double(), nullable=False),
        sa.Column("completions", sa.Double(), nullable=False),
        sa.Column("work_s", sa.Double(), nullable=False),
        sa.Column("last_arrival", sa.Double(), nullable=True),
        sa.CheckConstraint("reserved >= 0", name=op.f("ck_campaigns_reserved_not_negative")),
        sa.CheckConstraint("spent <= kept", name=op.f("ck_campaigns_spent_was_told")),
        sa.CheckConstraint("spent >= 0 AND spent <= budget", name=op.f("ck_campaigns_budget_kept")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_campaigns")),
        sa.UniqueConstraint("id", name=op.f("uq_campaigns_id")),
    )
    op.create_table(
        "settings",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
    )
    op.create_table(
        "shelf",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_shelf")),
    )
    op.create_table(
        "batches",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("tasks", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_batches_campaign")),
        sa.PrimaryKeyConstraint("campaign", "key", name=op.f("pk_batches")),
    )
    op.create_table(
        "classes",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("prior", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_classes_campaign")),
        sa.PrimaryKeyConstraint("campaign", "number", name=op.f("pk_classes")),
    )
    op.create_table(
        "events",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_events_campaign")),
        sa.PrimaryKeyConstraint("campaign", "seq", name=op.f("pk_events")),
    )
    op.create_table(
        "leases",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("id", sa.String(length=100), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("leased_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("label", sa.Integer(), nullable=True),
        sa.Column("counted", sa.Boolean(), nullable=True),
        sa.CheckConstraint(
            "(label IS NOT NULL) = (status IN ('labelled', 'late'))", name=op.f("ck_leases_label_if_told")
        ),
        sa.CheckConstraint(
            "status IN ('leased', 'labelled', 'expired', 'released', 'late')", name=op.f("ck_leases_status_known")
        ),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_leases_campaign")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leases")),
        sa.UniqueConstraint("campaign", "task", "worker", name=op.f("uq_leases_campaign_task_worker")),
    )
    op.create_index(
        "ix_leases_expiring",
        "leases",
        ["campaign", "expires_at"],
        unique=False,
        sqlite_where=sa.text("status = 'leased'"),
        postgresql_where=sa.text("status = 'leased'"),
    )
    op.create_index(
        "ix_leases_open",
        "leases",
        ["campaign", "worker", "seq"],
        unique=False,
        sqlite_where=sa.text("status = 'leased'"),
        postgresql_where=sa.text("status = 'leased'"),
    )
    op.create_index("ix_leases_worker", "leases", ["campaign", "worker", "seq"], unique=False)
    op.create_table(
        "states",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("klass", sa.Integer(), nullable=False),
        sa.Column("node", sa.Integer(), nullable=False),
        sa.Column("w", sa.Integer(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("count >= 0", name=op.f("ck_states_count_not_negative")),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_states_campaign")),
        sa.PrimaryKeyConstraint("campaign", "klass", "node", "w", name=op.f("pk_states")),
    )
    op.create_table(
        "tasks",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("klass", sa.Integer(), nullable=False),
        sa.Column("lot", sa.Double(), nullable=False),
        sa.Column("node", sa.Integer(), nullable=False),
        sa.Column("w", sa.Integer(), nullable=False),
        sa.Column("labels", sa.Integer(), nullable=False),
        sa.Column("score", sa.Double(), nullable=True),
        sa.Column("last_seq", sa.BigInteger(), nullable=True),
        sa.Column("closed_seq", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("w >= 0 AND labels >= 0", name=op.f("ck_tasks_counts_not_negative")),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_tasks_campaign")),
        sa.PrimaryKeyConstraint("campaign", "number", name=op.f("pk_tasks")),
        sa.UniqueConstraint("campaign", "key", name=op.f("uq_tasks_campaign_key")),
    )
    op.create_index(
        "ix_tasks_score",
        "tasks",
        ["campaign", "score", "lot"],
        unique=False,
        sqlite_where=sa.text("score IS NOT NULL"),
        postgresql_where=sa.text("score IS NOT NULL"),
    )
    op.create_index("ix_tasks_state", "tasks", ["campaign", "klass", "node", "w", "lot"], unique=False)
    op.create_table(
        "workers",
        sa.Column("campaign", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=200), nullable=False),
        sa.Column("given", sa.BigInteger(), nullable=False),
        sa.Column("labels", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.BigInteger(), nullable=False),
        sa.Column("expired", sa.BigInteger(), nullable=False),
        sa.Column("released", sa.BigInteger(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("last_at", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["campaign"], ["campaigns.number"], name=op.f("fk_workers_campaign")),
        sa.PrimaryKeyConstraint("campaign", "worker", name=op.f("pk_workers")),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("workers")
    op.drop_index("ix_tasks_state", table_name="tasks")
    op.drop_index(
        "ix_tasks_score",
        table_name="tasks",
        sqlite_where=sa.text("score IS NOT NULL"),
        postgresql_where=sa.text("score IS NOT NULL"),
    )
    op.drop_table("tasks")
    op.drop_table("states")
    op.drop_index("ix_leases_worker", table_name="leases")
    op.drop_index(
        "ix_leases_open",
        table_name="leases",
        sqlite_where=sa.text("status = 'leased'"),
        postgresql_where=sa.text("status = 'leased'"),
    )
    op.drop_index(
        "ix_leases_expiring",
        table_name="leases",
        sqlite_where=sa.text("status = 'leased'"),
        postgresql_where=sa.text("status = 'leased'"),
    )
    op.drop_table("leases")
    op.drop_table("events")
    op.drop_table("classes")
    op.drop_table("batches")
    op.drop_table("shelf")
    op.drop_table("settings")
    op.drop_table("campaigns")
