"""The wire formats that callers and upstreams speak, one file each, and the translations between them."""
