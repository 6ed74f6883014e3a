"""The rules of the game, shared by all drivers: ledger, admission, stop rule, outcomes, records and units."""
