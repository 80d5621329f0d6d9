"""`Embedding` and `EmbeddingBag`."""

from __future__ import annotations

from typing import Any, Self

from ..._tensor import Parameter, Tensor, no_grad
from ..._tensor import functions as fn
from .. import functional as F
from .. import init
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class Embedding(Module):
    """Lookup table: output[i] = weight[input[i]].

    The weight is initialized from N(0, 1).

    Args:
        num_embeddings: number of rows.
        embedding_dim: size of a row.
        padding_idx: index of a row that is initialized to 0 and receives no gradient.
        max_norm: rows with a larger norm are scaled down to it in place on lookup.
        norm_type: p of that norm.
        scale_grad_by_freq: divide the gradient of a row by the number of its occurrences in the input.
        sparse: request a sparse gradient.
        device: device of the weight.
        dtype: dtype of the weight.

    Shape:
        Input (*), int32 or int64; output (*, embedding_dim). `weight`: (num_embeddings, embedding_dim).

    Raises:
        AssertionError: `padding_idx` is out of range.

    >>> import flambeau as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2, 4, 5], [4, 3, 2, 9]])).shape
    flambeau.Size([2, 4, 3])
    """

    __constants__ = ["num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq",
                     "sparse"]

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool
    weight: Tensor

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, _weight: Tensor | None = None, _freeze: bool = False,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            if padding_idx < 0:
                padding_idx += num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            table = fn.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, requires_grad=not _freeze)
        self.sparse = sparse

    def reset_parameters(self) -> None:
        """Draw the weights from N(0, 1); the row `padding_idx` is set to 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + (", sparse=True" if self.sparse is not False else "")

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        max_norm: float | None = None, norm_type: float = 2.0,
                        scale_grad_by_freq: bool = False, sparse: bool = False) -> Self:
        """Make an embedding with a given weight, not trainable unless `freeze` is False.

        Args:
            embeddings: the weight, (num_embeddings, embedding_dim).
            freeze: whether the weight has `requires_grad=False`.
            padding_idx: see the class.
            max_norm: see the class.
            norm_type: see the class.
            scale_grad_by_freq: see the class.
            sparse: see the class.

        Raises:
            AssertionError: `embeddings` is not 2-D.

        >>> import flambeau as torch
        >>> table = torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.3], [4.0, 5.1]]))
        >>> table(torch.tensor([1]))
        tensor([[4.0000, 5.1000]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(num_embeddings=rows, embedding_dim=columns, _weight=embeddings, _freeze=freeze,
                   padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
                   scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


class EmbeddingBag(Module):
    """Sums, means or maxima of bags of embeddings: `Embedding`, then a reduction, without the embeddings in between.

    The weight is initialized from N(0, 1).

    Args:
        num_embeddings: number of rows.
        embedding_dim: size of a row.
        max_norm: rows with a larger norm are scaled down to it in place on lookup.
        norm_type: p of that norm.
        scale_grad_by_freq: divide the gradient of a row by the number of its occurrences in the input; not with "max".
        mode: "sum", "mean" or "max".
        sparse: request a sparse gradient; not with "max".
        include_last_offset: `offsets` has one more element, the end of the last bag.
        padding_idx: index of a row that is skipped, initialized to 0.
        device: device of the weight.
        dtype: dtype of the weight.

    Shape:
        Input (B, N), one bag per row, or (M,) with offsets (B,); output (B, embedding_dim). `weight`: (num_embeddings,
        embedding_dim).

    Raises:
        AssertionError: `padding_idx` is out of range.

    >>> import flambeau as torch
    >>> bags = torch.nn.EmbeddingBag(10, 3, mode="sum")
    >>> bags(torch.tensor([1, 2, 4, 5, 4, 3, 2, 9]), torch.tensor([0, 4])).shape
    flambeau.Size([2, 3])
    """

    __constants__ = ["num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode",
                     "sparse", "include_last_offset", "padding_idx"]

    num_embeddings: int
    embedding_dim: int
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    weight: Tensor
    mode: str
    sparse: bool
    include_last_offset: bool
    padding_idx: int | None

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                 _weight: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if padding_idx != 0 and not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            if padding_idx < 0:
                padding_idx += num_embeddings
        self.padding_idx = padding_idx
        if _weight is None:
            self.weight = Parameter(fn.empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
            self.reset_parameters()
        else:
            if list(_weight.shape) != [num_embeddings, embedding_dim]:
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def reset_parameters(self) -> None:
        """Draw the weights from N(0, 1); the row `padding_idx` is set to 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Reduce bags of rows.

        Args:
            input: indices, int32 or int64, see the class.
            offsets: (B,), the start of each bag in a 1-D input.
            per_sample_weights: factor of each row, of the input's shape; mode "sum" only.
        """
        return F.embedding_bag(input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
                               self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx)

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings!r}, {self.embedding_dim!r}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm!r}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type!r}"
        if self.scale_grad_by_freq is not False:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq!r}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx!r}"

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None,
                        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
                        sparse: bool = False, include_last_offset: bool = False,
                        padding_idx: int | None = None) -> Self:
        """Make an embedding bag with a given weight, not trainable unless `freeze` is False.

        Args:
            embeddings: the weight, (num_embeddings, embedding_dim).
            freeze: whether the weight has `requires_grad=False`.
            max_norm: see the class.
            norm_type: see the class.
            scale_grad_by_freq: see the class.
            mode: see the class.
            sparse: see the class.
            include_last_offset: see the class.
            padding_idx: see the class.

        Raises:
            AssertionError: `embeddings` is not 2-D.

        >>> import flambeau as torch
        >>> bags = torch.nn.EmbeddingBag.from_pretrained(torch.tensor([[1.0, 2.0], [4.0, 5.0]]))
        >>> bags(torch.tensor([[0, 1]]))
        tensor([[2.5000, 3.5000]])
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        bags = cls(num_embeddings=rows, embedding_dim=columns, _weight=embeddings, max_norm=max_norm,
                   norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse,
                   include_last_offset=include_last_offset, padding_idx=padding_idx)
        bags.weight.requires_grad = not freeze
        return bags
