"""The programs of the laboratory: each parses its options, calls one function and prints the result."""
