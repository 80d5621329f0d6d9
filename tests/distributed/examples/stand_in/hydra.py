"""What minGPT-ddp needs of hydra: the configuration beside the script, with `group.key=value` of the command line."""

import sys

import yaml


def main(version_base=None, config_path=None, config_name=None):
    """Decorate the main function."""
    def decorate(function):
        def run():
            with open(f"{config_name}.yaml", encoding="utf-8") as file:
                config = yaml.safe_load(file)
            for word in sys.argv[1:]:
                name, _, value = word.partition("=")
                group, _, key = name.partition(".")
                config[group][key] = yaml.safe_load(value)
            return function(config)
        return run
    return decorate
