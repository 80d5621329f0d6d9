"""What minGPT-ddp needs of omegaconf."""

DictConfig = dict
