"""Where campaigns are kept: in memory, a SQLite file or PostgreSQL, all to the contract of ``campaign.ledger``."""
