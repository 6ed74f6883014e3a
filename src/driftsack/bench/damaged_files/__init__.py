"""Damaged and crafted files: none may crash the process, and none that is impossible may be loaded.

Every file begins as that of a real learner of some policy and is then corrupted in one of these ways:

- *damaged*: bits are flipped, parts are cut out, moved or overwritten, or the file ends early. It must be refused,
  unless the content is the same.
- *crafted*: numbers, shapes, types, sizes and settings are changed by someone who knows the format and computes the
  digest again. It must be refused, or the learner must be able to continue: it is asked and told for some rounds, and
  saved and loaded again.

A refusal is a ``FileFormatError`` that names the file; any other error is a failure. Compiled kernels do not check
their indices, so an index out of range may go unnoticed. :func:`attack_apart` runs the same code without compilation,
where it raises an error, in a process of its own, whose end is a failure, too.
"""

from driftsack.bench.damaged_files.attacks import Report, attack, attack_apart

__all__ = ["Report", "attack", "attack_apart"]
