"""Which operators autocast runs in which dtype on CUDA devices.

Source: https://docs.pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior
"""

from __future__ import annotations

LOWER_PRECISION = frozenset((
    "__matmul__", "__rmatmul__", "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "chain_matmul", "conv1d",
    "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "convolution", "gru",
    "gru_cell", "linalg_matmul", "linalg_multi_dot", "linalg_vecdot", "linear", "lstm", "lstm_cell", "matmul", "mm",
    "mv", "prelu", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell", "scaled_dot_product_attention",
    "_native_multi_head_attention",
))
FULL_PRECISION = frozenset((
    "__pow__", "__rdiv__", "__rpow__", "__rtruediv__", "acos", "arccos", "arcsin", "asin", "cdist", "cosh",
    "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "cumprod",
    "cumsum", "dist", "erfinv", "exp", "expm1", "group_norm", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "layer_norm", "linalg_matrix_norm", "linalg_norm", "linalg_vector_norm", "log", "log10", "log1p", "log2",
    "log_softmax", "logsumexp", "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "native_layer_norm", "nll_loss", "nll_loss2d", "norm", "normalize", "nuclear_norm", "pdist", "poisson_nll_loss",
    "pow", "prod", "reciprocal", "renorm", "rsqrt", "sinh", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin",
    "softplus", "sum", "tan", "triplet_margin_loss", "interpolate", "upsample", "upsample_bilinear",
    "upsample_nearest",
))
WIDEST = frozenset((
    "addcdiv", "addcmul", "atan2", "bilinear", "cat", "concat", "concatenate", "cross", "dot", "grid_sample",
    "grid_sampler", "index_put", "scatter_add", "stack", "tensordot", "vdot",
))
BANNED = frozenset(("binary_cross_entropy",))
UNSAFE = ("torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\nMany models use a "
          "sigmoid layer right before the binary cross entropy layer.\nIn this case, combine the two layers using "
          "torch.nn.functional.binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss.  "
          "binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast.")

__all__ = ["BANNED", "FULL_PRECISION", "LOWER_PRECISION", "UNSAFE", "WIDEST"]
