"""What ``Adaptive`` earns beside another checkout, under drift, delays, losses, persistent noise and absurd bills."""
