"""Functions that `torch.overrides` does not list as overridable, by namespace."""

from __future__ import annotations

#: namespace -> names. Factory functions are among them: only modes see those.
IGNORED: dict[str, frozenset[str]] = {
    "Tensor": frozenset((
        "__class__", "__delitem__", "__dir__", "__hash__", "__init_subclass__", "__iter__", "__new__",
        "__subclasshook__", "__torch_dispatch__", "__torch_function__", "_addmm_activation", "_conj",
        "_conj_physical", "_dtensor__new__", "_fix_weakref", "_has_symbolic_sizes_strides", "_is_all_true",
        "_is_any_true", "_is_zerotensor", "_lazy_clone", "_make_subclass", "_make_wrapper_subclass",
        "_neg_view", "_philox_normal_", "_philox_uniform_", "_python_dispatch", "_reduce_ex_internal",
        "_rev_view_func_unsafe", "_to_sparse", "_to_sparse_bsc", "_to_sparse_bsr", "_to_sparse_csc",
        "_to_sparse_csr", "_typed_storage", "_use_count", "_view_func", "_view_func_unsafe", "as_subclass",
        "eig", "lstsq", "new", "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor",
        "new_zeros", "reinforce", "solve", "stride", "symeig", "to_padded_tensor", "to_sparse_bsc",
        "to_sparse_bsr", "to_sparse_coo", "to_sparse_csc", "to_sparse_csr", "unflatten",
    )),
    "": frozenset((
        "arange", "are_deterministic_algorithms_enabled", "as_strided", "as_tensor", "asarray",
        "bartlett_window", "blackman_window", "can_cast", "compile", "cond", "device", "dtype", "empty",
        "empty_permuted", "empty_quantized", "empty_strided", "enable_grad", "export", "eye", "fill", "finfo",
        "from_file", "from_numpy", "frombuffer", "full", "get_default_device", "get_default_dtype",
        "get_deterministic_debug_mode", "get_device_module", "get_float32_matmul_precision",
        "get_num_interop_threads", "get_num_threads", "get_rng_state", "hamming_window", "hann_window", "iinfo",
        "inference_mode", "init_num_threads", "initial_seed", "is_anomaly_check_nan_enabled",
        "is_anomaly_enabled", "is_deterministic_algorithms_warn_only_enabled", "is_grad_enabled",
        "is_inference_mode_enabled", "is_storage", "is_tensor", "is_warn_always_enabled", "kaiser_window",
        "layout", "linspace", "load", "logspace", "manual_seed", "memory_format", "nested_to_padded_tensor",
        "no_grad", "normal", "ones", "promote_types", "qscheme", "rand", "rand_like", "randint", "randint_like",
        "randn", "randn_like", "randperm", "range", "result_type", "save", "scalar_tensor", "seed",
        "set_anomaly_enabled", "set_default_device", "set_default_tensor_type", "set_deterministic_debug_mode",
        "set_float32_matmul_precision", "set_flush_denormal", "set_grad_enabled", "set_num_interop_threads",
        "set_num_threads", "set_printoptions", "set_rng_state", "set_warn_always", "sparse_bsc_tensor",
        "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
        "sparse_csr_tensor", "tensor",
        "thread_safe_generator", "tril_indices", "triu_indices", "typename", "use_deterministic_algorithms",
        "vander", "vmap", "zeros",
    )),
    "fft": frozenset((
        "fftfreq", "rfftfreq",
    )),
    "functional": frozenset((
        "broadcast_shapes",
    )),
    "nn.functional": frozenset((
        "_canonical_mask", "_none_or_dtype", "assert_int_or_pair", "boolean_dispatch", "grouped_mm",
        "handle_torch_function", "hardsigmoid", "hardswish", "has_torch_function", "has_torch_function_unary",
        "has_torch_function_variadic", "scaled_grouped_mm", "scaled_mm", "sigmoid", "tanh", "upsample",
        "upsample_bilinear", "upsample_nearest",
    )),
    "nn.init": frozenset((
        "calculate_gain", "constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal",
        "orthogonal", "sparse", "uniform", "xavier_normal", "xavier_uniform",
    )),
}

__all__ = ["IGNORED"]
