"""The soak of learners: random operations on every policy with exact arithmetic beside them."""
