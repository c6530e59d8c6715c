"""The requester's dashboard.

``mount`` adds it to the service; ``access`` and ``session`` say who may see it; ``state`` holds what is kept between
requests; ``state_summary``, ``bound_view``, ``forecast_view`` and ``worker_summaries`` compute what it shows, the slow
ones in the ``background``; ``view`` prepares a campaign for the templates; ``uploads``, ``campaign_form`` and
``budget_curve`` create campaigns; ``routes`` has the addresses.
"""
