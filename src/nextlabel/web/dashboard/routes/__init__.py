"""The addresses of the dashboard.

================================== =================================================================
address                            shows or does
================================== =================================================================
GET  /sign-in, POST                the form for the requester's token; POST /sign-out
GET  /                             all campaigns
GET  /campaigns/{id}?before=SEQ    one campaign; ``before`` pages through its log
GET  /campaigns/{id}/live          what has changed since event ``after``, as JSON; 204 if nothing has
POST /campaigns/{id}/pause         also /resume and /settings
GET  /campaigns/{id}/edit, POST    what workers see: name, question, labels, instructions, language, columns
GET  /campaigns/{id}/delete, POST  delete the campaign, whose id is typed in again
POST /campaigns/{id}/predictions   a model's predictions, from a file
GET  /campaigns/{id}/tasks/{n}     one task with its labels by worker
GET  /campaigns/{id}/worker?name=N  one worker; POST pauses, blocks, restores, drops and restores labels
GET  /campaigns/{id}/workers.csv   what each worker did and is owed; also .jsonl
GET  /campaigns/{id}/links, POST   links for workers; POST .../links/revoke ends them
GET  /campaigns/{id}/platforms     the campaign on Prolific and Mechanical Turk; POST takes Prolific's export
GET  /campaigns/{id}/bonuses.csv   what a platform's workers are owed, as it takes it
GET  /campaigns/{id}/webhooks, POST  addresses that are told what happens; POST adds, tries, enables, removes
GET  /campaigns/{id}/results.csv   results; also .jsonl
GET  /campaigns/{id}/labels.csv    every worker's answers; also .jsonl
GET  /new, POST                    choose a file
GET  /new/{upload}, POST            describe the file and create the campaign
GET  /new/{upload}/curve            what a budget buys, as JSON; 202 while it is computed
================================== =================================================================
"""
