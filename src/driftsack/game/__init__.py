"""The rules of the game, once: ledger, admission, stop rule, outcomes drawn from a world, records and units."""
