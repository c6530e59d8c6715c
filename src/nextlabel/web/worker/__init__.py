"""The workers' page.

``routes`` has its addresses; ``session`` says who is working; ``steps`` what workers do, as commands; ``page_view`` and
``task_view`` how it is shown; ``texts`` what the page says, in the languages of the folder ``languages``.
"""
