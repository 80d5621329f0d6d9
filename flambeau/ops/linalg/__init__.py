"""Declarations of linear algebra operators."""

from . import (
    decomposition as decomposition,
)
from . import (
    distance as distance,
)
from . import (
    matmul as matmul,
)
from . import (
    solve as solve,
)
