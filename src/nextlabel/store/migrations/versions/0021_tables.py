"""All tables, as ``store.tables`` declares them: the first revision.

The next change of a table needs a revision of its own, and this one the tables written out as they were before it.
Databases of revisions below this one were never released; ``store.migrate`` refuses them.
"""

from __future__ import annotations

from alembic import op

from nextlabel.store.tables import create_tables, metadata

revision = "0021"
down_revision = None


def upgrade() -> None:
    """Make the tables."""
    create_tables(op.get_bind())


def downgrade() -> None:
    """Remove them."""
    metadata.drop_all(op.get_bind())
