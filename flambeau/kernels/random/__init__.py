"""PyTorch's random numbers."""

from .continuous import cauchy, dirichlet, exponential, standard_gamma
from .counts import binomial, poisson
from .discrete import bernoulli, bernoulli_each, geometric, multinomial
from .engine import DEFAULT_SEED, Engine
from .integers import randint, random
from .normal import log_normal, normal, normal_around
from .order import fill_order, place
from .permutation import randperm
from .uniform import uniform
