"""Lazy modules: which module declares or defines which names, so that it is imported when one of them is first used.

`python -m tests.lazy_modules --write` writes the tables from the modules; a name is added to its module first. Where a
name is in several modules of a table, the last one counts.
"""

from __future__ import annotations

#: modules of `ops` -> the keys of their operators
OPERATORS: dict[str, str] = {
    "linalg.decomposition": """
        linalg_cholesky_ex _cholesky linalg_qr _diagonal_part linalg_eigh linalg_eig linalg_svd linalg_matrix_exp
    """,
    "linalg.determinant": "linalg_det _cofactors _cofactors_backward linalg_slogdet",
    "linalg.distance": "_cdist_forward _cdist_backward _euclidean_dist _pdist_forward",
    "linalg.factorization": """
        linalg_lu linalg_lu_factor_ex _lu_unpack linalg_lu_solve linalg_ldl_factor_ex linalg_ldl_solve
    """,
    "linalg.matmul": """
        mm bmm mv dot vdot addmm addmv baddbmm addbmm addr trace linalg_cross _unsafe_squeeze _trilinear
    """,
    "linalg.reflectors": "geqrf linalg_householder_product ormqr",
    "linalg.solve": """
        linalg_inv_ex linalg_solve_ex linalg_solve_triangular linalg_pinv _linalg_lstsq cholesky_solve cholesky_inverse
    """,
    "linalg.triangular": "_triangular_solve",
    "neural.attention": "_safe_softmax _flash_attention _attention_backward _causal_mask _causal_zero",
    "neural.convolution": "_conv_output _conv_image _conv_weight convolution im2col col2im",
    "neural.embedding": """
        _embedding _embedding_backward _embedding_masked _take_rows _add_rows _embedding_bag _scale_rows
        _embedding_bag_max _scatter_flat
    """,
    "neural.grid_sampling": """
        _store_grid_taps _grid_sampler_2d _grid_sampler_3d _grid_sampler_input_gradient _grid_sampler_grid_gradient
        _affine_grid
    """,
    "pointwise.activation": """
        _threshold_backward _leaky_relu_backward _hardtanh_backward _shrink_backward _hardsigmoid_backward relu
        leaky_relu elu celu gelu silu mish softplus logsigmoid hardtanh hardswish hardsigmoid hardshrink softshrink
        threshold _prelu_kernel _prelu_backward _rrelu_with_noise glu _glu_backward
    """,
    "pointwise.arithmetic": """
        add _add_scaled sub _sub_scaled _rsub _rsub_scalar mul div _div_rounded _div_rounded_twice _div_floored
        floor_divide remainder _remainder_scalar _scalar_remainder fmod _fmod_scalar neg reciprocal pow _pow_scalar
        _scalar_pow addcmul addcdiv abs sign sgn positive gcd lcm
    """,
    "pointwise.bessel": """
        special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1 special_modified_bessel_i0
        special_modified_bessel_i1 special_modified_bessel_k0 special_modified_bessel_k1
        special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1 special_spherical_bessel_j0 special_airy_ai
    """,
    "pointwise.comparison": "eq ne lt le gt ge isnan isinf isfinite isposinf isneginf isreal signbit",
    "pointwise.complex": "conj _conj_view _neg_view conj_physical view_as_real view_as_complex complex polar angle",
    "pointwise.exponential": """
        exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sigmoid logit logaddexp logaddexp2 ldexp frexp
    """,
    "pointwise.logical": """
        logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift
        bitwise_right_shift
    """,
    "pointwise.orthogonal_polynomials": """
        special_chebyshev_polynomial_t special_chebyshev_polynomial_u special_chebyshev_polynomial_v
        special_chebyshev_polynomial_w special_shifted_chebyshev_polynomial_t special_shifted_chebyshev_polynomial_u
        special_shifted_chebyshev_polynomial_v special_shifted_chebyshev_polynomial_w special_hermite_polynomial_h
        special_hermite_polynomial_he special_laguerre_polynomial_l special_legendre_polynomial_p
    """,
    "pointwise.rounding": "floor ceil trunc round _round_decimals frac",
    "pointwise.scalars": "_add_scalar _sub_scalar _mul_scalar _div_scalar",
    "pointwise.selection": """
        where _clamp_scalars _clamp_tensors _clamp_below _clamp_above clamp_min clamp_max _clamp_min_scalar
        _clamp_max_scalar maximum minimum fmax fmin lerp _lerp_scalar copysign _copysign_scalar nextafter heaviside
        nan_to_num
    """,
    "pointwise.special": """
        erf erfc erfinv special_erfcx special_ndtr special_log_ndtr special_ndtri lgamma digamma _polygamma mvlgamma
        special_zeta _special_zeta_first_scalar _special_zeta_second_scalar igamma igammac i0 special_i0e special_i1
        special_i1e special_entr xlogy _xlogy_first_scalar _xlogy_second_scalar special_xlog1py
        _special_xlog1py_first_scalar _special_xlog1py_second_scalar
    """,
    "pointwise.trigonometric": """
        sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh hypot sinc deg2rad rad2deg
    """,
    "neural.loss": """
        mse_loss _mse_loss_backward smooth_l1_loss huber_loss binary_cross_entropy clamp_below
        binary_cross_entropy_with_logits _bce_with_logits_backward soft_margin_loss _nll_loss _nll_loss2d
        _nll_loss_backward _ctc_loss _ctc_loss_backward
    """,
    "neural.margin": """
        _count_classes _multi_margin_loss _multi_margin_loss_backward _multilabel_margin_loss
        _multilabel_margin_loss_backward
    """,
    "neural.normalization": """
        _batch_norm _shift_and_scale _batch_norm_backward _layer_norm _layer_norm_backward _rms_norm _group_norm
        _group_norm_backward _weight_norm_interface
    """,
    "neural.pooling": """
        _gather_planes _scatter_planes _max_pool2d _max_pool3d _adaptive_max_pool2d _adaptive_max_pool3d _max_unpool2d
        _max_unpool3d _fractional_max_pool2d _fractional_max_pool3d _avg_pool2d _avg_pool3d _avg_pool_backward
        _adaptive_avg_pool2d _adaptive_avg_pool3d _adaptive_avg_pool_backward
    """,
    "neural.recurrent": "_lstm_layer_backward _gru_layer _gru_layer_backward _lstm_layer _lstm_layer_wide",
    "neural.resampling": """
        _upsample_linear1d _upsample_linear1d_backward _upsample_bilinear2d _upsample_bilinear2d_backward
        _upsample_trilinear3d _upsample_trilinear3d_backward _upsample_bicubic2d _upsample_bicubic2d_backward
        _upsample_bilinear2d_aa _upsample_bilinear2d_aa_backward _upsample_bicubic2d_aa _upsample_bicubic2d_aa_backward
        _upsample_lanczos2d_aa _upsample_lanczos2d_aa_backward _upsample_nearest1d _upsample_nearest1d_backward
        _upsample_nearest_exact1d _upsample_nearest_exact1d_backward _upsample_nearest2d _upsample_nearest2d_backward
        _upsample_nearest_exact2d _upsample_nearest_exact2d_backward _upsample_nearest3d _upsample_nearest3d_backward
        _upsample_nearest_exact3d _upsample_nearest_exact3d_backward _pixel_shuffle _pixel_unshuffle _channel_shuffle
    """,
    "reduction.differences": "diff trapezoid cumulative_trapezoid",
    "reduction.reductions": """
        _expand_reduced _expand_mean sum _sum_all mean _mean_all nansum nanmean _product_of_others _prod_all prod all
        any count_nonzero logsumexp
    """,
    "reduction.extrema": """
        _tie_shares _gather_dim _scatter_dim _max_all _min_all _max_of_rows _min_of_rows _max_dim _min_dim amax amin
        aminmax argmax argmin
    """,
    "reduction.moments": "var std var_mean std_mean",
    "reduction.norm": "linalg_vector_norm _norm_in_dims _norm_whole dist renorm",
    "reduction.ordering": """
        _sort _sort_stable argsort msort topk kthvalue mode _median_all _nanmedian_all _median_dim _nanmedian_dim
        _median_of_rows _nanmedian_of_rows _unique_all _unique_dim _unique_consecutive _searchsorted _isin bincount
        histc _histogram
    """,
    "reduction.scan": """
        cumsum _cumsum_backward _shift_along _recurrence _exclusive_cumprod cumprod _cumprod_backward cummax cummin
        logcumsumexp
    """,
    "reduction.segments": "_segment_reduce _segment_reduce_backward _hash_tensor",
    "reduction.softmax": "softmax log_softmax _softmax_backward _log_softmax_backward",
    "reduction.statistics": "quantile nanquantile cov corrcoef",
    "shape.indexing": """
        _index _add_at_indices _index_put gather _scatter _scatter_scalar _gather_padded scatter_add scatter_reduce
        _refuse_double_backward index_select index_add index_copy _index_fill_scalar _index_fill_tensor index_reduce
        _not_differentiable _packed_rows
    """,
    "shape.masking": """
        _masked_fill_scalar masked_fill masked_select _masked_select_backward masked_scatter _masked_scatter_backward
        take put _nonzero argwhere
    """,
    "shape.copying": "clone _to_copy _to_meta _copy _fill_scalar _fill_tensor _fill_scalar_ _fill_tensor_ _zero",
    "shape.joining": """
        cat stack _block_diag repeat flip roll rot90 tril triu diag_embed constant_pad_nd _reflection_pad1d
        _reflection_pad1d_backward _replication_pad1d _replication_pad1d_backward _reflection_pad2d
        _reflection_pad2d_backward _replication_pad2d _replication_pad2d_backward _reflection_pad3d
        _reflection_pad3d_backward _replication_pad3d _replication_pad3d_backward fliplr flipud hstack vstack dstack
        column_stack
    """,
    "shape.random": """
        _uniform_UniformBackward0 _normal_NormalBackward0 _normal_NormalBackward1 _normal_NormalBackward2
        _normal_NormalBackward3 _random_RandomBackward0 _random_RandomBackward1 _random_RandomBackward2
        _bernoulli_BernoulliBackward0 _bernoulli_BernoulliBackward1 _bernoulli_BernoulliBackward2
        _exponential_ExponentialBackward0 _geometric_GeometricBackward0 _cauchy_CauchyBackward0
        _log_normal_LogNormalBackward0 _poisson_PoissonBackward0 _standard_gamma _standard_gamma_grad _dirichlet_grad
    """,
    "shape.strided_views": "_take_strided _embed_strided _replace_strided",
    "shape.views": """
        _embed _basic_index _embed_diagonal _embed_windows view _view_dtype _alias _unsafe_view t transpose permute
        expand broadcast_to _squeeze_to _unsqueeze_to _squeeze_all _squeeze_dim _squeeze_dims unsqueeze select slice
        diagonal unfold _as_strided unbind _split split_with_sizes unsafe_split unsafe_split_with_sizes view_as
        expand_as reshape_as _reshape_alias _t_ _transpose_ _squeeze_all_ _squeeze_dim_ _squeeze_dims_ _unsqueeze_
        _as_strided_
    """,
    "shape.view_copies": """
        view_copy alias_copy t_copy transpose_copy permute_copy expand_copy unsqueeze_copy select_copy slice_copy
        diagonal_copy unfold_copy unbind_copy split_copy split_with_sizes_copy _squeeze_all_copy _squeeze_dim_copy
        _squeeze_dims_copy _as_strided_copy narrow_copy select_scatter slice_scatter diagonal_scatter
        _as_strided_scatter
    """,
    "spectral.fourier": "_fft_c2c _fft_r2c _fft_c2r _fft_r2c_adjoint _fft_c2r_adjoint",
}

#: modules of `ops` -> modules that declare more of their operators: batching rules
COMPLEMENTS = {"shape.indexing": ("shape.batched_indexing",), "shape.masking": ("shape.batched_indexing",)}

#: names of operators, `name=key` where the key is another: "aliases" of functions, "methods", and "inplace", which are
#: methods without their underscore
OPERATOR_NAMES: dict[str, str] = {
    "aliases": """
        multiply=mul negative=neg absolute=abs not_equal=ne less=lt less_equal=le greater=gt greater_equal=ge fix=trunc
        arcsin=asin arccos=acos arctan=atan arctan2=atan2 arcsinh=asinh arccosh=acosh arctanh=atanh trapz=trapezoid
        concat=cat concatenate=cat row_stack=vstack swapaxes=transpose swapdims=transpose
    """,
    "methods": """
        mm bmm mv dot vdot addmm addmv baddbmm addbmm addr trace geqrf ormqr cholesky_solve cholesky_inverse relu
        hardshrink add sub mul multiply=mul div floor_divide remainder fmod neg negative=neg reciprocal pow addcmul
        addcdiv abs absolute=abs sign sgn positive gcd lcm eq ne not_equal=ne lt less=lt le less_equal=le gt greater=gt
        ge greater_equal=ge isnan isinf isfinite isposinf isneginf isreal signbit conj _neg_view conj_physical angle exp
        exp2 expm1 log log2 log10 log1p sqrt rsqrt sigmoid logit logaddexp logaddexp2 ldexp frexp logical_and logical_or
        logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift
        floor ceil trunc fix=trunc round frac clamp_min clamp_max maximum minimum fmax fmin lerp copysign nextafter
        heaviside nan_to_num erf erfc erfinv lgamma digamma mvlgamma igamma igammac i0 xlogy sin cos tan asin
        arcsin=asin acos arccos=acos atan arctan=atan atan2 arctan2=atan2 sinh cosh tanh asinh arcsinh=asinh acosh
        arccosh=acosh atanh arctanh=atanh hypot sinc deg2rad rad2deg diff sum mean nansum nanmean prod all any
        count_nonzero logsumexp amax amin aminmax argmax argmin var std dist renorm argsort msort topk kthvalue mode
        bincount histc cumsum cumprod cummax cummin logcumsumexp softmax log_softmax quantile nanquantile cov corrcoef
        gather scatter_add scatter_reduce index_select index_add index_copy index_reduce masked_fill masked_select
        masked_scatter take put argwhere clone repeat flip roll rot90 tril triu diag_embed fliplr flipud view t
        transpose swapaxes=transpose swapdims=transpose permute expand broadcast_to unsqueeze select diagonal unfold
        unbind split_with_sizes unsafe_split unsafe_split_with_sizes view_as expand_as reshape_as narrow_copy
        select_scatter slice_scatter diagonal_scatter
    """,
    "inplace": """
        addmm addmv baddbmm addbmm addr relu add sub mul multiply=mul div floor_divide remainder fmod neg negative=neg
        reciprocal pow addcmul addcdiv abs absolute=abs sign sgn gcd lcm eq ne not_equal=ne lt less=lt le less_equal=le
        gt greater=gt ge greater_equal=ge conj_physical exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sigmoid logit
        ldexp logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not
        bitwise_left_shift bitwise_right_shift floor ceil trunc fix=trunc round frac clamp_min clamp_max lerp copysign
        nextafter heaviside nan_to_num erf erfc erfinv lgamma digamma mvlgamma igamma igammac i0 xlogy sin cos tan asin
        arcsin=asin acos arccos=acos atan arctan=atan atan2 arctan2=atan2 sinh cosh tanh asinh arcsinh=asinh acosh
        arccosh=acosh atanh arctanh=atanh hypot sinc deg2rad rad2deg renorm cumsum cumprod scatter_add scatter_reduce
        index_add index_copy index_reduce masked_fill masked_scatter put tril triu
    """,
}

#: modules of `_tensor` -> their functions
FUNCTIONS: dict[str, str] = {
    "aten_functions": """
        _has_compatible_shallow_copy_type _int_mm _log_softmax_backward_data _shape_as_tensor _softmax_backward_data
        frobenius_norm get_device init_num_threads is_distributed is_vulkan_available native_dropout nuclear_norm
        slice_inverse view_as_complex_copy view_as_real_copy view_copy
    """,
    "methods.attributes": "is_inference",
    "creation.constants": """
        empty empty_like empty_permuted empty_strided full full_like ones ones_like zeros zeros_like
    """,
    "creation.from_data": "as_tensor asarray from_numpy frombuffer scalar_tensor tensor",
    "creation.distributions": "_sample_dirichlet _standard_gamma bernoulli binomial multinomial normal poisson",
    "creation.generators": """
        Generator default_generator fork_rng get_rng_state initial_seed manual_seed seed set_rng_state
    """,
    "creation.random": "rand rand_like randint randint_like randn randn_like randperm",
    "creation.sequences": "arange eye linspace logspace range",
    "creation.typed_constructors": """
        BoolTensor ByteTensor CharTensor ShortTensor IntTensor LongTensor HalfTensor BFloat16Tensor FloatTensor
        DoubleTensor ComplexFloatTensor ComplexDoubleTensor
    """,
    "memory.dlpack": "from_dlpack to_dlpack",
    "linalg.contractions": """
        bilinear chain_matmul cross ger inner kron linalg_matmul linalg_matrix_power linalg_multi_dot linalg_vecdot
        matrix_power outer tensordot
    """,
    "linalg.decompositions": """
        cholesky det inverse linalg_cholesky linalg_cholesky_ex linalg_cond linalg_diagonal linalg_eigvals
        linalg_eigvalsh linalg_inv linalg_inv_ex linalg_lstsq linalg_lu_factor_ex linalg_matrix_rank linalg_pinv
        linalg_solve linalg_solve_ex linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve linalg_vander logdet
        matrix_exp pinverse qr slogdet svd
    """,
    "linalg.distances": "cdist pdist",
    "linalg.einsum": "einsum",
    "linalg.factorizations": """
        linalg_ldl_factor linalg_lu linalg_lu_factor lu lu_solve lu_unpack orgqr triangular_solve
    """,
    "linalg.linear": "linear",
    "linalg.lowrank": "pca_lowrank svd_lowrank",
    "linalg.matmul": "matmul mm spmm",
    "linalg.norms": "cosine_similarity linalg_matrix_norm linalg_norm linalg_vector_norm norm pairwise_distance",
    "linalg.removed": "eig lstsq matrix_rank solve symeig",
    "memory.access": "detach is_complex is_floating_point is_nonzero is_signed is_tensor result_type",
    "neural.activation": "prelu relu6 rrelu rrelu_ selu selu_",
    "neural.convolution": """
        conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d folded unfolded
    """,
    "neural.embedding_bag": "embedding_bag",
    "neural.grid_sampling": "affine_grid_generator grid_sampler grid_sampler_2d grid_sampler_3d",
    "neural.layers": """
        alpha_dropout alpha_dropout_ dropout dropout_ embedding feature_alpha_dropout feature_alpha_dropout_
        feature_dropout feature_dropout_ scaled_dot_product_attention
    """,
    "neural.losses": "cross_entropy ctc_loss nll_loss",
    "neural.normalization": """
        _weight_norm batch_norm group_norm layer_norm native_batch_norm native_group_norm native_layer_norm
        norm_except_dim rms_norm
    """,
    "neural.pooling": """
        adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
        adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool1d_with_indices max_pool2d
        max_pool2d_with_indices max_pool3d max_pool3d_with_indices max_unpool1d max_unpool2d max_unpool3d
    """,
    "pointwise.arithmetic": """
        add addcdiv addcmul div divide float_power mvlgamma polygamma pow remainder round rsub special_polygamma
        special_round square sub subtract true_divide
    """,
    "pointwise.comparison": "allclose equal isclose isneginf isposinf signbit",
    "pointwise.complex": "conj_physical imag is_conj is_neg real resolve_conj resolve_neg",
    "pointwise.selection": "clamp clip where",
    "reduction.finite_differences": "gradient vander",
    "reduction.ordering": """
        bucketize histogram isin kthvalue median nanmedian searchsorted sort unique unique_consecutive
    """,
    "reduction.reductions": """
        all amax amin aminmax any argmax argmin logsumexp max mean min nanmean nansum prod std std_mean sum var var_mean
    """,
    "reduction.scans": "cumprod cumsum log_softmax softmax",
    "reduction.segments": "hash_tensor histogramdd segment_reduce",
    "shape.copying": "clone contiguous detach_copy to",
    "shape.filling": "fill zero_",
    "shape.resizing": "resize_as_",
    "shape.indexing": "",
    "shape.splitting": """
        chunk dsplit hsplit slice_copy split split_copy split_with_sizes_copy tensor_split unbind_copy unsafe_chunk
        vsplit
    """,
    "shape.combining": "block_diag cartesian_prod combinations meshgrid",
    "shape.repeating": "repeat_interleave tile",
    "shape.diagonals": "diag diagflat tril_indices triu_indices",
    "shape.joining": "cat column_stack concat concatenate dstack hstack row_stack stack vstack",
    "shape.transposing": "adjoint moveaxis movedim permute swapaxes swapdims t transpose",
    "shape.broadcasting": """
        atleast_1d atleast_2d atleast_3d broadcast_shapes broadcast_tensors broadcast_to sum_to_size
    """,
    "shape.reshaping": "expand flatten ravel reshape reshaped squeeze unflatten unsqueeze",
    "shape.scattering": "index_fill index_put nonzero nonzero_static scatter select take_along_dim unravel_index",
    "shape.strides": """
        as_strided as_strided_copy as_strided_scatter is_same_size narrow narrow_copy numel squeeze_copy
    """,
    "spectral.fourier": """
        fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_ihfft2
        fft_ihfftn fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn
    """,
    "spectral.frequencies": "fft_fftfreq fft_fftshift fft_ifftshift fft_rfftfreq",
    "spectral.stft": "istft stft",
    "spectral.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window",
}

#: modules of `_tensor` -> their methods, without special methods and properties
METHODS: dict[str, str] = {
    "neural.activation": "prelu",
    "pointwise.arithmetic": """
        addcmul addcmul_ addcdiv addcdiv_ add add_ sub sub_ subtract subtract_ div div_ divide divide_ true_divide
        true_divide_ remainder pow pow_ square square_ float_power float_power_ round round_ polygamma polygamma_
        mvlgamma mvlgamma_
    """,
    "methods.attributes": "",
    "methods.autograd": """
        backward retain_grad register_hook register_post_accumulate_grad_hook requires_grad_ detach_
    """,
    "pointwise.comparison": "equal isclose allclose isposinf isneginf signbit",
    "pointwise.complex": "conj _conj is_conj is_neg resolve_conj resolve_neg",
    "creation.constants": "new_zeros new_ones new_empty new_empty_strided new_full new_tensor new",
    "linalg.contractions": "outer ger inner kron matrix_power cross",
    "memory.dlpack": "__dlpack__ __dlpack_device__",
    "shape.copying": """
        float double half bfloat16 int long short char byte bool chalf cfloat cdouble to type type_as contiguous
        is_contiguous cpu cuda clone copy_ _lazy_clone
    """,
    "shape.filling": "fill_ zero_ fill_diagonal_",
    "shape.resizing": "resize_ resize_as_ set_",
    "creation.from_data": "",
    "linalg.decompositions": "inverse cholesky det slogdet logdet svd qr pinverse matrix_exp",
    "linalg.factorizations": "lu lu_solve triangular_solve orgqr",
    "shape.indexing": "",
    "shape.splitting": "split chunk unsafe_chunk tensor_split hsplit vsplit dsplit",
    "shape.repeating": "tile repeat_interleave",
    "shape.diagonals": "diag diagflat",
    "memory.access": """
        detach item numpy tolist is_complex is_floating_point is_nonzero is_signed as_subclass is_distributed
        element_size record_stream get_device
    """,
    "neural.layers": "",
    "linalg.norms": "norm",
    "reduction.ordering": "kthvalue median nanmedian sort unique unique_consecutive histogram",
    "linalg.matmul": "mm matmul __matmul__ __rmatmul__",
    "creation.distributions": "bernoulli bernoulli_ multinomial",
    "creation.random_fills": "uniform_ normal_ random_ exponential_ geometric_ cauchy_ log_normal_",
    "memory.pickling": "__getstate__ __setstate__",
    "memory.reductions": "__reduce_ex__",
    "reduction.reductions": """
        all amax amin aminmax any argmax argmin logsumexp max mean min nanmean nansum prod std sum var
    """,
    "reduction.scans": "cumprod cumsum log_softmax softmax",
    "shape.scattering": """
        select index_put index_put_ scatter scatter_ index_fill index_fill_ masked_fill_ take_along_dim nonzero
        nonzero_static
    """,
    "pointwise.selection": "where clamp clip clamp_ clip_",
    "shape.transposing": "transpose swapaxes swapdims t permute movedim moveaxis adjoint",
    "shape.broadcasting": "sum_to_size broadcast_to",
    "shape.reshaping": "view reshape flatten unflatten ravel squeeze unsqueeze expand",
    "printing": "",
    "memory.sharing": "share_memory_ is_shared pin_memory is_pinned",
    "methods.sparse": """
        to_dense _to_dense to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc _to_sparse
        _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc coalesce is_coalesced indices values sparse_dim
        dense_dim crow_indices col_indices ccol_indices row_indices sparse_mask sparse_resize_ sparse_resize_and_clear_
        resize_as_sparse_ smm sspaddmm _indices _values _nnz _dimI _dimV _coalesced_ _sparse_mask_projection
    """,
    "memory.addresses": "storage_offset data_ptr is_set_to",
    "memory.storage": "_typed_storage untyped_storage storage storage_type",
    "spectral.stft": "stft istft",
    "shape.strides": """
        narrow narrow_copy as_strided as_strided_scatter size stride dim ndimension numel nelement is_same_size squeeze_
        unsqueeze_ transpose_ swapaxes_ swapdims_ t_ as_strided_
    """,
    "views.history": "",
    "methods.legacy": """
        reinforce resize resize_as module_load dim_order const_data_ptr _fix_weakref to_padded_tensor xpu ipu mtia
    """,
    "methods.python_callbacks": "apply_ map_ map2_",
    "linalg.removed": "eig lstsq solve symeig",
    "reduction.segments": "hash_tensor",
    "aten_functions": "slice_inverse",
}

#: modules of `backends.numpy` -> their primitives
PRIMITIVES: dict[str, str] = {
    "decomposition": """
        lstsq inv solve solve_triangular pinv det _cofactors _cofactors_backward slogdet cholesky cholesky_solve
        cholesky_inverse qr eigh eig svd matrix_exp
    """,
    "factorization": "lu lu_factor lu_unpack lu_solve ldl_factor ldl_solve geqrf householder_product multiply_by_q",
    "distance": "cdist euclidean_dist pdist",
    "ctc": "ctc_loss ctc_loss_backward",
    "attention": "safe_softmax causal_mask scaled_dot_product_attention _attention_backward",
    "loss": """
        take_flat_positions add_at_flat_positions _mse_loss_backward clamp_below check_probabilities nll_loss
        nll_loss_backward count_classes take_rows add_rows take_weighted_rows
    """,
    "normalization": """
        batch_norm _batch_norm_backward layer_norm _layer_norm_backward group_norm _group_norm_backward
    """,
    "elementwise": """
        sqrt square maximum minimum isnan isfinite isinf isreal logical_not logical_and logical_or logical_xor signbit
        hypot fmax fmin copysign logaddexp2 gcd lcm bitwise_and bitwise_or bitwise_xor add sub mul div neg abs atan2
        asinh acosh eq ne lt le gt ge bitwise_not bitwise_left_shift bitwise_right_shift erf erfc erfcx erfinv log_ndtr
        ndtri lgamma digamma polygamma zeta i0 i0e i1 i1e standard_gamma_grad dirichlet_grad bessel_j0 bessel_j1
        bessel_y0 bessel_y1 bessel_k0 bessel_k1 bessel_k0e bessel_k1e spherical_bessel_j0 airy_ai gammainc gammaincc
        chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w
        shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v
        shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l
        legendre_polynomial_p exp log log2 log10 log1p expm1 tan sinh cosh tanh asin acos atan atanh sin cos exp2
        sigmoid floor ceil trunc round conj toggle_conjugate toggle_negative real imag is_complex view_as_real
        view_as_complex complex polar angle sign sgn floor_divide trunc_divide trunc_divide_narrow remainder fmod
        reciprocal rsqrt pow pow_scalar scalar_pow logaddexp frexp where lerp nextafter nan_to_num
    """,
    "summation": "sum _sum_all mean _mean_all nansum sum_to_size _expand_reduced _expand_mean",
    "reduction": """
        _prod_all prod _product_of_others _max_all _min_all amax amin aminmax _max_dim _min_dim argmax argmin
        _gather_dim _scatter_dim _tie_shares all any count_nonzero var std var_mean std_mean linalg_vector_norm dist
        logsumexp
    """,
    "scan": """
        cumsum cumprod _cumsum_backward _shift_along _recurrence _exclusive_cumprod _cumprod_backward cummax cummin
        logcumsumexp
    """,
    "softmax": "softmax log_softmax _softmax_backward _log_softmax_backward",
    "ordering": """
        _sort _sort_stable argsort topk kthvalue mode _median_dim _median_all _nanmedian_dim _nanmedian_all _unique_all
        _unique_dim _unique_consecutive _searchsorted _isin bincount histc _histogram
    """,
    "memory": "strided_view clone contiguous to zeros full_like zeros_like ones_like",
    "views": """
        view reshape reshaped view_dtype t transpose permute expand broadcast_to squeeze unsqueeze _squeeze_to
        _unsqueeze_to select slice diagonal unfold embed embed_diagonal embed_windows replace_basic_index
        replace_diagonal take_strided embed_strided replace_strided
    """,
    "rearranging": "flip roll rot90 tril triu repeat constant_pad",
    "padding": "border_pad border_pad_backward",
    "joining": "cat stack unbind split split_with_sizes block_diag",
    "indexing.gather_scatter": "gather scatter scatter_reduce scatter_add",
    "indexing.slices": "index_select index_add index_copy index_fill index_reduce_kernel",
    "indexing.advanced": "index index_put add_at_indices",
    "indexing.masks": "masked_fill masked_select masked_scatter masked_scatter_gradient",
    "indexing.flat": "take put",
    "indexing.index_arrays": "nonzero repeat_interleave_indices",
    "linalg": "mm mv dot bmm matmul add_matmul addbmm addr cross trilinear",
    "neural": """
        grid_taps fractional_maxima conv_output conv_image conv_weight convolve im2col col2im max_pool adaptive_max_pool
        gather_planes scatter_planes max_unpool avg_pool avg_pool_backward adaptive_avg_pool adaptive_avg_pool_backward
    """,
    "recurrent": "lstm_layer _lstm_layer_backward gru_layer _gru_layer_backward",
    "resampling": "resample resample_backward",
    "segments": "segment_reduce segment_reduce_backward hash_bits histogramdd",
    "spectral": "fft_c2c fft_r2c fft_c2r fft_r2c_adjoint fft_c2r_adjoint",
}
