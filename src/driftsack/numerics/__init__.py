"""Layer 1: kernels without a domain. Tiny simplex, exact windows, ledger, draws."""
