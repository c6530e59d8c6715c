"""The workers' page.

``routes`` has its addresses; ``session`` the cookies that say who is working; ``actions`` what workers do, as commands;
``payload_view`` how a task is shown; ``choices`` the answers and their keys; ``texts`` what the page says, in the
languages of the folder ``languages``.
"""
