"""Layer 5: experiments as data plus pure functions; nothing imports them but the command line."""
