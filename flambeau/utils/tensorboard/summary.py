"""The summaries of TensorBoard's event files, made of tensors, arrays and numbers."""

from __future__ import annotations

import io
import wave
from collections.abc import Sequence
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from ..._tensor import Tensor


def as_array(x: Any) -> np.ndarray:
    """A tensor, array or number as an array."""
    return x.detach().cpu().numpy() if isinstance(x, Tensor) else np.atleast_1d(np.asarray(x))


def _shape(*sizes: int) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def scalar(name: str, tensor: Any, collections: Any = None, new_style: bool = False,
           double_precision: bool = False) -> Any:
    """A number."""
    array = np.squeeze(as_array(tensor))
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


def tensor_proto(tag: str, tensor: Any) -> Any:
    """A tensor."""
    array = as_array(tensor)
    names = {"float16": "half", "float32": "float", "float64": "double", "int8": "int", "int16": "int",
             "int32": "int", "int64": "int64", "uint8": "int", "bool": "bool"}
    kinds = {"float16": "DT_HALF", "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "int8": "DT_INT8",
             "int16": "DT_INT16", "int32": "DT_INT32", "int64": "DT_INT64", "uint8": "DT_UINT8", "bool": "DT_BOOL"}
    name = array.dtype.name
    if name not in kinds:
        raise ValueError(f"{tag} has an unsupported dtype {name}")
    values = array.ravel().view(np.uint16) if name == "float16" else array.ravel()
    proto = TensorProto(dtype=kinds[name], tensor_shape=_shape(*array.shape),
                        **{f"{names[name]}_val": values.tolist()})
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
    array = as_array(values).ravel().astype(float)
    if not array.size:
        raise ValueError("The input has no element.")
    counts, limits = np.histogram(array, bins=_default_bins() if bins == "tensorflow" else bins)
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
    return histogram_raw(name, array.min(), array.max(), len(array), array.sum(), array @ array, limits.tolist(),
                         counts.tolist())


def histogram_raw(name: str, min: float, max: float, num: float, sum: float, sum_squares: float,
                  bucket_limits: Sequence[float], bucket_counts: Sequence[float]) -> Any:
    """A histogram that is counted already."""
    proto = HistogramProto(min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits,
                           bucket=bucket_counts)
    return Summary(value=[Summary.Value(tag=name, histo=proto)])


def to_hwc(array: np.ndarray, dataformats: str) -> np.ndarray:
    """An image, or a batch of images side by side, with height, width and 3 channels in this order."""
    order = dataformats.upper()
    if len(set(order)) != len(order):
        raise AssertionError(f"You can not use the same dimension shordhand twice. input_format: {dataformats}")
    if array.ndim != len(order):
        raise AssertionError(f"size of input tensor and input format are different. tensor shape: {array.shape}, "
                             f"input_format: {dataformats}")
    if "N" in order:
        batch = array.transpose([order.index(axis) for axis in "NHWC"])
        columns = int(np.ceil(len(batch) ** 0.5))
        rows = -(-len(batch) // columns)
        filled = np.zeros((rows * columns, *batch.shape[1:]), batch.dtype)
        filled[:len(batch)] = batch
        height, width, channels = batch.shape[1:]
        image = filled.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(
            rows * height, columns * width, channels)
    elif "C" in order:
        image = array.transpose([order.index(axis) for axis in "HWC"])
    else:
        image = array.transpose([order.index(axis) for axis in "HW"])[..., None]
    return np.repeat(image, 3, 2) if image.shape[2] == 1 else image


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "CHW") -> Any:
    """An image, or a batch of images, as a PNG file; `rescale` is the factor of its size."""
    from PIL import Image

    array = to_hwc(as_array(tensor), dataformats)
    array = array if array.dtype == np.uint8 else np.clip(array.astype(np.float32) * 255, 0, 255).astype(np.uint8)
    file = io.BytesIO()
    height, width, channels = int(array.shape[0] * rescale), int(array.shape[1] * rescale), array.shape[2]
    picture = Image.fromarray(array)
    (picture if rescale == 1 else picture.resize((width, height))).save(file, format="PNG")
    proto = Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=file.getvalue())
    return Summary(value=[Summary.Value(tag=tag, image=proto)])


def figure_to_image(figures: Any, close: bool = True) -> np.ndarray:
    """A figure of Matplotlib as an array with channels first; of a list, a batch."""
    if isinstance(figures, list):
        return np.stack([figure_to_image(each, close) for each in figures])
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas: Any = FigureCanvasAgg(figures)
    canvas.draw()
    array = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1)
    if close:
        pyplot.close(figures)
    return array


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """A sound as a WAV file."""
    array = as_array(tensor).squeeze()
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


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Any:
    """Precision and recall at thresholds from 0 to 1."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    number = min(num_thresholds, 127)
    truth, scores = as_array(labels).ravel().astype(bool), as_array(predictions).ravel()
    weight = np.ones_like(scores) if weights is None else as_array(weights).ravel()
    at = np.clip(np.floor(scores * (number - 1)).astype(int), 0, number - 1)
    hits = np.bincount(at, weight * truth, number)[::-1].cumsum()[::-1]
    false = np.bincount(at, weight * ~truth, number)[::-1].cumsum()[::-1]
    precision = hits / np.maximum(1e-7, hits + false)
    recall = hits / np.maximum(1e-7, hits[0])
    curve = np.stack([hits, false, false[0] - false, hits[0] - hits, precision, recall])
    content = PrCurvePluginData(version=0, num_thresholds=number).SerializeToString()
    metadata = SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name="pr_curves", content=content))
    proto = TensorProto(dtype="DT_FLOAT", float_val=curve.ravel().tolist(), tensor_shape=_shape(6, number))
    return Summary(value=[Summary.Value(tag=tag, metadata=metadata, tensor=proto)])


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
        if isinstance(value, bool):
            start.hparams[key].bool_value, kind = value, DataType.Value("DATA_TYPE_BOOL")
        elif isinstance(value, (int, float)):
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


__all__ = ["as_array", "audio", "figure_to_image", "histogram", "histogram_raw", "hparams", "image", "pr_curve",
           "scalar", "tensor_proto", "text"]
