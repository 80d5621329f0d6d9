"""Versions compared as PyTorch compares them; names of return types."""

import warnings
from types import SimpleNamespace

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


@pytest.mark.parametrize("version", ["1.2.3", "1.10", "x.y", "1"])
@pytest.mark.parametrize("required", [(1, 2), (1, 3), (1, 2, 3, 4)])
@pytest.mark.parametrize("strict", [True, False])
def test_versions(version, required, strict):
    found = []
    for module in (torch, flambeau):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = module.serialization.check_module_version_greater_or_equal(
                    SimpleNamespace(__name__="m", __version__=version), required, error_if_malformed=strict)
            except RuntimeError as error:
                result = str(error)
        found.append((result, [str(each.message) for each in caught]))
    assert found[0] == found[1]


def test_return_types():
    theirs = [each.__name__ for each in torch.return_types.all_return_types]
    assert [each.__name__ for each in flambeau.return_types.all_return_types] == theirs
    for each in torch.return_types.all_return_types:
        assert getattr(flambeau.return_types, each.__name__).n_fields == each.n_fields
