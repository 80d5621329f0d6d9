"""`torch.nn.functional`: stateless layers, activations and losses.

Names in `_OPERATORS` are tensor functions, re-exported. The rest is defined in `functionals/`, one file per family:
compositions of operators, argument checks, deprecated arguments.
"""

from __future__ import annotations

from .._tensor import functions as _fn
from .functionals.activation import *  # noqa: F403
from .functionals.attention import *  # noqa: F403
from .functionals.distance import *  # noqa: F403
from .functionals.dropout import *  # noqa: F403
from .functionals.embedding import *  # noqa: F403
from .functionals.loss import *  # noqa: F403
from .functionals.margin_loss import *  # noqa: F403
from .functionals.normalization import *  # noqa: F403
from .functionals.padding import *  # noqa: F403
from .functionals.pooling import *  # noqa: F403
from .functionals.resample import *  # noqa: F403

#: tensor functions re-exported unchanged
_OPERATORS = (
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "celu_", "ctc_loss", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc", "gelu", "hardshrink", "hardtanh_",
    "linear", "logsigmoid", "max_unpool1d", "max_unpool2d", "max_unpool3d", "native_channel_shuffle", "pdist", "prelu",
    "relu_", "rrelu_", "scaled_dot_product_attention", "selu_", "softplus", "softshrink",
)
globals().update({name: getattr(_fn, name) for name in _OPERATORS if hasattr(_fn, name)})
unfold, fold = _fn.unfolded, _fn.folded  # `fn.unfold` is Tensor.unfold, which differs

__all__ = sorted(  # noqa: PLE0605
    name for name, value in globals().items() if callable(value) and not name.startswith("_"))
