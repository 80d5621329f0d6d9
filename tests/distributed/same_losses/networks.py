"""Three networks of four units each, with their data: what every strategy trains."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BATCH, CLASSES, VOCABULARY, WIDTH, HEADS, LENGTH = 8, 4, 32, 16, 4, 8


def networks(torch: Any) -> dict[str, tuple[Callable[[], Any], Callable[[int], tuple[Any, Any]]]]:
    """Name -> (a function that makes the network, one that makes inputs and targets of a step's global batch).

    A network is a `Sequential` of four units, so that pipelines cut between them; in a unit, `up` and its like are
    cut by columns and `down` and its like by rows in tensor parallelism.
    """
    nn, F = torch.nn, torch.nn.functional

    class Wide(nn.Module):
        """x + down(gelu(up(x))): of linear layers or of convolutions."""

        def __init__(self, layer: Callable[..., Any], width: int, **options: Any) -> None:
            super().__init__()
            self.up, self.down = layer(width, 2 * width, **options), layer(2 * width, width, **options)

        def forward(self, x: Any) -> Any:
            return x + self.down(F.gelu(self.up(x)))

    class Tokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)

        def forward(self, tokens: Any) -> Any:
            return self.token(tokens) + self.place(torch.arange(tokens.shape[1]))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
            self.wide = Wide(nn.Linear, WIDTH)

        def forward(self, x: Any) -> Any:
            normed = self.norm_1(x)
            q, k, v = (each(normed).unflatten(-1, (-1, WIDTH // HEADS)).transpose(1, 2)
                       for each in (self.q, self.k, self.v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.wide(self.norm_2(x + self.out(y.transpose(1, 2).flatten(2))))

    def mlp() -> Any:
        return nn.Sequential(nn.Linear(6, WIDTH), Wide(nn.Linear, WIDTH), Wide(nn.Linear, WIDTH),
                             nn.Sequential(nn.Tanh(), nn.Linear(WIDTH, CLASSES)))

    def cnn() -> Any:
        convolutions = {"kernel_size": 3, "padding": 1}
        return nn.Sequential(nn.Sequential(nn.Conv2d(2, 8, **convolutions), nn.ReLU()),
                             Wide(nn.Conv2d, 8, **convolutions),
                             nn.Sequential(Wide(nn.Conv2d, 8, **convolutions), nn.MaxPool2d(2)),
                             nn.Sequential(nn.Flatten(), nn.Linear(8 * 9, CLASSES)))

    def gpt() -> Any:
        return nn.Sequential(Tokens(), Block(), Block(),
                             nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)))

    def numbers(*shape: int) -> Callable[[int], tuple[Any, Any]]:
        def make(step: int) -> tuple[Any, Any]:
            x = torch.randn(BATCH, *shape, generator=torch.Generator().manual_seed(step))
            return x, (x.flatten(1).sum(1).abs() * 4).long() % CLASSES
        return make

    def text(step: int) -> tuple[Any, Any]:
        tokens = torch.randint(0, VOCABULARY, (BATCH, LENGTH + 1), generator=torch.Generator().manual_seed(step))
        return tokens[:, :-1], tokens[:, 1:]

    return {"mlp": (mlp, numbers(6)), "cnn": (cnn, numbers(2, 6, 6)), "gpt": (gpt, text)}
