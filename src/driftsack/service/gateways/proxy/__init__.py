"""``driftsack proxy``: an endpoint for language models that spends the budgets of campaigns."""
