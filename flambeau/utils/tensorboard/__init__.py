"""`torch.utils.tensorboard`: logs for TensorBoard, written with the package tensorboard."""

from __future__ import annotations

try:
    import tensorboard  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("torch.utils.tensorboard needs the package tensorboard: pip install tensorboard",
                              name=error.name) from error

from tensorboard.summary.writer.record_writer import RecordWriter

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "RecordWriter", "SummaryWriter"]
