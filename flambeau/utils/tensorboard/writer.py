"""`SummaryWriter`: writes scalars, histograms, images, text and others into event files."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary
from ._convert_np import make_np


class FileWriter:
    """Writes events into a file of a directory.

    Args:
        log_dir: the directory.
        max_queue: the number of events that wait to be written.
        flush_secs: the seconds between flushes.
        filename_suffix: the end of the file's name.

    >>> import importlib.util, tempfile
    >>> if importlib.util.find_spec("tensorboard"):
    ...     from flambeau.utils.tensorboard import FileWriter
    ...     with tempfile.TemporaryDirectory() as folder:
    ...         writer = FileWriter(folder)
    ...         writer.close()
    """

    def __init__(self, log_dir: str | os.PathLike[str], max_queue: int = 10, flush_secs: float = 120,
                 filename_suffix: str = "") -> None:
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The directory."""
        return str(self.event_writer.get_logdir())

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Write an event."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write a summary."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: tuple[Any, Any], walltime: float | None = None) -> None:
        """Write a graph of TensorBoard's format and the statistics of its run."""
        graph, statistics = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        run = TaggedRunMetadata(tag="step1", run_metadata=statistics.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Write a graph of TensorBoard's format, made of one of ONNX."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Write what waits."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Open a new file."""
        self.event_writer = EventFileWriter(self.get_logdir())


class SummaryWriter:
    """Writes logs for TensorBoard.

    Args:
        log_dir: the directory (default: `runs/DATE_HOST` with `comment`).
        comment: the end of the default directory's name.
        purge_step: events from this step on are hidden, those of a run that crashed.
        max_queue, flush_secs, filename_suffix: as for `FileWriter`.

    >>> import importlib.util, tempfile
    >>> if importlib.util.find_spec("tensorboard"):
    ...     from flambeau.utils.tensorboard import SummaryWriter
    ...     with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...         writer.add_scalar("loss", 0.5, global_step=1)
    """

    def __init__(self, log_dir: str | None = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "") -> None:
        if not log_dir:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = log_dir, purge_step
        self._options = (max_queue, flush_secs, filename_suffix)
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._projector_config: Any = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = FileWriter(self.log_dir, *self._options)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(Event(step=self.purge_step, file_version="brain.Event:2"))
                self.file_writer.add_event(Event(step=self.purge_step,
                                                 session_log=SessionLog(status=SessionLog.START)))
                self.purge_step = None
        return self.file_writer

    def get_logdir(self) -> str:
        """The directory."""
        return self.log_dir

    def _add(self, value: Any, global_step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(value, global_step, walltime)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False) -> None:
        """Write a number."""
        value = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._add(value, global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Write numbers that are shown in one chart: each in a file of a directory of its own."""
        folder = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            path = os.path.join(folder, f"{main_tag.replace('/', '_')}_{tag}")
            if path not in self.all_writers:
                self.all_writers[path] = FileWriter(path, *self._options)
            self.all_writers[path].add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Write a tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """Write a histogram of values."""
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag: str, min: float, max: float, num: int, sum: float, sum_squares: float,
                          bucket_limits: Sequence[float], bucket_counts: Sequence[float],
                          global_step: int | None = None, walltime: float | None = None) -> None:
        """Write a histogram that the caller has counted."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._add(summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts),
                  global_step, walltime)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:
        """Write an image: of uint8, or of floats from 0 to 1."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:
        """Write a batch of images as one image."""
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None,
                             walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW",
                             labels: Any = None) -> None:
        """Write an image with boxes: rows (xmin, ymin, xmax, ymax) of `box_tensor`, and a label for each."""
        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        self._add(summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels), global_step, walltime)

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4,
                  walltime: float | None = None) -> None:
        """Write videos, (number, frames, channels, height, width), side by side; of uint8, or of floats from 0 to 1."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """Write a figure of Matplotlib, or several, as an image."""
        self._add(summary.image(tag, summary.figure_to_image(figure, close), dataformats=(
            "NCHW" if isinstance(figure, list) else "CHW")), global_step, walltime)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
                  walltime: float | None = None) -> None:
        """Write a sound: samples from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None,
                 walltime: float | None = None) -> None:
        """Write a text."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: int | None = None,
                     num_thresholds: int = 127, weights: Any = None, walltime: float | None = None) -> None:
        """Write precision and recall of predictions from 0 to 1."""
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any,
                         true_negative_counts: Any, false_negative_counts: Any, precision: Any, recall: Any,
                         global_step: int | None = None, num_thresholds: int = 127, weights: Any = None,
                         walltime: float | None = None) -> None:
        """Write precision and recall that the caller has counted, an element for each threshold."""
        self._add(summary.pr_curve_raw(tag, true_positive_counts, false_positive_counts, true_negative_counts,
                                       false_negative_counts, precision, recall, num_thresholds, weights),
                  global_step, walltime)

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Write a layout of charts: category -> title -> ["Multiline" or "Margin", tags of numbers]."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags: Sequence[str], category: str = "default",
                                          title: str = "untitled") -> None:
        """Write the layout of one chart with several numbers."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: Sequence[str], category: str = "default",
                                       title: str = "untitled") -> None:
        """Write the layout of one chart with a number and its lower and upper bounds."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None,
                 config_dict: Mapping[str, Any] | None = None, global_step: int | None = None,
                 walltime: float | None = None) -> None:
        """Write a mesh, or a cloud of points: coordinates, colors and triangles, (batch, number, 3) each."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_embedding(self, mat: Any, metadata: Sequence[Any] | None = None, label_img: Any = None,
                      global_step: int | None = None, tag: str = "default",
                      metadata_header: Sequence[Any] | None = None) -> None:
        """Write vectors for TensorBoard's projector.

        Args:
            mat: the vectors, (number, size).
            metadata: their labels, or with `metadata_header` rows of several columns.
            label_img: their pictures, (number, channels, height, width).
            global_step: the step.
            tag: the name.
            metadata_header: the names of the columns of `metadata`.

        Raises:
            AssertionError: the numbers of vectors, labels and pictures differ, or `mat` is no matrix.
            NotADirectoryError: a file is where the directory of the embedding should be.
        """
        from google.protobuf import text_format
        from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig

        from . import embedding

        vectors, step = make_np(mat), 0 if global_step is None else global_step
        encoded = tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")
        subdir = f"{str(step).zfill(5)}/{encoded}"
        logdir = self._get_file_writer().get_logdir()
        folder = os.path.join(logdir, subdir)
        if os.path.isdir(folder):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        elif os.path.exists(folder):
            raise NotADirectoryError(f"Path: `{folder}` exists, but is a file. Cannot proceed.")
        else:
            os.makedirs(folder)
        if metadata is not None:
            if len(vectors) != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            embedding.write_labels(metadata, folder, metadata_header)
        if label_img is not None:
            if len(vectors) != len(label_img):
                raise AssertionError("#images should equal with #data points")
            embedding.write_pictures(label_img, folder)
        if vectors.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        embedding.write_vectors(vectors, folder)
        if self._projector_config is None:
            self._projector_config = ProjectorConfig()
        self._projector_config.embeddings.append(embedding.info(metadata, label_img, subdir, step, tag))
        with open(os.path.join(logdir, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
            file.write(text_format.MessageToString(self._projector_config))

    def add_hparams(self, hparam_dict: dict[str, Any], metric_dict: dict[str, Any],
                    hparam_domain_discrete: dict[str, list[Any]] | None = None, run_name: str | None = None,
                    global_step: int | None = None) -> None:
        """Write hyperparameters and the metrics that they led to, as a run of its own."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as run:
            for each in summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete):
                run._add(each, None, None)
            for tag, value in metric_dict.items():
                run.add_scalar(tag, value, global_step)

    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False,
                  use_strict_trace: bool = True) -> None:
        """Write the graph of a module, which is not supported: it is TorchScript's.

        Raises:
            NotImplementedError: always; `torch.viz` draws graphs.
        """
        raise NotImplementedError("SummaryWriter.add_graph writes a TorchScript graph, which flambeau has not: "
                                  "flambeau.viz draws graphs")

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Write the graph of an ONNX model.

        Args:
            prototxt: the path of the model.

        Raises:
            ModuleNotFoundError: the package onnx is not installed.
        """
        from .onnx_graph import load_onnx_graph

        self._get_file_writer().add_onnx_graph(load_onnx_graph(prototxt))

    def flush(self) -> None:
        """Write what waits."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Write what waits, and close the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        self.close()
