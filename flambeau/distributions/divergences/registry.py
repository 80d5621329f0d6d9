"""The registry of Kullback-Leibler divergences, and the dispatch by types."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..._tensor import Tensor
from ..distribution import Distribution

KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}
#: what the dispatch found for pairs of types, until a function is registered
KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """A decorator: register a function for `kl_divergence(p, q)` of these types and their subclasses.

    Args:
        type_p, type_q: subclasses of `Distribution`.

    Raises:
        TypeError: an argument is no class.

    >>> import flambeau as torch
    >>> from flambeau.distributions import Normal, kl_divergence, register_kl
    >>> class MyNormal(Normal):
    ...     pass
    >>> @register_kl(MyNormal, MyNormal)
    ... def _kl(p, q):
    ...     return torch.zeros(())
    >>> kl_divergence(MyNormal(0., 1.), MyNormal(1., 1.))
    tensor(0.)
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorate(function: Any) -> Any:
        KL_REGISTRY[type_p, type_q] = function
        KL_MEMOIZE.clear()
        return function

    return decorate


def register_pairs(*pairs: tuple[type, type]) -> Callable[[Any], Any]:
    """A decorator: register a function for several pairs of types."""
    def decorate(function: Any) -> Any:
        for pair in pairs:
            register_kl(*pair)(function)
        return function

    return decorate


def _is_below(types: tuple[type, ...], others: tuple[type, ...]) -> bool:
    """Whether `types` are more special than `others`, compared first to last."""
    for x, y in zip(types, others, strict=True):
        if not issubclass(x, y):
            return False
        if x is not y:
            return True
    return True


def _most_special(matches: list[tuple[type, ...]]) -> tuple[type, ...]:
    best = matches[0]
    for match in matches[1:]:
        if match != best and _is_below(match, best):
            best = match
    return best


def dispatch_kl(type_p: type, type_q: type) -> Any:
    """The function of the most special registered supertypes of a pair, or NotImplemented."""
    matches: list[tuple[type, ...]] = [
        (p, q) for p, q in KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not matches:
        return NotImplemented
    left_p, left_q = _most_special(matches)
    right_q, right_p = _most_special([match[::-1] for match in matches])
    function = KL_REGISTRY[left_p, left_q]
    if function is not KL_REGISTRY[right_p, right_q]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl("
                      f"{left_p.__name__}, {right_q.__name__})", RuntimeWarning, stacklevel=3)
    return function


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence KL(p ‖ q) = ∫ p(x) log(p(x) / q(x)) dx.

    Args:
        p, q: distributions, whose batch shapes broadcast.

    Returns:
        a divergence for each pair of the batch.

    Raises:
        NotImplementedError: no formula is registered for the types.

    >>> import flambeau as torch
    >>> from flambeau.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(torch.zeros(1), 1.), Normal(1., 1.))
    tensor([0.5000])
    """
    pair = type(p), type(q)
    function = KL_MEMOIZE.get(pair)
    if function is None:
        function = KL_MEMOIZE[pair] = dispatch_kl(*pair)
    if function is NotImplemented:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
                                  f"{type(q).__name__}")
    result: Tensor = function(p, q)
    return result
