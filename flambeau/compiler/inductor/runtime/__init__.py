"""`torch._inductor.runtime`: measuring functions."""
