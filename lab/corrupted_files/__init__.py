"""Corrupted and malicious files: none may crash the process or be loaded as an impossible learner.

Every file begins as the file of a real learner and is then changed in one of two ways:

- *corrupted*: bits are flipped, parts are removed, moved or overwritten, or the file is truncated. It must be refused
  unless its content is unchanged.
- *malicious*: numbers, shapes, types, sizes and settings are changed by an attacker who knows the format and recomputes
  the digest. It must be refused, or the learner must be able to continue: it plays some rounds and is saved and loaded
  again.

A refusal is a ``FileFormatError`` that names the file; any other error is a failure. Compiled kernels do not check
bounds, so an index out of range may go undetected. :func:`attack_apart` therefore runs the code uncompiled, where such
an index raises an error, in a separate process, whose crash is a failure, too.
"""

from lab.corrupted_files.attacks import AttackReport, attack, attack_apart

__all__ = ["AttackReport", "attack", "attack_apart"]
