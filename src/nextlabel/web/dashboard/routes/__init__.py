"""The dashboard's addresses, by what they are about.

================================== =================================================================
address                            is
================================== =================================================================
GET  /sign-in, POST                the form for the requester's token; POST /sign-out
GET  /                             all campaigns
GET  /campaigns/{id}?before=SEQ    one campaign; ``before`` pages through its log
GET  /campaigns/{id}/live          what changed since event ``after``, as JSON; 204 if nothing did
POST /campaigns/{id}/pause         also /resume and /settings (budget, deadline, lease_seconds)
GET  /campaigns/{id}/tasks/{n}     one task with its labels by worker
GET  /campaigns/{id}/links, POST   links for workers
GET  /campaigns/{id}/results.csv   results; also .jsonl
GET  /new, POST                    choose a file
GET  /new/{draft}, POST            say what it is and make the campaign
GET  /new/{draft}/curve            what a budget buys, as JSON; 202 while it is worked out
================================== =================================================================
"""
