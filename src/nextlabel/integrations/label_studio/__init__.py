"""Label Studio: people label there, and nextlabel decides which task each of them gets next (decision 53).

``api`` sends requests to a Label Studio server; ``bridge`` brings labels in and next tasks out; ``connection`` makes or
finds the campaign of a project. Label Studio has the truth about labels, the campaign about leases and the budget.
Nothing else is stored: after a crash of either, the two are compared and the campaign follows.
"""
