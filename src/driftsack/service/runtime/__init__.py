"""Campaigns in the memory of their owner: group commit, snapshots, recovery, recall."""
