"""Gather, scatter and replacement of a strided view's elements in its base.

In-place writes through views, and views that are regenerated after such writes, are differentiated by these. A geometry
(`_tensor/views/geometry.py`) describes the view's position in its base.
"""

from __future__ import annotations

from ..declare import linear, op

_OPTIONS = {"opmath": False, "holomorphic": False, "expose": ()}


@linear(name="_take_strided", node="AsStridedBackward0", saved="", **_OPTIONS)
def _take_strided(xp, input, *, geometry):
    """The view's elements of its base."""
    return xp.take_strided(input, geometry)


_take_strided.vmap(lambda xp, batch, input, geometry: xp._take_strided(
    input, geometry=geometry.repeated(batch.sizes)))
_take_strided.vjp(input=lambda xp, g, geometry: xp._embed_strided(g, geometry=geometry))


@linear(name="_embed_strided", node="AsStridedBackwardBackward0", **_OPTIONS)
def _embed_strided(xp, input, *, geometry):
    """Zeros in the base's shape with the input accumulated at the view's elements."""
    return xp.embed_strided(input, geometry)


_embed_strided.vmap(lambda xp, batch, input, geometry: xp._embed_strided(
    input, geometry=geometry.repeated(batch.sizes)))
_embed_strided.vjp(input=lambda xp, g, geometry: xp._take_strided(g, geometry=geometry))


@op(name="_replace_strided", node="AsStridedScatterBackward0", saved="", **_OPTIONS)
def _replace_strided(xp, input, source, *, geometry):
    """The base with the view's elements replaced by `source`."""
    return xp.replace_strided(input, source, geometry)


_replace_strided.vmap(lambda xp, batch, input, source, geometry: xp._replace_strided(
    input if batch.on[0] else batch.expand_levels(input), source if batch.on[1] else batch.expand_levels(source),
    geometry=geometry.repeated(batch.sizes)))
_replace_strided.vjp(
    input=lambda xp, g, geometry: xp._replace_strided(
        g, xp.zeros_like(xp._take_strided(g, geometry=geometry)), geometry=geometry),
    source=lambda xp, g, geometry: xp._take_strided(g, geometry=geometry))
_replace_strided.jvp(lambda xp, input, source, t_input, t_source, geometry: xp._replace_strided(
    xp.zeros_like(input) if t_input is None else t_input,
    xp.zeros_like(source) if t_source is None else t_source, geometry=geometry))
