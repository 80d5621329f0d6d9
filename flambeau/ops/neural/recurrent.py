"""LSTM and GRU layers: all steps of one layer and direction as one operator, as in PyTorch's kernels.

The forward stores intermediate results in the list `saved` for first derivatives. Formulas that are differentiated
again recompute all steps.
"""

from __future__ import annotations

from ..declare import composite, op


def _affine(xp, x, weight, bias):
    product = xp.matmul(x, xp.transpose(weight, -2, -1))
    return product if bias is None else product + bias


def _steps(xp, x, backwards):
    """Return the steps of a sequence in the order of computation."""
    parts = list(xp.unbind(x, dim=0))
    return parts[::-1] if backwards else parts


def _stack_steps(xp, parts, backwards):
    """Return the inverse of `_steps`."""
    return xp.stack(parts[::-1] if backwards else parts, dim=0)


def _concatenate(xp, parts):
    """Concatenate (N, H) tensors along the features."""
    return xp.cat(parts, dim=1)


def _split(xp, x, count):
    return xp.split_with_sizes(x, split_sizes=(x.shape[1] // count,) * count, dim=1)


def _affine_gradients(xp, by_input, by_state, input, states, weight_ih, backwards, needs):
    """Return the gradients of the input, the weights and the biases.

    Args:
        by_input, by_state: per step, the gradients of the affine maps of the input and of the hidden state.
        states: the hidden state before each step.
    """
    by_input, by_state = _stack_steps(xp, by_input, backwards), _stack_steps(xp, by_state, backwards)
    rows = (-1, by_input.shape[2])
    by_input_t = xp.transpose(xp.reshape(by_input, rows), 0, 1)
    return (xp.matmul(by_input, weight_ih) if needs[0] else None,
            xp.matmul(by_input_t, xp.reshape(input, (-1, input.shape[2]))) if needs[1] else None,
            xp.matmul(xp.transpose(xp.reshape(by_state, rows), 0, 1),
                      xp.reshape(_stack_steps(xp, states, backwards), (-1, states[0].shape[1]))) if needs[2] else None,
            xp.sum(by_input, (0, 1)) if needs[3] else None,
            xp.sum(by_state, (0, 1)) if needs[4] else None)


# ----- LSTM -----------------------------------------------------------------------------


def _lstm_layer(xp, input, weight_ih, weight_hh, bias_ih, bias_hh, hidden, cell, *, backwards, saved):
    """The hidden states of all steps (L, N, H), the last hidden state and the last cell state (N, H).

    Args:
        backwards: whether to process the sequence in reverse.
        saved: a list that receives the gates and cell states of all steps.
    """
    return xp.lstm_layer(input, weight_ih, weight_hh, bias_ih, bias_hh, hidden, cell, backwards, saved)


@composite(expose=())
def _lstm_layer_backward(xp, input, weight_ih, weight_hh, hidden, cell, output, bias_ih=None, bias_hh=None, g0=None,
                         g1=None, g2=None, *, backwards, saved, needs):
    """The gradients of the inputs."""
    steps = []
    state = hidden, cell
    for x in _steps(xp, _affine(xp, input, weight_ih, bias_ih), backwards):
        h, c = state
        i, f, g, o = _split(xp, _affine(xp, h, weight_hh, bias_hh) + x, 4)
        gates = xp.sigmoid(i), xp.sigmoid(f), xp.tanh(g), xp.sigmoid(o)
        new = gates[1] * c + gates[0] * gates[2]
        steps.append((h, c, *gates, xp.tanh(new)))
        state = gates[3] * steps[-1][-1], new
    by_h = xp.zeros_like(hidden) if g1 is None else g1
    by_c = xp.zeros_like(cell) if g2 is None else g2
    grads = [None] * len(steps) if g0 is None else _steps(xp, g0, backwards)
    slopes = []
    for (_, c, i, f, g, o, tanh_c), grad in zip(steps[::-1], grads[::-1], strict=True):
        by_h = by_h if grad is None else by_h + grad
        by_c = by_c + by_h * o * (1 - tanh_c * tanh_c)
        slopes.append(_concatenate(xp, [by_c * g * i * (1 - i), by_c * c * f * (1 - f), by_c * i * (1 - g * g),
                                   by_h * tanh_c * o * (1 - o)]))
        by_c = by_c * f
        by_h = xp.matmul(slopes[-1], weight_hh)
    slopes.reverse()
    states = [step[0] for step in steps]
    return (*_affine_gradients(xp, slopes, slopes, input, states, weight_ih, backwards, needs), by_h, by_c)


# ----- GRU ------------------------------------------------------------------------------


@op(name="_gru_layer", node="StackBackward0", outputs=("output", "last"), returns_namedtuple=False, expose=())
def _gru_layer(xp, input, weight_ih, weight_hh, bias_ih, bias_hh, hidden, *, backwards, saved):
    """The hidden states of all steps (L, N, H), and the last one (N, H).

    Args:
        backwards: whether to process the sequence in reverse.
        saved: a list that receives the gates and the hidden states' candidate maps of all steps.
    """
    return xp.gru_layer(input, weight_ih, weight_hh, bias_ih, bias_hh, hidden, backwards, saved)


@composite(expose=())
def _gru_layer_backward(xp, input, weight_ih, weight_hh, hidden, output, bias_ih=None, bias_hh=None, g0=None, g1=None,
                        *, backwards, saved, needs):
    """The gradients of the inputs."""
    steps = []
    h = hidden
    for x in _steps(xp, _affine(xp, input, weight_ih, bias_ih), backwards):
        reset, update, new = _split(xp, x, 3)
        by_reset, by_update, by_new = _split(xp, _affine(xp, h, weight_hh, bias_hh), 3)
        r, u = xp.sigmoid(reset + by_reset), xp.sigmoid(update + by_update)
        n = xp.tanh(new + r * by_new)
        steps.append((h, r, u, n, by_new))
        h = (h - n) * u + n
    by_h = xp.zeros_like(hidden) if g1 is None else g1
    grads = [None] * len(steps) if g0 is None else _steps(xp, g0, backwards)
    by_input, by_state = [], []
    for (h, r, u, n, candidate_map), grad in zip(steps[::-1], grads[::-1], strict=True):
        by_h = by_h if grad is None else by_h + grad
        by_n = by_h * (1 - u) * (1 - n * n)
        by_r, by_u = by_n * candidate_map * r * (1 - r), by_h * (h - n) * u * (1 - u)
        by_input.append(_concatenate(xp, [by_r, by_u, by_n]))
        by_state.append(_concatenate(xp, [by_r, by_u, by_n * r]))
        by_h = by_h * u + xp.matmul(by_state[-1], weight_hh)
    states = [step[0] for step in steps]
    return (*_affine_gradients(xp, by_input[::-1], by_state[::-1], input, states, weight_ih, backwards, needs), by_h)


_gru_layer.joint_vjp(
    lambda xp, g0, g1, input, weight_ih, weight_hh, bias_ih, bias_hh, hidden, output, backwards, saved, needs:
    xp._gru_layer_backward(input, weight_ih, weight_hh, hidden, output, bias_ih, bias_hh, g0, g1, backwards=backwards,
                           saved=saved, needs=needs))

# PyTorch has one node for all steps in float32, and one per operator and step in float64
for _key, _node in (("_lstm_layer", "MkldnnRnnLayerBackward0"), ("_lstm_layer_wide", "StackBackward0")):
    op(name="_lstm_layer", key=_key, node=_node, outputs=("output", "last", "last_cell"), returns_namedtuple=False,
       expose=())(_lstm_layer).joint_vjp(
        lambda xp, g0, g1, g2, input, weight_ih, weight_hh, bias_ih, bias_hh, hidden, cell, output, backwards, saved,
        needs: xp._lstm_layer_backward(input, weight_ih, weight_hh, hidden, cell, output, bias_ih, bias_hh, g0, g1, g2,
                                       backwards=backwards, saved=saved, needs=needs))
