"""`torch.autograd.anomaly_mode`: anomaly detection under PyTorch's module name."""

from ..engine.anomaly_mode import detect_anomaly, set_detect_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly"]
