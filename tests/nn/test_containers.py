"""Containers: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

from collections import OrderedDict

import pytest

import flambeau as torch
from flambeau import nn


def chain(n=3):
    return nn.Sequential(*[nn.Linear(2, 2) for _ in range(n)])


def test_sequential_runs_in_order():
    s = nn.Sequential(OrderedDict(same=nn.Identity(), act=nn.ReLU()))
    assert s(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    assert s.act is s[1] is s[-1]


def test_sequential_indexing():
    s = chain()
    assert len(s) == 3
    assert list(s) == [s[0], s[1], s[2]]
    assert list(s[1:]) == [s[1], s[2]]
    assert [n for n, _ in s[1:].named_children()] == ["1", "2"]
    last = s[2]
    del s[0]
    assert len(s) == 2
    assert s[1] is last
    assert list(s._modules) == ["0", "1"]
    s[0] = nn.Tanh()
    assert isinstance(s[0], nn.Tanh)
    assert s.pop(-1) is last
    assert len(s) == 1
    for index in (5, -4):
        with pytest.raises(IndexError, match=f"^index {index} is out of range$"):
            s[index]


def test_sequential_growing():
    s = chain(1)
    act = nn.ReLU()
    assert s.append(act) is s
    assert s[1] is act
    assert s.insert(0, nn.Tanh()) is s
    assert isinstance(s[0], nn.Tanh)
    assert s[2] is act
    s.insert(-1, nn.Sigmoid())
    assert [type(m).__name__ for m in s] == ["Tanh", "Linear", "Sigmoid", "ReLU"]
    assert s.extend(chain(2)) is s
    assert len(s) == 6
    assert len(s + chain(1)) == 7
    assert len(s * 2) == 12
    assert len(2 * s) == 12
    assert (s * 2)[6] is s[0]
    s += chain(1)
    s *= 2
    assert len(s) == 14
    with pytest.raises(IndexError, match="Index out of range: 99"):
        s.insert(99, act)
    with pytest.raises(AssertionError, match=r"module should be of type: <class '.*Module'>"):
        s.insert(0, 3)
    with pytest.raises(ValueError, match=r"add operator supports only objects of Sequential class, but "
                                         "<class 'int'> is given."):
        s + 3
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0 for"):
        s * 0
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \*"):
        s * "a"


def test_module_list():
    items = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    items.append(nn.ReLU()).extend([nn.Linear(2, 2)])
    assert len(items) == 4
    assert isinstance(items[1:], nn.ModuleList)
    assert len(items[1:]) == 3
    assert repr(items) == ("ModuleList(\n  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n"
                           "  (2): ReLU()\n  (3): Linear(in_features=2, out_features=2, bias=True)\n)")
    assert repr(nn.ModuleList()) == "ModuleList()"
    items.insert(0, nn.Tanh())
    assert isinstance(items[0], nn.Tanh)
    assert len(items) == 5
    assert isinstance(items.pop(0), nn.Tanh)
    assert len([*items, nn.ReLU()]) == 5
    assert len(items) == 4
    items += [nn.ReLU()]
    items[0] = nn.Sigmoid()
    del items[1:3]
    assert [type(m).__name__ for m in items] == ["Sigmoid", "Linear", "ReLU"]
    assert len(list(items.parameters())) == 2
    with pytest.raises(TypeError, match=r"ModuleList\.extend should be called with an iterable, but got int"):
        items.extend(3)
    with pytest.raises(IndexError, match="index 7 is out of range"):
        items[7]
    with pytest.raises(NotImplementedError, match='is missing the required "forward" function'):
        items(1)


def test_module_dict():
    d = nn.ModuleDict({"a": nn.Linear(1, 1), "b": nn.ReLU()})
    assert list(d) == list(d.keys()) == ["a", "b"]
    assert "a" in d
    assert len(d) == 2
    assert dict(d.items())["b"] is d["b"]
    d.update([("c", nn.Tanh())])
    d["d"] = nn.Sigmoid()
    assert isinstance(d.pop("b"), nn.ReLU)
    assert list(d) == ["a", "c", "d"]
    assert [n for n, _ in d.named_parameters()] == ["a.weight", "a.bias"]
    assert repr(nn.ModuleDict(OrderedDict(x=nn.ReLU()))) == "ModuleDict(\n  (x): ReLU()\n)"
    with pytest.raises(KeyError):
        d["zz"]
    for bad, error, text in ((3, TypeError, ("ModuleDict.update should be called with an iterable of key/value "
                                            "pairs, but got int")),
                             ([3], TypeError, "ModuleDict update sequence element #0 should be Iterable; isint"),
                             ([("a",)], ValueError, ("ModuleDict update sequence element #0 has length 1; 2 is "
                                                    "required"))):
        with pytest.raises(error, match=text):
            d.update(bad)
    d.clear()
    assert len(d) == 0


def test_parameter_list():
    p = nn.ParameterList([torch.zeros(2, 3), nn.Parameter(torch.zeros(2, dtype=torch.float64)), "text"])
    assert all(isinstance(x, nn.Parameter) for x in p[:2])
    assert p[2] == "text"
    assert [n for n, _ in p.named_parameters()] == ["0", "1"]
    p.append(torch.ones(1))
    p += [torch.ones(2)]
    p[0] = torch.ones(3)
    assert len(p) == 5
    assert isinstance(p[0], nn.Parameter)
    assert p[-1].shape == (2,)
    assert isinstance(p[1:3], nn.ParameterList)
    assert len(p[1:3]) == 2
    with pytest.raises(RuntimeError, match=r"ParameterList should not be called\."):
        p(1)
    with pytest.raises(TypeError, match=r"ParameterList\.extend should be called with an iterable, but got Tensor"):
        p.extend(torch.zeros(2))
    with pytest.raises(IndexError, match="index 9 is out of range"):
        p[9]


def test_parameter_dict():
    d = nn.ParameterDict({"a": torch.zeros(2), "n": 3})
    assert isinstance(d["a"], nn.Parameter)
    assert d["n"] == 3
    assert list(d) == ["a", "n"]
    assert list(reversed(d)) == ["n", "a"]
    assert len(d) == 2
    d["b"] = torch.ones(1)
    assert d.get("zz", 5) == 5
    assert d.setdefault("b", 3) is d["b"]
    assert (d | {"c": torch.ones(1)})["c"].item() == 1.0
    assert d.pop("b").item() == 1.0
    assert "b" not in d
    assert d.popitem() == ("n", 3)
    assert list(dict(d.items())) == ["a"]
    assert len(list(d.values())) == 1
    with pytest.raises(RuntimeError, match=r"ParameterDict should not be called\."):
        d(1)
    with pytest.raises(TypeError, match="cannot be used as a key as it is not a string"):
        d[3] = 1
    d.clear()
    assert not len(d)
