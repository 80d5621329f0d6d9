"""Texts of the errors of a pass that reaches too few parameters, or one of them twice: PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence


def unfinished(find_unused: bool, rank: int, missing: Sequence[int]) -> str:
    """The text for parameters that got no gradient in the last pass.

    Args:
        find_unused: whether parameters may get none.
        rank: this process.
        missing: their numbers.
    """
    text = ("Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your module has parameters that were not used in producing loss. ")
    if find_unused:
        text += ("Since `find_unused_parameters=True` is enabled, this likely  means that not all `forward` outputs "
                 "participate in computing loss. You can fix this by making sure all `forward` function outputs "
                 "participate in calculating loss. ")
    else:
        text += ("You can enable unused parameter detection by passing the keyword argument "
                 "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure "
                 "all `forward` function outputs participate in calculating loss. ")
    text += ("\nIf you already have done the above, then the distributed data parallel module wasn't able to locate "
             "the output tensors in the return value of your module's `forward` function. Please include the loss "
             "function and the structure of the return value of `forward` of your module when reporting this issue "
             "(e.g. list, dict, iterable).")
    if missing:
        text += (f"\nParameter indices which did not receive grad for rank {rank}: {' '.join(map(str, missing))}\n In "
                 "addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to "
                 "print out information about which particular parameters did not receive gradient on this rank as "
                 "part of this error")
    return text


def ready_twice(index: int, name: str | None) -> str:
    """The text for a parameter that gets a second gradient in a pass.

    Args:
        index: its number.
        name: its name, if it is known.
    """
    return ("Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use "
            "of a module parameter outside the `forward` function. Please make sure model parameters are not shared "
            "across multiple concurrent forward-backward passes. or try to use _set_static_graph() as a workaround if "
            "this module graph does not change during training loop.2) Reused parameters in multiple reentrant "
            "backward passes. For example, if you use multiple `checkpoint` functions to wrap the same part of your "
            "model, it would result in the same set of parameters been used by different reentrant backward passes "
            "multiple times, and hence marking a variable ready multiple times. DDP does not support such use cases "
            "in default. You can try to use _set_static_graph() as a workaround if your module graph does not change "
            f"over iterations.\nParameter at index {index}{f' with name {name}' if name else ''} has been marked as "
            "ready twice. This means that multiple autograd engine  hooks have fired for this particular parameter "
            "during this iteration. You can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or "
            "DETAIL to print parameter names for further debugging.")


__all__ = ["ready_twice", "unfinished"]
