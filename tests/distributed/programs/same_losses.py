"""The losses of each network under each strategy that has a mesh for so many processes; of one process for one."""

from tests.distributed.same_losses.records import MODELS, STRATEGIES
from tests.distributed.same_losses.training import alone, divided


def main(torch, rank, size, models="", strategies=""):
    chosen = models.split("|") if models else MODELS
    if size == 1:
        return {model: alone(torch, model) for model in chosen}
    report = {}
    for strategy in STRATEGIES:
        if size in strategy.meshes and strategy.name in (strategies.split("|") if strategies else (strategy.name,)):
            for model in chosen:
                report[model, strategy.name] = divided(torch, model, strategy, size)
    return report
