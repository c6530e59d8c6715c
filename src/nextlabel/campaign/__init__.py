"""A live campaign: who gets which task, what a label does, what it costs. No input or output and no clock.

``declaration`` has the fields of the settings, ``settings`` checks them; ``states`` the vocabulary; ``transitions`` the
life of a lease; ``events`` the log. ``commands`` and ``intake`` write events, and ``state`` follows them. ``rates``
learns how often workers come, ``crowd_model`` how good they are; ``policy_tables`` and ``scoring`` serve policies that
take workers to be alike; ``rows`` and ``records`` are what a store keeps.
"""
