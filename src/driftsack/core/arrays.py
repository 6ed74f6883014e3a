"""Types of the arrays that the library passes around."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Phase = npt.NDArray[np.int32]
"""The row of an instance that each round belongs to."""
