"""The life of a live campaign: who gets which task, what a label does, what it costs. No I/O, no clock of its own.

``config`` settings; ``transitions`` the life of a lease; ``events`` the log; ``ledger`` what a store must offer;
``projection`` what an event changes; ``commands`` the commands; ``table_cache`` the tables of the policy.
"""
