"""The memory of tensors: storages, access from Python and NumPy, DLPack, pickling, sharing between processes."""
