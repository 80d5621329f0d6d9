"""TorchScript's graphs of traced calls, as they are read: nodes `aten::...`, values with types, scopes."""
