"""Declarations of reductions, scans, sorting and statistics."""

from . import (
    differences as differences,
)
from . import (
    extrema as extrema,
)
from . import (
    moments as moments,
)
from . import (
    norm as norm,
)
from . import (
    ordering as ordering,
)
from . import (
    reductions as reductions,
)
from . import (
    scan as scan,
)
from . import (
    segments as segments,
)
from . import (
    softmax as softmax,
)
from . import (
    statistics as statistics,
)
