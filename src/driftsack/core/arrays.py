"""Array types used throughout the library."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Phase = npt.NDArray[np.int32]
"""(T,) for each round, the index of its row in an instance."""
