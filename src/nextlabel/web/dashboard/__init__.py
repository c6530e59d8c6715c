"""The requester's dashboard.

``access`` says who may see it; ``state`` holds what is kept between requests; ``summaries`` and ``forecasts`` compute
what it shows; ``view`` prepares a campaign for the templates; ``routes`` has the addresses.
"""
