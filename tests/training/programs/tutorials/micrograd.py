"""Scalars with a backward pass of their own beside torch's, on the same expressions and the same small network."""

import argparse
import math
import random

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
random.seed(1)


class Value:
    def __init__(self, data, _children=(), _op=""):
        self.data, self.grad, self._backward, self._prev, self._op = data, 0.0, lambda: None, set(_children), _op

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad
        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = _backward
        return out

    def __pow__(self, other):
        out = Value(self.data**other, (self,), f"**{other}")

        def _backward():
            self.grad += other * self.data ** (other - 1) * out.grad
        out._backward = _backward
        return out

    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad += (1 - t**2) * out.grad
        out._backward = _backward
        return out

    def relu(self):
        out = Value(0 if self.data < 0 else self.data, (self,), "ReLU")

        def _backward():
            self.grad += (out.data > 0) * out.grad
        out._backward = _backward
        return out

    def backward(self):
        topo, visited = [], set()

        def build(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build(child)
                topo.append(v)
        build(self)
        self.grad = 1
        for v in reversed(topo):
            v._backward()

    __radd__, __rmul__ = __add__, __mul__
    __neg__ = lambda self: self * -1
    __sub__ = lambda self, other: self + (-other)
    __rsub__ = lambda self, other: other + (-self)
    __truediv__ = lambda self, other: self * other**-1
    __rtruediv__ = lambda self, other: other * self**-1


def expression(a, b):
    c = a + b
    d = a * b + b**3
    c = c + c + 1
    c = c + 1 + c + (-a)
    d = d + d * 2 + (b + a).relu()
    d = d + 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    return g + 10.0 / f


xmg, ymg = Value(-4.0), Value(2.0)
expression(xmg, ymg).backward()
xpt, ypt = torch.Tensor([-4.0]).double(), torch.Tensor([2.0]).double()
xpt.requires_grad, ypt.requires_grad = True, True
expression(xpt, ypt).backward()
assert abs(xmg.grad - xpt.grad.item()) < 1e-6 and abs(ymg.grad - ypt.grad.item()) < 1e-6
print(xpt.grad, ypt.grad)
w = [[random.uniform(-1, 1) for _ in range(3)] for _ in range(4)]
v = [random.uniform(-1, 1) for _ in range(4)]
xs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
ys = [1.0, -1.0, -1.0, 1.0]
W = torch.tensor(w, dtype=torch.double, requires_grad=True)
V = torch.tensor(v, dtype=torch.double, requires_grad=True)
w, v = [[Value(a) for a in row] for row in w], [Value(a) for a in v]
for _ in range(min(args.steps, 20)):
    total = Value(0.0)
    for x, y in zip(xs, ys):
        hidden = [sum((wi * xi for wi, xi in zip(row, x)), Value(0.0)).tanh() for row in w]
        total = total + (sum((a * h for a, h in zip(v, hidden)), Value(0.0)).tanh() - y) ** 2
    for p in [*v, *(a for row in w for a in row)]:
        p.grad = 0.0
    total.backward()
    loss = (((torch.tensor(xs).double() @ W.t()).tanh() @ V).tanh() - torch.tensor(ys)).pow(2).sum()
    W.grad = V.grad = None
    loss.backward()
    assert abs(loss.item() - total.data) < 1e-9
    assert torch.allclose(W.grad, torch.tensor([[a.grad for a in row] for row in w]).double(), rtol=1e-5)
    for p in [*v, *(a for row in w for a in row)]:
        p.data -= 0.05 * p.grad
    with torch.no_grad():
        W -= 0.05 * W.grad
        V.sub_(V.grad, alpha=0.05)
print(f"loss {total.data:.6f}")
