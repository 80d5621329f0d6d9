"""Models as their users write them: what compiled steps compute is what eager ones do, and how much is compiled."""

from __future__ import annotations

import pytest

from flambeau import codegen
from tests.compiler.eager_comparison import compare_with_eager, compiled_of, programs, reasons
from tests.compiler.models import generative, science, sequences, stateful, vision  # noqa: F401 (they fill the catalogue)
from tests.compiler.models.catalogue import MODELS

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")

_NUMBERS = "the script reads numbers"
_SIZES = "sizes depend on data"
_STATE = "a scheduler's or a buffer's numbers are others in each call, and decide what is done"
#: models whose first calls find their state, and then make a program
STATEFUL = {*stateful.NAMES, "lstm_language_model", "hand_written_optimizer", "gpt_2_generation"}
#: models whose step is several programs with Python between them, and why: this list may only become shorter
SPLIT: dict[str, str] = {
    "gan": _NUMBERS, "gan_with_spectral_norm": _NUMBERS, "wasserstein_gan_with_gradient_penalty": _NUMBERS,
    "policy_gradient": _NUMBERS,
    "single_shot_detector": _SIZES, "non_maximum_suppression": _SIZES, "mixture_of_experts": _SIZES,
    "gru_classifier_of_packed_texts": _SIZES,
    "accumulated_gradients": _STATE, "deep_q_learning": _STATE,
    "fourier_operator": "Adam's rule of complex parameters is not traced",
    "line_search": "L-BFGS calls a closure, and reads numbers",
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_model(name):
    is_whole = name not in SPLIT
    made = compiled_of(compare_with_eager(MODELS[name], 4 if is_whole and name not in STATEFUL else 14, 1e-4))
    if is_whole:
        assert programs(made) == 1
        assert not reasons(made)
    else:
        assert sum(map(programs, all_parts(made))) > 0


def all_parts(made):
    """The compiled parts of a function, and of what it calls at breaks."""
    if made.split is None:
        return [made]
    splits = [made.split, *made.split.called.values()]
    return [part for split in splits for _, part in split.parts.values()] + [
        part for split in splits for callee in split._callees.values() for part in all_parts(callee)]


def test_listed_models_exist():
    assert SPLIT.keys() < MODELS.keys()
