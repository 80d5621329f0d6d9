"""Random numbers after manual_seed: many distributions, generators, states."""
import torch
from torch import nn

torch.manual_seed(0)
print(torch.rand(3), torch.randn(2, 2), torch.randint(10, (5,)), torch.randint(-5, 5, (3,)), torch.randperm(8))
print(torch.rand(20), torch.randn(20), torch.rand(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64), torch.randn(2, dtype=torch.complex64))
print(torch.normal(0., 1., (3,)), torch.normal(torch.tensor([1., 2.]), 0.1), torch.normal(torch.zeros(2), torch.tensor([1., 10.])), torch.bernoulli(torch.full((6,), 0.3)))
print(torch.empty(4).uniform_(-1, 1), torch.empty(4).normal_(5, 2), torch.empty(4).exponential_(2.), torch.empty(3).cauchy_(), torch.empty(3).log_normal_(), torch.empty(4).geometric_(0.4), torch.empty(4).bernoulli_(0.5))
print(torch.empty(4, dtype=torch.long).random_(100), torch.empty(3).random_(), torch.empty(4, dtype=torch.int8).random_(), torch.poisson(torch.full((5,), 3.)), torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 5, replacement=True), torch.multinomial(torch.ones(6), 3))
print(torch.rand_like(torch.ones(2)), torch.randn_like(torch.ones(2, dtype=torch.double)), torch.randint_like(torch.ones(3), 9), torch.rand(2, dtype=torch.half), torch.randn(2, dtype=torch.bfloat16))
print(nn.functional.dropout(torch.ones(10)), nn.Dropout(0.3)(torch.ones(2, 4)), nn.functional.gumbel_softmax(torch.zeros(3)).sum().round(), nn.functional.rrelu(torch.tensor([-1., 1.]), training=True))
print(torch.binomial(torch.tensor([10., 20.]), torch.tensor([0.5, 0.1])))
torch.manual_seed(1)
for init in (nn.init.xavier_uniform_, nn.init.xavier_normal_, nn.init.kaiming_uniform_, nn.init.kaiming_normal_, nn.init.trunc_normal_, nn.init.normal_, nn.init.uniform_, nn.init.eye_, nn.init.ones_):
    print(init.__name__, init(torch.empty(2, 3)))
print(nn.init.constant_(torch.empty(2), 0.3), nn.init.calculate_gain("leaky_relu", 0.2), nn.init.sparse_(torch.empty(4, 2), 0.5))
for layer in (nn.Linear(2, 2), nn.Conv2d(1, 1, 2), nn.Embedding(2, 2), nn.LSTM(1, 1), nn.Bilinear(1, 1, 1)):
    print(type(layer).__name__, [p.data for p in layer.parameters()])
g = torch.Generator().manual_seed(42)
print(torch.rand(2, generator=g), torch.randn(2, generator=g), torch.randperm(4, generator=g), torch.randint(3, (4,), generator=g), g.initial_seed())
state = torch.get_rng_state()
a = torch.rand(3)
torch.set_rng_state(state)
print(torch.equal(a, torch.rand(3)), state.dtype, state.shape, torch.initial_seed())
with torch.random.fork_rng():
    torch.manual_seed(9)
    print(torch.rand(1))
print(torch.rand(1), torch.seed() != 1, torch.manual_seed(3).initial_seed(), torch.rand(()))
torch.manual_seed(5)
print(torch.randn(1000).mean(), torch.rand(1000).std(), torch.randn(100, 100).abs().max(), torch.randint(0, 1000, (10000,)).sum(), torch.randperm(1000)[:5], torch.bernoulli(torch.full((1000,), 0.1)).sum())
walk = torch.randint(0, 2, (20,)).mul(2).sub(1).cumsum(0)
print(walk, torch.rand(16)[:3], torch.rand(15)[-1], torch.randn(15)[-1], torch.randn(17)[-2:], torch.randn(5, 0).shape)
for f in (lambda: torch.randint(0, (2,)), lambda: torch.empty(2).normal_(0, -1), lambda: torch.empty(2).uniform_(2, 1), lambda: torch.multinomial(torch.ones(2), 3), lambda: torch.rand(2, dtype=torch.long), lambda: torch.randperm(-1),
          lambda: torch.empty(2, dtype=torch.long).normal_(), lambda: torch.normal(torch.ones(2), torch.tensor([-1., 1.])), lambda: torch.manual_seed("a"), lambda: nn.functional.dropout(torch.ones(1), 1.5), lambda: torch.empty(1).exponential_(-1)):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)
