"""Declarations of views, copies, joins and indexing."""

from . import (
    batched_indexing as batched_indexing,
)
from . import (
    copying as copying,
)
from . import (
    indexing as indexing,
)
from . import (
    joining as joining,
)
from . import (
    masking as masking,
)
from . import (
    random as random,
)
from . import (
    strided_views as strided_views,
)
from . import (
    view_copies as view_copies,
)
from . import (
    views as views,
)
