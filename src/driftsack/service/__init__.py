"""``driftsack serve``: campaigns that outlive their process, with budgets that several workers share.

A *campaign* is a learner that a service keeps. The journal of its events is the source of truth: its state is a
function of its configuration and its events, so a crash loses nothing that was acknowledged, and any decision can be
recomputed.

- ``journal``: events, segments and the chain of their hashes.
- ``campaign``: what a command does to a campaign, without a server or a store.
- ``store``: where journals are kept, SQLite or PostgreSQL.
- ``commits``: group commit and snapshots.
- ``owner``: recovery, leases, expiry and failover.
- ``http``: the API.

Needs the extra: ``pip install 'driftsack[service]'``.
"""
