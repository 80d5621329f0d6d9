"""Declarations of neural network operators."""

from . import (
    attention as attention,
)
from . import (
    convolution as convolution,
)
from . import (
    embedding as embedding,
)
from . import (
    grid_sampling as grid_sampling,
)
from . import (
    loss as loss,
)
from . import (
    margin as margin,
)
from . import (
    normalization as normalization,
)
from . import (
    pooling as pooling,
)
from . import (
    recurrent as recurrent,
)
from . import (
    resampling as resampling,
)
