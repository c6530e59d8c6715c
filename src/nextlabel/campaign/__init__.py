"""The life of a live campaign: who gets which task, what a label does, what it costs. No I/O, no clock of its own.

``config`` what a campaign is set up with; ``transitions`` the life of a lease; ``events`` what the log says;
``ledger`` what a store must offer; ``project`` what an event changes; ``life`` the commands; ``desk`` the policy.
"""
