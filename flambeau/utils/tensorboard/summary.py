"""The summaries of TensorBoard's event files, made of tensors, arrays and numbers."""

from __future__ import annotations

import io
import json
import wave
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from ..._tensor import Tensor
from ...dtypes import bfloat16
from ._convert_np import make_np
from ._utils import _prepare_video, convert_to_HWC, figure_to_image


def _shape(*sizes: int) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def scalar(name: str, tensor: Any, collections: Any = None, new_style: bool = False,
           double_precision: bool = False) -> Any:
    """A number."""
    array = np.squeeze(make_np(tensor))
    if array.ndim:
        raise AssertionError(f"Tensor should contain one element (0 dimensions). Was given size: {array.size} and "
                             f"{array.ndim} dimensions.")
    number = float(array)
    if not new_style:
        return Summary(value=[Summary.Value(tag=name, simple_value=number)])
    proto = TensorProto(double_val=[number], dtype="DT_DOUBLE") if double_precision else (
        TensorProto(float_val=[number], dtype="DT_FLOAT"))
    data = SummaryMetadata.PluginData(plugin_name="scalars")
    return Summary(value=[Summary.Value(tag=name, tensor=proto, metadata=SummaryMetadata(plugin_data=data))])


#: name of a dtype -> its name in TensorBoard's files, and the field that holds its numbers
_KINDS = {"float16": ("DT_HALF", "half_val"), "bfloat16": ("DT_BFLOAT16", "half_val"),
          "float32": ("DT_FLOAT", "float_val"), "float64": ("DT_DOUBLE", "double_val"),
          "int8": ("DT_INT8", "int_val"), "int16": ("DT_INT16", "int_val"), "int32": ("DT_INT32", "int_val"),
          "int64": ("DT_INT64", "int64_val"), "uint8": ("DT_UINT8", "uint32_val"), "bool": ("DT_BOOL", "bool_val"),
          "complex64": ("DT_COMPLEX64", "scomplex_val"), "complex128": ("DT_COMPLEX128", "dcomplex_val")}


def tensor_proto(tag: str, tensor: Any) -> Any:
    """A tensor."""
    array = make_np(tensor)
    # bfloat16 arrives as float16, which holds fewer numbers
    name = "bfloat16" if isinstance(tensor, Tensor) and tensor.dtype is bfloat16 else array.dtype.name
    if name not in _KINDS:
        raise ValueError(f"{tag} has an unsupported dtype {name}")
    kind, field = _KINDS[name]
    values: Any = array.ravel()
    if field == "half_val":
        values = values.astype(np.float32).view(np.int32)
    elif array.dtype.kind == "c":
        values = values.view(array.real.dtype)
    proto = TensorProto(dtype=kind, tensor_shape=_shape(*array.shape), **{field: values.tolist()})
    data = SummaryMetadata.PluginData(plugin_name="tensor")
    return Summary(value=[Summary.Value(tag=tag, tensor=proto, metadata=SummaryMetadata(plugin_data=data))])


def _default_bins() -> list[float]:
    """TensorBoard's bins: growing by a tenth from 1e-12, of both signs."""
    positive, edge = [], 1e-12
    while edge < 1e20:
        positive.append(edge)
        edge *= 1.1
    return [-edge for edge in reversed(positive)] + [0.0] + positive


def histogram(name: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> Any:
    """A histogram of values."""
    bins = _default_bins() if isinstance(bins, str) and bins == "tensorflow" else bins
    counted = make_histogram(make_np(values).astype(float), bins, max_bins)
    return Summary(value=[Summary.Value(tag=name, histo=counted)])


def make_histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> Any:
    """The numbers of values in bins, without the empty ones at both ends.

    Args:
        values: an array.
        bins: as for `numpy.histogram`.
        max_bins: the number of bins from which on neighbours are joined.
    """
    array = values.reshape(-1)
    if not array.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(array, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        padded = np.pad(counts, (0, -len(counts) % step))
        counts = padded.reshape(-1, step).sum(1)
        limits = np.append(limits[:-1:step], limits[-1])
    filled = np.nonzero(counts)[0]
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    start, stop = filled[0], filled[-1] + 1
    counts = np.concatenate([[0], counts[:stop]] if start == 0 else [counts[start - 1:stop]])
    limits = limits[start:stop + 1]
    return HistogramProto(min=array.min(), max=array.max(), num=len(array), sum=array.sum(), sum_squares=array @ array,
                          bucket_limit=limits.tolist(), bucket=counts.tolist())


def histogram_raw(name: str, min: float, max: float, num: float, sum: float, sum_squares: float,
                  bucket_limits: Sequence[float], bucket_counts: Sequence[float]) -> Any:
    """A histogram that is counted already."""
    proto = HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits,
                           bucket=bucket_counts)
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def _calc_scale_factor(tensor: Any) -> int:
    """What pixels are multiplied by to fill a byte."""
    return 1 if make_np(tensor).dtype == np.uint8 else 255


def _in_bytes(array: np.ndarray) -> np.ndarray:
    """Pixels of uint8, of those or of floats from 0 to 1."""
    scale = _calc_scale_factor(array)
    return array if scale == 1 else np.clip(array.astype(np.float32) * scale, 0, 255).astype(np.uint8)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """An image, or a batch of images, as a PNG file; `rescale` is the factor of its size."""
    proto = make_image(_in_bytes(convert_to_HWC(make_np(tensor), dataformats)), rescale)
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def image_boxes(tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW",
                labels: Sequence[str] | None = None) -> Any:
    """An image with boxes, (xmin, ymin, xmax, ymax) in each row of `tensor_boxes`, and their labels."""
    pixels = _in_bytes(convert_to_HWC(make_np(tensor_image), dataformats))
    proto = make_image(pixels, rescale, rois=make_np(tensor_boxes), labels=labels)
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def make_image(tensor: np.ndarray, rescale: float = 1, rois: np.ndarray | None = None,
               labels: Sequence[str] | None = None) -> Any:
    """Pixels as a PNG file.

    Args:
        tensor: (height, width, channels), of uint8.
        rescale: the factor of the size.
        rois, labels: boxes that are drawn into it, and their labels.
    """
    from PIL import Image

    height, width, channels = tensor.shape
    picture = Image.fromarray(tensor)
    if rois is not None:
        draw_boxes(picture, rois, labels)
    if rescale != 1:
        picture = picture.resize((int(width * rescale), int(height * rescale)), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.save(file, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())


def draw_boxes(disp_image: Any, boxes: np.ndarray, labels: Sequence[str] | None = None) -> Any:
    """Draw red boxes, with their labels at the bottom, into an image of Pillow."""
    from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(disp_image), ImageFont.load_default()
    for number, (left, top, right, bottom) in enumerate(boxes):
        draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
        label = "" if labels is None else labels[number]
        if label:
            x0, y0, x1, y1 = font.getbbox(label)
            margin = np.ceil(0.05 * (y1 - y0))
            draw.rectangle([(left, bottom - (y1 - y0) - 2 * margin), (left + x1 - x0, bottom)], fill="Red")
            draw.text((left + margin, bottom - (y1 - y0) - margin), label, fill="black", font=font)
    return disp_image


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Videos side by side as an animated GIF file; `tensor` is (number, frames, channels, height, width)."""
    pixels = _in_bytes(_prepare_video(make_np(tensor)))
    return Summary(value=[Summary.Value(tag=tag, image=make_video(pixels, fps))])


def make_video(tensor: np.ndarray, fps: float) -> Any:
    """Frames, (time, height, width, channels) of uint8, as an animated GIF file."""
    from PIL import Image

    first, *others = [Image.fromarray(np.repeat(each, 3, 2) if each.shape[2] == 1 else each) for each in tensor]
    file = io.BytesIO()
    first.save(file, format="GIF", save_all=True, append_images=others, duration=round(1000 / fps), loop=0)
    _, height, width, channels = tensor.shape
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """A sound as a WAV file."""
    array = make_np(tensor).squeeze()
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (np.clip(array, -1, 1) * np.iinfo(np.int16).max).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(sample_rate)
        written.writeframes(samples.tobytes())
    proto = Summary.Audio(sample_rate=sample_rate, num_channels=1, length_frames=len(samples),
                          encoded_audio_string=file.getvalue(), content_type="audio/wav")
    return Summary(value=[Summary.Value(tag=tag, audio=proto)])


def text(tag: str, text: str) -> Any:
    """A text."""
    from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

    content = TextPluginData(version=0).SerializeToString()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="text", content=content))
    proto = TensorProto(dtype="DT_STRING", string_val=[text.encode("utf8")], tensor_shape=_shape(1))
    return Summary(value=[Summary.Value(tag=f"{tag}/text_summary", metadata=metadata, tensor=proto)])


def _curve(tag: str, curve: np.ndarray, num_thresholds: int) -> Any:
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    content = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="pr_curves", content=content))
    proto = TensorProto(dtype="DT_FLOAT", float_val=curve.ravel().tolist(), tensor_shape=_shape(*curve.shape))
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=proto)])


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall at thresholds from 0 to 1."""
    number = min(num_thresholds, 127)
    weight = None if weights is None else make_np(weights)
    return _curve(tag, compute_curve(make_np(labels), make_np(predictions), number, weight), number)


def pr_curve_raw(tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any, num_thresholds: int = 127,
                 weights: Any = None) -> Any:
    """Precision and recall that are counted already: six arrays, one element for each threshold."""
    return _curve(tag, np.stack((tp, fp, tn, fn, precision, recall)), min(num_thresholds, 127))


def compute_curve(labels: np.ndarray, predictions: np.ndarray, num_thresholds: int = 127,
                  weights: np.ndarray | None = None) -> np.ndarray:
    """True and false positives, true and false negatives, precision and recall: a row each, a column a threshold.

    Args:
        labels: whether each element is positive.
        predictions: its probability.
        num_thresholds: how many thresholds there are between 0 and 1.
        weights: of the elements; 1 each by default.
    """
    truth, scores = labels.ravel().astype(bool), predictions.ravel()
    weight = np.ones_like(scores) if weights is None else weights.ravel()
    at = np.clip(np.floor(scores * (num_thresholds - 1)).astype(int), 0, num_thresholds - 1)
    hits = np.bincount(at, weight * truth, num_thresholds)[::-1].cumsum()[::-1]
    false = np.bincount(at, weight * ~truth, num_thresholds)[::-1].cumsum()[::-1]
    precision = hits / np.maximum(1e-7, hits + false)
    recall = hits / np.maximum(1e-7, hits[0])
    return np.stack([hits, false, false[0] - false, hits[0] - hits, precision, recall])


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Any:
    """A layout of charts: category -> title -> ("Multiline" or "Margin", tags of numbers)."""
    from tensorboard.plugins.custom_scalar import layout_pb2

    categories = []
    for category, charts in layout.items():
        protos = []
        for title, (kind, tags) in charts.items():
            if kind == "Margin":
                if len(tags) != 3:
                    raise AssertionError("len(tags) != 3")
                value, lower, upper = tags
                series = layout_pb2.MarginChartContent.Series(value=value, lower=lower, upper=upper)
                protos.append(layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series])))
            else:
                lines = layout_pb2.MultilineChartContent(tag=tags)
                protos.append(layout_pb2.Chart(title=title, multiline=lines))
        categories.append(layout_pb2.Category(title=category, chart=protos))
    content = layout_pb2.Layout(category=categories).SerializeToString()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="custom_scalars"))
    proto = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return Summary(value=[Summary.Value(tag="custom_scalars__config__", tensor=proto, metadata=metadata)])


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Mapping[str, Any] | None,
         display_name: str | None = None, description: str | None = None) -> Any:
    """A mesh, or a cloud of points.

    Args:
        tag: its name.
        vertices: their coordinates, (batch, number, 3).
        colors: of the vertices, of the same shape; None for none.
        faces: the numbers of the vertices of triangles; None for none.
        config_dict: camera and lights of three.js.
        display_name, description: what is shown beside it.
    """
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    config = "{}" if config_dict is None else json.dumps(config_dict, sort_keys=True)
    parts = [(make_np(each), kind) for each, kind in (
        (vertices, MeshPluginData.VERTEX), (faces, MeshPluginData.FACE), (colors, MeshPluginData.COLOR))
        if each is not None]
    components = metadata.get_components_bitmask([kind for _, kind in parts])
    values = []
    for array, kind in parts:
        about = metadata.create_summary_metadata(tag, display_name, kind, components, array.shape, description,
                                                 json_config=config)
        proto = TensorProto(dtype="DT_FLOAT", float_val=array.ravel().tolist(), tensor_shape=_shape(*array.shape))
        values.append(Summary.Value(tag=metadata.get_instance_name(tag, kind), tensor=proto, metadata=about))
    return Summary(value=values)


def half_to_int(f: float) -> int:
    """The bits of a number in float32, as an int."""
    return int(np.float32(f).view(np.int32))


def int_to_half(i: int) -> float:
    """The number of which `half_to_int` gave the bits."""
    return float(np.int32(i).view(np.float32))


def hparams(hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
            hparam_domain_discrete: dict[str, list[Any]] | None = None) -> tuple[Any, Any, Any]:
    """The experiment, the start and the end of a run with hyperparameters."""
    from google.protobuf.struct_pb2 import ListValue, Value
    from tensorboard.plugins.hparams.api_pb2 import DataType, Experiment, HParamInfo, MetricInfo, MetricName, Status
    from tensorboard.plugins.hparams.metadata import PLUGIN_DATA_VERSION, PLUGIN_NAME
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

    start, infos = SessionStartInfo(), []
    for key, given in hparam_dict.items():
        if given is None:
            continue
        value = given.item() if isinstance(given, Tensor) else given
        if isinstance(value, (int, float)):  # bool, too, as in PyTorch's files
            start.hparams[key].number_value, kind = value, DataType.Value("DATA_TYPE_FLOAT64")
        elif isinstance(value, str):
            start.hparams[key].string_value, kind = value, DataType.Value("DATA_TYPE_STRING")
        else:
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        domain = None
        if hparam_domain_discrete and key in hparam_domain_discrete:
            domain = ListValue(values=[
                Value(bool_value=each) if isinstance(each, bool) else
                Value(string_value=each) if isinstance(each, str) else Value(number_value=each)
                for each in hparam_domain_discrete[key]])
        infos.append(HParamInfo(name=key, type=kind, domain_discrete=domain))
    metrics = [MetricInfo(name=MetricName(tag=key)) for key in metric_dict]

    def summary(tag: str, **content: Any) -> Any:
        data = HParamsPluginData(version=PLUGIN_DATA_VERSION, **content).SerializeToString()
        metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=PLUGIN_NAME, content=data))
        return Summary(value=[Summary.Value(tag=tag, metadata=metadata)])

    return (summary("_hparams_/experiment", experiment=Experiment(hparam_infos=infos, metric_infos=metrics)),
            summary("_hparams_/session_start_info", session_start_info=start),
            summary("_hparams_/session_end_info", session_end_info=SessionEndInfo(
                status=Status.Value("STATUS_SUCCESS"))))


__all__ = ["audio", "compute_curve", "custom_scalars", "draw_boxes", "figure_to_image", "half_to_int",
           "histogram", "histogram_raw", "hparams", "image", "image_boxes", "int_to_half", "make_histogram",
           "make_image", "make_video", "mesh", "pr_curve", "pr_curve_raw", "scalar", "tensor_proto", "text", "video"]
