"""The dashboard: pages for people, made from the journal alone, so that any replica can show any campaign."""
