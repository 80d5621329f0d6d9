from tests.compiled_code import compiled_code

__all__ = ["compiled_code"]
