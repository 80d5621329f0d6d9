"""Declarations of linear algebra operators."""

from . import (
    decomposition as decomposition,
)
from . import (
    determinant as determinant,
)
from . import (
    distance as distance,
)
from . import (
    factorization as factorization,
)
from . import (
    matmul as matmul,
)
from . import (
    reflectors as reflectors,
)
from . import (
    solve as solve,
)
from . import (
    triangular as triangular,
)
