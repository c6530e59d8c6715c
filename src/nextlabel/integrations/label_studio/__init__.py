"""Label Studio: people label there, and nextlabel decides which task each of them gets next (decision 53).

=============== =====================================================================================================
module          what it does
=============== =====================================================================================================
``api``         requests to a Label Studio server, and what its errors mean
``project``     what a project's configuration, tasks and annotations say
``tabs``        one Data Manager tab per annotator, which shows the task that is theirs
``bridge``      labels come in, next tasks go out; whatever was missed is read again
``connection``  which campaign belongs to a project, made when it is first connected
``webhooks``    Label Studio tells of annotations here
``results``     the campaign's results as predictions
=============== =====================================================================================================

Label Studio has the truth about labels, the campaign about leases and the budget. Nothing else is stored: after a crash
of either, the two are compared and the campaign follows.
"""
