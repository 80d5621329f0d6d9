"""Data for programs that restart with another number of processes."""

from .elastic_distributed_sampler import ElasticDistributedSampler

__all__ = ["ElasticDistributedSampler"]
