"""``driftsack serve``: campaigns that outlive their process, with budgets that several workers share.

A *campaign* is a learner that a service keeps. The journal of its events is the source of truth: its state is a
function of its configuration and its events, so a crash loses nothing that was acknowledged, and any decision can be
recomputed.

The packages, from the bottom; each imports only from those above it in this list:

- ``domain``: campaigns, their configuration, events and amounts, without I/O and without a clock.
- ``store``: journals, budgets, snapshots and keys in SQLite or PostgreSQL.
- ``runtime``: campaigns in memory, group commit, recovery, leases and failover.
- ``projections``: views derived from the journal, such as the dashboard's data, explanations and metrics.
- ``web``: the API, the pages and the server.
- ``gateways``: the proxy and the LiteLLM plugin.
- ``demo``: a service with simulated traffic.

Needs the extra: ``pip install 'driftsack[service]'``.
"""
