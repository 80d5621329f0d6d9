"""`torch.export.custom_obj`: what nodes of script objects carry."""

from __future__ import annotations

import dataclasses

__all__ = ["ScriptObjectMeta"]


@dataclasses.dataclass
class ScriptObjectMeta:
    """What a node that represents a script object carries; programs made here have no such nodes.

    Args:
        constant_name: the object's name in the program's constants.
        class_fqn: the name of its class.

    >>> from flambeau.export.custom_obj import ScriptObjectMeta
    >>> ScriptObjectMeta("table", "__torch__.Table").constant_name
    'table'
    """

    constant_name: str
    class_fqn: str
