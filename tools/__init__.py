"""Scripts for the documentation site, the browser checks and the release."""
