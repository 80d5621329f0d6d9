"""The models of `benchmarks.shipping`, for flambeau and for PyTorch: each of both makes them of its own modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: the models' names
NAMES = "mlp", "cnn", "resnet", "transformer", "lstm"


def models(torch: Any) -> dict[str, Callable[[], tuple[Any, tuple[int, ...]]]]:
    """By name, what makes a model and the shape of an example.

    Args:
        torch: flambeau or PyTorch.
    """
    nn = torch.nn

    def mlp() -> tuple[Any, tuple[int, ...]]:
        return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10)), (784,)

    def cnn() -> tuple[Any, tuple[int, ...]]:
        return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                             nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                             nn.Linear(32 * 49, 10)), (1, 28, 28)

    class Block(nn.Module):
        def __init__(self, channels: int) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels), nn.ReLU(),
                                      nn.Conv2d(channels, channels, 3, 1, 1), nn.BatchNorm2d(channels))

        def forward(self, x: Any) -> Any:
            return torch.relu(x + self.body(x))

    def resnet() -> tuple[Any, tuple[int, ...]]:
        return nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1), Block(32), Block(32), nn.Conv2d(32, 64, 3, 2, 1), Block(64),
                             Block(64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), (3, 32, 32)

    def transformer() -> tuple[Any, tuple[int, ...]]:
        layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True, activation="relu")
        return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (64, 128)

    def lstm() -> tuple[Any, tuple[int, ...]]:
        class Last(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.lstm = nn.LSTM(64, 128, batch_first=True)

            def forward(self, x: Any) -> Any:
                return self.lstm(x)[0][:, -1]

        return Last(), (32, 64)

    return {make.__name__: make for make in (mlp, cnn, resnet, transformer, lstm)}
