"""Fast paths: specializations of `dispatch.apply` for float32 and float64 tensors outside transforms and modes."""
