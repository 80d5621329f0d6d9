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
    assert (events.Images("batch")[0].width, events.Images("batch")[0].height) == (15, 4)


def layout_of_charts():
    return {"a": {"b": ["Multiline", ["x", "y"]], "c": ["Margin", ["x", "y", "z"]]}}


@pytest.mark.parity
@pytest.mark.parametrize("make", [
    lambda s, t: s.custom_scalars(layout_of_charts()),
    lambda s, t: s.mesh("m", t.arange(12.).reshape(1, 4, 3), t.arange(12).reshape(1, 4, 3), None, {"camera": 1}),
    lambda s, t: s.pr_curve_raw("c", *(t.arange(4.).numpy() + k for k in range(6)), num_thresholds=4),
    lambda s, t: s.pr_curve("c", np.array([1, 0, 1]), np.array([.9, .2, .6]), 5, np.array([1., 2., 3.])),
    lambda s, t: s.histogram("h", t.arange(20.), [0., 5., 6., 7., 30., 31.], 2),
    lambda s, t: s.make_histogram(np.arange(10.), 4), lambda s, t: s.image("i", t.ones(2, 3, 4, 5) / 2),
    lambda s, t: s.image_boxes("i", t.ones(3, 20, 30), t.tensor([[1, 2, 9, 9]]), labels=["x"]),
    lambda s, t: s.image("i", t.arange(60.).reshape(3, 4, 5) / 60, 2, "CHW"), lambda s, t: s.half_to_int(0.5),
    lambda s, t: s.int_to_half(3), lambda s, t: s.image("i", t.arange(270.).reshape(9, 3, 2, 5) / 270),
    lambda s, t: s.hparams({"a": 1, "b": True}, {"loss": 1.})[1],
    *(lambda s, t, d=dtype: s.tensor_proto("x", t.tensor([1, 2]).to(getattr(t, d))) for dtype in (
        "float16", "bfloat16", "uint8", "complex64", "complex128")),
])
def test_summaries_are_those_of_pytorch(make):
    theirs = pytest.importorskip("torch.utils.tensorboard.summary")
    pytest.importorskip("PIL")
    import torch as pytorch

    from flambeau.utils.tensorboard import summary
    mine, other = make(summary, torch), make(theirs, pytorch)
    assert mine == other


def test_videos_are_animated_pictures():
    image_module = pytest.importorskip("PIL.Image")
    import io

    from flambeau.utils.tensorboard import summary
    proto = summary.video("v", torch.rand(3, 2, 1, 4, 6)).value[0].image
    picture = image_module.open(io.BytesIO(proto.encoded_image_string))
    assert (picture.size, picture.n_frames, proto.width, proto.height) == ((24, 4), 2, 24, 4)


@pytest.mark.parity
def test_embeddings_are_written_as_by_pytorch(tmp_path, capsys):
    theirs = pytest.importorskip("torch.utils.tensorboard")
    pytest.importorskip("PIL")
    import torch as pytorch

    from flambeau.utils.tensorboard import SummaryWriter
    files = []
    for kind, module in ((SummaryWriter, torch), (theirs.SummaryWriter, pytorch)):
        folder = tmp_path / kind.__module__.split(".")[0]
        with kind(str(folder)) as writer:
            vectors, pictures = module.arange(6.).reshape(3, 2), module.ones(3, 1, 4, 4) / 3
            writer.add_embedding(vectors, [["a", 1], ["b", 2], ["c", 3]], pictures, 2, "my/tag", ["name", "number"])
            writer.add_embedding(vectors.numpy(), ["x", "y", "z"])
            writer.add_embedding(vectors)
            for arguments in ((vectors, ["x"]), (vectors, None, pictures[:1]), (vectors[0],)):
                with pytest.raises(AssertionError):
                    writer.add_embedding(*arguments)
        files.append({str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
                      and "events" not in path.name})
    assert files[0] == files[1]
    assert len(files[0]) == 6
    assert "warning: Embedding dir exists" in capsys.readouterr().out
