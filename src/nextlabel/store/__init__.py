"""Where campaigns are kept: in memory, a SQLite file or PostgreSQL. ``store.sql`` is the store."""
