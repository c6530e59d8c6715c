"""The worker's page.

``session`` who is there; ``step`` what they do, in one transaction; ``item`` how a payload is shown; ``words`` what is
said; ``routes`` the addresses.
"""
