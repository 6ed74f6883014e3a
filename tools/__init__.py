"""What the documentation site needs besides pages."""
