"""The requester's dashboard.

``access`` says who may see it, and has the pages for signing in and for tokens; ``state`` holds what is kept between
requests, and ``forecasts`` computes some of it; ``view`` prepares a campaign for the templates; ``routes`` has the rest
of the addresses.
"""
