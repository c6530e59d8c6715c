"""The rules of a live campaign: who gets which task, what a label does, what it costs. No I/O and no clock.

``declaration`` and ``settings`` what a campaign is created with; ``states`` its vocabulary; ``transitions`` the life of
a lease; ``events`` the log; ``rules`` how a log is read; ``projection`` what an event changes;
``commands`` and ``intake`` what writes events; ``policy_tables`` and ``scoring`` the policy at work; ``ledger`` and
``overview`` what a store must offer.
"""
