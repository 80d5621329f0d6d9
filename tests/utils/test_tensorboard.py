"""`SummaryWriter`: what TensorBoard's reader finds in the files."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch

pytest.importorskip("tensorboard")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    return events


def test_scalars_histograms_and_others(tmp_path):
    from flambeau.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        for step in range(3):
            writer.add_scalar("loss", torch.tensor(1.0 / (step + 1)), step)
        writer.add_scalar("rate", 0.1, 0, new_style=True)
        writer.add_histogram("weights", torch.arange(10.0), 1)
        writer.add_text("note", "hello")
        writer.add_tensor("values", torch.arange(3))
        writer.add_pr_curve("curve", torch.tensor([1, 0, 1]), torch.tensor([0.9, 0.2, 0.6]))
        writer.add_audio("sound", torch.zeros(1, 100))
        writer.add_scalars("both", {"a": 1, "b": 2})
        writer.add_hparams({"lr": 0.1, "name": "sgd", "bias": True}, {"accuracy": 0.5}, run_name="run")
        with pytest.raises(NotImplementedError, match="add_graph"):
            writer.add_graph(None)
    events = read(tmp_path)
    assert [(each.step, each.value) for each in events.Scalars("loss")] == [
        (0, 1.0), (1, 0.5), (2, pytest.approx(1 / 3))]
    histogram = events.Histograms("weights")[0].histogram_value
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (0, 9, 10, 45)
    assert sum(histogram.bucket) == 10
    assert {"note/text_summary", "values", "curve", "rate"} <= set(events.Tags()["tensors"])
    assert events.Tags()["audio"] == ["sound"]
    assert (tmp_path / "both_a").is_dir()
    assert read(tmp_path / "run").Scalars("accuracy")[0].value == 0.5


def test_images(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    import io

    from flambeau.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_image("one", torch.ones(3, 4, 5) * 0.5)
        writer.add_images("batch", torch.zeros(3, 1, 4, 5))
        with pytest.raises(AssertionError, match="size of input tensor and input format are different"):
            writer.add_image("bad", torch.ones(2, 2))
    events = read(tmp_path)
    pixels = np.asarray(image_module.open(io.BytesIO(events.Images("one")[0].encoded_image_string)))
    assert pixels.shape == (4, 5, 3)
    assert (pixels == 127).all()
    assert (events.Images("batch")[0].width, events.Images("batch")[0].height) == (10, 8)
