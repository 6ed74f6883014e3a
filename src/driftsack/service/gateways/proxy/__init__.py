"""``driftsack proxy``: an OpenAI-compatible endpoint that spends the budgets of a campaign."""
