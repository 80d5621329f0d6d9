"""Custom functions: `autograd.Function`, its node, and how a call is recorded, batched and given tangents."""
