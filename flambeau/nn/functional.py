"""The functions behind the layers, without state: `import flambeau.nn.functional as F`.

The operators come from the tensor's own functions; around them stand, family by family in `functionals`,
the formulas, the deprecated arguments, and the checks.
"""

from __future__ import annotations

from ..tensor import functions as _fn
from .functionals.activation import (
    celu,
    elu,
    elu_,
    glu,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    mish,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    threshold_,
)
from .functionals.attention import multi_head_attention_forward
from .functionals.distance import cosine_similarity, normalize, pairwise_distance
from .functionals.dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from .functionals.lookup import embedding, one_hot
from .functionals.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_embedding_loss,
    cross_entropy,
    gaussian_nll_loss,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .functionals.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    rms_norm,
)
from .functionals.padding import pad
from .functionals.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)
from .functionals.resample import (
    channel_shuffle,
    interpolate,
    pixel_shuffle,
    pixel_unshuffle,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)

#: operators that are the same under both roofs
_OPERATORS = (
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "celu_", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc", "gelu", "hardshrink", "hardtanh_",
    "linear", "logsigmoid", "native_channel_shuffle", "pairwise_distance", "pdist", "prelu", "relu_", "rrelu_",
    "scaled_dot_product_attention", "selu_", "softplus", "softshrink",
)
globals().update({name: getattr(_fn, name) for name in _OPERATORS
                  if name not in globals() and hasattr(_fn, name)})

__all__ = sorted(name for name, value in globals().items() if callable(value) and not name.startswith("_"))
