"""``Client``: ask and tell over HTTP."""
