"""What the product costs, measured beside the same work hand-written on plain Temporal.

    python -m bench [--quick] [--json] [ROW…]

script          what the model says: ten rounds of one tool call each, then prose
model_server    the script as an HTTP server without latency, in a process of its own
handwritten     the reference: a workflow with two activities a round, and its worker
product         the product's worker, its sessions and turns
stage           the Temporal server, the model server and the workers of one run
sizes           events and bytes of workflow histories
measure         interleaved samples, their median and spread
rows            what is measured
report          the table, and the targets beside it
"""
