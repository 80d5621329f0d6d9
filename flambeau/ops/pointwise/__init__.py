"""Declarations of pointwise operators."""

from . import (
    activation as activation,
)
from . import (
    arithmetic as arithmetic,
)
from . import (
    bessel as bessel,
)
from . import (
    comparison as comparison,
)
from . import (
    complex as complex,
)
from . import (
    exponential as exponential,
)
from . import (
    logical as logical,
)
from . import (
    orthogonal_polynomials as orthogonal_polynomials,
)
from . import (
    rounding as rounding,
)
from . import (
    scalars as scalars,
)
from . import (
    selection as selection,
)
from . import (
    special as special,
)
from . import (
    trigonometric as trigonometric,
)
