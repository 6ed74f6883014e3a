"""The dashboard. It reads only the journal, so any replica can show any campaign."""
