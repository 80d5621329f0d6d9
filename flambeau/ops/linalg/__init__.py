"""Declarations of linear algebra operators."""

from . import (
    decomposition as decomposition,
)
from . import (
    distance as distance,
)
from . import (
    products as products,
)
from . import (
    solve as solve,
)
