"""Default values of the settings of `torch._inductor.config`, by group; "" has those in no group."""

from __future__ import annotations

from typing import Any


def _all(value: Any, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), value)


INDUCTOR: dict[str, dict[str, Any]] = {
    "": {
        **_all(True,
               "_use_fp64_for_unbacked_floats alignment_asserts allow_buffer_reuse apply_gumbel_max_trick "
               "assert_indirect_indexing autotune_local_cache batch_fusion benchmark_epilogue_fusion "
               "benchmark_harness bundle_triton_into_fx_graph_cache bw_outputs_user_visible "
               "combo_kernel_autotune_grouping combo_kernel_foreach_dynamic_shapes comprehensive_padding "
               "constant_and_index_propagation cpp_cache_precompile_headers delay_realize_cheap_outputs "
               "disable_padding_cpu disable_progress dynamic_scale_rblock emulate_precision_casts_on_saved_tensors "
               "enable_auto_functionalized_v2 enable_caching_generated_triton_templates epilogue_fusion "
               "fx_graph_cache graph_partition implicit_fallbacks inplace_buffers inplace_padding "
               "joint_graph_constant_folding keep_addmm_fused_for_half_dtypes keep_output_stride "
               "layout_optimization loop_index_inversion_in_fusion loop_ordering_after_fusion "
               "loop_reindexing_after_fusion max_autotune_report_choices_stats non_blocking_remote_cache_write "
               "online_softmax optimize_scatter_upon_const_tensor pattern_matcher pick_loop_orders prologue_fusion "
               "quiesce_async_compile_pool reorder_for_locality reorder_for_peak_memory scalar_asserts "
               "shape_padding size_asserts split_cat_fx_passes split_reductions static_weight_shapes use_dce "
               "use_experimental_benchmarker use_fast_triton_launcher use_joint_graph_passes "
               "use_launch_metadata_schema use_mixed_mm use_post_grad_passes use_pre_grad_passes "
               "use_static_cuda_launcher worker_suppress_logging write_are_deterministic_algorithms_enabled"),
        **_all(False,
               "TYPE_CHECKING _fuse_ddp_communication _micro_pipeline_tp _raise_error_for_testing "
               "aggressive_fusion align_random_eager always_keep_tensor_constants annotate_training "
               "assume_32bit_indexing assume_aligned_inputs assume_unaligned_fallback_output "
               "autotune_fallback_to_aten autotune_in_subproc autotune_multi_device b2b_gemm_pass batch_invariant "
               "benchmark_combo_kernel benchmark_fusion benchmark_kernel cache_sdpa_constraint "
               "can_inplace_pad_graph_input check_stack_no_cycles_TESTING_ONLY combo_kernel_per_subkernel_blocks "
               "combo_kernels combo_kernels_pointwise_only comment_origin compute_all_bounds conv_1x1_as_mm "
               "coordinate_descent_check_all_directions coordinate_descent_tuning cpp_wrapper "
               "cpp_wrapper_build_separate cutedsl_enable_autotuning dce debug debug_fusion debug_index_asserts "
               "debug_ir_traceback decompose_mem_bound_mm dedup_reduce_scatters deterministic developer_warnings "
               "disable_cpp_codegen distributed_max_autotune_gemm do_not_emit_runtime_assertions "
               "efficient_conv_bn_eval_fx_passes emulate_precision_casts enable_autograd_for_aot "
               "enable_linear_binary_folding epilogue_fusion_first epilogue_fusion_user_defined_triton_kernel "
               "epilogue_fusion_with_atomic_add expand_dimension_for_pointwise_nodes fallback_by_default "
               "fallback_embedding_bag_byte_unpack fallback_random force_disable_cudagraph_TESTING_ONLY "
               "force_fuse_int_mm_with_mul force_layout_optimization force_pointwise_cat force_shape_pad freezing "
               "freezing_discard_parameters fx_wrapper generate_intermediate_hooks group_fusion "
               "incremental_autotune is_nightly_or_source is_predispatch keep_static_cubin_raw log_tlparse "
               "max_autotune max_autotune_allow_flexible_layouts max_autotune_gemm max_autotune_pointwise "
               "max_autotune_prune_choices_based_on_shared_mem memory_planning nan_asserts "
               "nvgemm_supplement_configs pad_channels_last pad_dynamic_shapes pad_outputs "
               "partitioned_scatter_enabled permute_fusion pipeline_max_autotune_gemm profile_bandwidth "
               "profile_bandwidth_with_do_bench_using_profiling profiler_mark_wrapper_call "
               "remote_gemm_autotune_cache reorder_for_compute_comm_overlap reorder_for_peak_memory_debug "
               "run_jit_post_compile_hook runtime_estimations_mms_benchmark runtime_triton_nan_asserts save_args "
               "search_autotune_cache selective_decompose static_launch_user_defined_triton_kernels "
               "strict_static_cuda_launcher triton_disable_device_detection "
               "unsafe_ignore_unsupported_triton_autotune_args unsafe_skip_cache_dynamic_shape_guards "
               "use_fast_math use_torch_profiler_benchmarker verbose_progress warn_mix_layout "
               "wrap_inductor_compiled_regions"),
        **_all(None,
               "_post_fusion_custom_pass _pre_fusion_custom_pass add_pre_grad_passes autotune_remote_cache "
               "bucket_all_gathers_fx_bucket_size_determinator bucket_all_reduces_fx_bucket_size_determinator "
               "bucket_reduce_scatters_fx_bucket_size_determinator bundled_autotune_remote_cache "
               "combo_kernel_peak_memory_increase_gb cudagraph_policy custom_partitioner_fn fx_graph_remote_cache "
               "global_cache_dir inductor_choices_class inter_node_bw intra_node_bw joint_custom_post_pass "
               "joint_custom_pre_pass max_fusion_unique_io_buffers post_grad_custom_post_pass "
               "post_grad_custom_pre_pass pre_grad_custom_pass profile_bandwidth_output "
               "realize_acc_reads_size_threshold realize_acc_reads_threshold realize_opcount_threshold "
               "remove_pre_grad_passes reorder_prefetch_limit sleep_sec_TESTING_ONLY worker_log_path"),
        "_cache_config_factory_keys": ["inductor_choices_class"],
        "_cache_config_ignore_prefix":
            ["trace", "cuda.cutlass_dir", "cutlass.cutlass_dir", "xpu.cutlass_dir", "worker_start_method",
             "compile_threads", "post_grad_custom_post_pass", "post_grad_custom_pre_pass",
             "joint_custom_pre_pass", "joint_custom_post_pass", "pre_grad_custom_pass",
             "_fuse_ddp_communication_passes", "_pre_fusion_custom_pass", "cudagraph_policy",
             "force_disable_cudagraph_TESTING_ONLY", "pre_grad_pass_timing", "fx_graph_cache",
             "fx_graph_remote_cache", "autotune_local_cache", "autotune_remote_cache"],
        "_conv_default_backends": "ATEN", "_fuse_ddp_bucket_size": 25,
        "_fuse_ddp_communication_passes": ["fuse_ddp_with_concat_op", "schedule_comm_wait"], "_profile_var": "",
        "_realize_acc_reads_threshold_default": 8, "_realize_opcount_threshold_default": 30,
        "_save_config_ignore":
            ["trace.upload_tar", "joint_custom_pre_pass", "joint_custom_post_pass", "pre_grad_custom_pass",
             "aot_inductor.repro_level", "aot_inductor.dump_aoti_minifier", "post_grad_custom_pre_pass",
             "post_grad_custom_post_pass", "_fuse_ddp_communication_passes", "_pre_fusion_custom_pass",
             "cudagraph_policy"],
        "autoheuristic_log_path": "DEFAULT", "autotune_lookup_table": {}, "autotune_num_choices_displayed": 10,
        "bucket_all_gathers_bucket_mode": "default", "bucket_all_gathers_fx": "none", "bucket_all_reduces_fx": "none",
        "bucket_reduce_scatters_bucket_mode": "default", "bucket_reduce_scatters_fx": "none",
        "collective_benchmark_nruns": 50, "collective_benchmark_timeout": 30.0, "combo_kernel_allow_mixed_sizes": 1,
        "combo_kernel_max_distance": -1, "combo_kernel_max_num_args": 250, "combo_kernel_max_num_nodes": 8,
        "combo_kernel_peak_memory_pct_threshold": 0.05, "combo_kernels_autotune": 1, "compile_threads": 2,
        "compile_worker_wait_timeout": 0, "coordinate_descent_search_radius": 1, "cpu_backend": "cpp",
        "cpu_gpu_bw": 50.0, "cuda_backend": "triton", "cudagraph_unsafe_unbacked_ops": [],
        "custom_should_partition_ops": [], "disabled_passes": "", "enabled_metric_tables": "",
        "estimate_op_runtime": "default", "external_matmul": [], "file_lock_timeout": 600,
        "fx_passes_numeric_check":
            {"num_iterations": 1, "pre_grad": False, "precision": 0.0001, "requires_optimizer": True},
        "inductor_default_autotune_rep": 100, "inductor_default_autotune_warmup": 25, "kernel_name_max_ops": 10,
        "layout_opt_default": "1", "max_autotune_conv_backends": "ATEN,TRITON",
        "max_autotune_conv_bwd_input_backends": "ATEN", "max_autotune_conv_bwd_weight_backends": "ATEN",
        "max_autotune_flex_search_space": "DEFAULT", "max_autotune_gemm_backends": "ATEN,TRITON,CPP",
        "max_autotune_gemm_search_space": "DEFAULT", "max_autotune_subproc_graceful_timeout_seconds": 0.0,
        "max_autotune_subproc_result_timeout_seconds": 60.0, "max_autotune_subproc_terminate_timeout_seconds": 0.0,
        "max_complex_pointwise_cat_inputs": 8, "max_epilogue_benchmarked_choices": 1,
        "max_fusion_buffer_group_pairwise_attempts": 64, "max_fusion_size": 64, "max_pointwise_cat_inputs": 8,
        "memory_pool": "intermediates", "min_num_split": 0, "min_overlap_ratio": 1.1, "mixed_mm_choice": "heuristic",
        "multi_kernel_hints": [], "nvgemm_max_profiling_configs": 5, "padding_alignment_bytes": 128,
        "padding_stride_threshold": 1024, "partitioned_scatter_max_partitions": 128,
        "partitioned_scatter_memory_budget": 0.1, "partitioned_scatter_min_partitions": 2,
        "post_grad_fusion_options": {}, "pre_grad_fusion_options": {}, "pre_grad_pass_timing": "default",
        "precompilation_timeout_seconds": 300, "profile_bandwidth_regex": "", "quiesce_async_compile_time": 60,
        "realize_cpu_acc_reads_threshold": 12, "realize_cpu_opcount_threshold": 50, "realize_reads_threshold": 4,
        "reorder_for_compute_comm_overlap_passes": [], "score_fusion_memory_threshold": 10,
        "size_threshold_for_succ_based_strategy": 0, "small_memory_access_threshold": 16777216,
        "torchinductor_worker_logpath": "", "tpu_backend": "pallas",
        "triton_kernel_default_layout_constraint": "needs_fixed_stride_order", "unbacked_symint_fallback": 8192,
        "unroll_reductions_threshold": 8, "unsafe_marked_cacheable_functions": {},
        "worker_start_method": "subprocess", "xpu_backend": "triton",
    },
    "autoheuristic_collect": {
        **_all(False,
               "mixed_mm pad_mm"),
    },
    "autoheuristic_use": {
        **_all(True,
               "mixed_mm"),
        **_all(None,
               "pad_mm"),
    },
    "_collective": {
        **_all(False,
               "auto_select"),
        "one_shot_all_reduce_threshold_bytes": 131072,
    },
    "aten_distributed_optimizations": {
        **_all(True,
               "enable_fusion_regions pre_bucketing_fsdp_collectives prioritize_bucketing_during_scheduling"),
        **_all(False,
               "allow_comms_decompositions bucket_only_internode_comms enable_low_contention_collectives "
               "enable_overlap_scheduling log_final_collectives_estimations low_contention_skip_overlap_check "
               "overlap_scheduling_autofix_cycles pre_bucketing_fsdp_collectives_verbose spmd_check"),
        **_all(None,
               "bucket_exposed_first bucket_mode collective_bucketing compute_overlap_multipler "
               "custom_runtime_estimation insert_overlap_deps max_coll_distance max_compute_pre_fetch "
               "max_in_flight_gb max_memory_increase_gb max_memory_increase_ratio "
               "pre_bucketing_fsdp_collectives_bucket_cap_mb profile_guided_estimations_profile_path"),
        "collective_estimator": "analytical", "compute_estimator": "benchmark",
        "low_contention_min_bytes_per_rank": 16777216, "pre_bucketing_fsdp_collectives_max_bucket_cap_mb": 500.0,
        "pre_bucketing_fsdp_collectives_min_bucket_cap_mb": 10.0,
        "pre_bucketing_fsdp_collectives_saturation_calibration_multiplier": 1.0, "spmd_mismatch": "warn",
    },
    "auto_chunker": {
        **_all(False,
               "enable"),
        **_all(None,
               "num_chunk"),
        "amplify_ratio_threshold": 8, "output_size_threshold": 1048576,
    },
    "cpp": {
        **_all(True,
               "enable_loop_tail_vec enable_tiling_heuristics fallback_scatter_reduce_sum no_redundant_loops "
               "use_constexpr_for_int_array weight_prepack"),
        **_all(False,
               "dynamic_threads enable_concat_linear enable_grouped_gemm_template enable_kernel_profile "
               "enable_unsafe_math_opt_flag force_inline_kernel use_decompose_tanh use_small_dequant_buffer"),
        **_all(None,
               "gemm_cache_blocking gemm_thread_factors inject_log1p_bug_TESTING_ONLY inject_relu_bug_TESTING_ONLY "
               "march simdlen vec_isa_ok"),
        "cxx": (None, "g++"), "descriptive_names": "original_aten", "enable_floating_point_contract_flag": "off",
        "gemm_max_k_slices": 1, "max_horizontal_fusion_size": 16, "min_chunk_size": 512, "threads": -1,
        "use_two_step_variance_threshold": 1024,
    },
    "triton": {
        **_all(True,
               "autotune_cublasLt autotune_pointwise coalesce_tiling_analysis codegen_upcast_to_fp32 "
               "cudagraph_support_input_mutation cudagraph_trees divisible_by_16 dynamic_disable_pipelining "
               "emit_pointer_range_32 mix_order_reduction mix_order_reduction_allow_multi_stages "
               "persistent_reductions proton_group_by_sm proton_per_cta_occupancy proton_split_invocations "
               "reorder_for_reducing_graph_partitions slow_path_cudagraph_asserts tiling_prevents_pointwise_fusion "
               "tiling_prevents_reduction_fusion transpose_discontiguous_tensor_descriptor unique_kernel_names"),
        **_all(False,
               "autotune_with_sample_inputs cooperative_reductions cudagraph_or_error "
               "cudagraph_skip_dynamic_graphs cudagraph_trees_history_recording cudagraph_trees_objgraph "
               "cudagraphs debug_sync_graph debug_sync_kernel decompose_sort_ops dense_indexing "
               "disallow_failing_autotune_kernels_TESTING_ONLY enable_pdl enable_persistent_tma_matmul "
               "enable_template_tma_store enable_tma_load_for_template_epilogue fast_path_cudagraph_asserts "
               "force_cooperative_reductions force_cudagraph_sync force_cudagraphs_warmup "
               "mix_order_reduction_autotune_split_size mix_order_reduction_non_strict_mode native_matmul "
               "nested_reduction prefer_nd_tiling proton_profiling skip_cudagraph_warmup skip_l1_cache store_cubin "
               "tile_reductions unique_user_kernel_names use_block_ptr use_tensor_descriptor"),
        **_all(None,
               "autotune_at_compile_time cudagraph_capture_sizes inject_relu_bug_TESTING_ONLY max_tiles "
               "mix_order_reduction_split_size proton_output_dir"),
        "cudagraph_dynamic_shape_warn_limit": 8, "cudagraph_min_partition_size": 0,
        "cudagraph_partition_memory_budget": 1.1, "cudagraph_unexpected_rerecord_limit": 128,
        "debug_dump_kernel_inputs": {}, "decompose_k_threshold": 32, "descriptive_names": "original_aten",
        "max_kernel_dump_occurrences": 3, "min_split_scan_rblock": 256, "mix_order_reduction_initial_xblock": 1,
        "mix_order_reduction_max_reads": 10, "multi_kernel": 0, "num_decompose_k_splits": 10, "spill_threshold": 16,
        "use_two_step_variance_min_numel": 1024, "use_two_step_variance_threshold": 32768,
    },
    "aot_inductor": {
        **_all(True,
               "check_lowerbound dynamic_linkage enable_frame_pointer enable_line_tables link_libtorch "
               "package_constants_in_so precompile_headers raise_error_on_ignored_optimization "
               "use_consts_asm_build"),
        **_all(False,
               "allow_stack_allocation autotune_per_kernel_alloc debug_compile debug_symbols dump_aoti_minifier "
               "enable_lto force_mmap_weights package use_minimal_arrayref_interface use_runtime_constant_folding "
               "weight_use_caching_allocator"),
        **_all(None,
               "aoti_shim_library aoti_shim_library_path cross_target_platform custom_op_libs embed_kernel_binary "
               "emit_multi_arch_kernel filtered_kernel_names model_name_for_generated_files "
               "package_constants_on_disk_format package_cpp_only"),
        "compile_wrapper_opt_level": "O1", "custom_ops_to_c_shims": {}, "debug_intermediate_value_printer": "0",
        "metadata": {}, "output_path": "", "presets": {}, "repro_level": 2, "serialized_in_spec": "",
        "serialized_out_spec": "",
    },
    "aot_inductor_mode": {
        **_all(False,
               "compile_standalone"),
    },
    "cutlass": {
        **_all(True,
               "cutlass_prescreening enable_caching_codegen use_binary_remote_cache"),
        **_all(False,
               "binary_remote_cache_force_write cutlass_epilogue_fusion_enabled cutlass_hash_with_compile_cmd "
               "cutlass_tma_only enable_debug_info generate_test_runner upload_to_binary_remote_cache "
               "use_fast_math"),
        **_all(None,
               "cutlass_max_profiling_configs cutlass_op_allowlist_regex cutlass_op_denylist_regex"),
        "compile_opt_level": "-O1", "cutlass_backend_min_gemm_size": 1, "cutlass_dir": "",
        "cutlass_dynamic_cluster_fallback": (2, 1, 1), "cutlass_dynamic_cluster_shape": (2, 1, 1),
        "cutlass_enabled_ops": "all", "cutlass_instantiation_level": "0",
        "cutlass_max_profiling_swizzle_options": [1, 2, 4, 8],
    },
    "cuda": {
        **_all(True,
               "cutlass_prescreening enable_caching_codegen use_binary_remote_cache"),
        **_all(False,
               "binary_remote_cache_force_write cutlass_epilogue_fusion_enabled cutlass_hash_with_compile_cmd "
               "cutlass_tma_only enable_cuda_lto enable_debug_info enable_ptxas_info generate_test_runner "
               "upload_to_binary_remote_cache use_fast_math"),
        **_all(None,
               "arch cuda_cxx cutlass_max_profiling_configs cutlass_op_allowlist_regex cutlass_op_denylist_regex "
               "version"),
        "compile_opt_level": "-O1", "cutlass_backend_min_gemm_size": 1, "cutlass_dir": "",
        "cutlass_dynamic_cluster_fallback": (2, 1, 1), "cutlass_dynamic_cluster_shape": (2, 1, 1),
        "cutlass_enabled_ops": "all", "cutlass_instantiation_level": "0",
        "cutlass_max_profiling_swizzle_options": [1, 2, 4, 8], "nvgemm_max_profiling_configs": 5,
    },
    "xpu": {
        **_all(True,
               "cutlass_prescreening enable_caching_codegen use_binary_remote_cache"),
        **_all(False,
               "binary_remote_cache_force_write cutlass_epilogue_fusion_enabled cutlass_hash_with_compile_cmd "
               "cutlass_tma_only enable_debug_info generate_test_runner upload_to_binary_remote_cache "
               "use_fast_math"),
        **_all(None,
               "arch cutlass_max_profiling_configs cutlass_op_allowlist_regex cutlass_op_denylist_regex "
               "oneapi_root version"),
        "compile_opt_level": "-O1", "cutlass_backend_min_gemm_size": 1, "cutlass_dir": "",
        "cutlass_dynamic_cluster_fallback": (2, 1, 1), "cutlass_dynamic_cluster_shape": (2, 1, 1),
        "cutlass_enabled_ops": "all", "cutlass_instantiation_level": "0",
        "cutlass_max_profiling_swizzle_options": [1, 2, 4, 8],
    },
    "rocm": {
        **_all(True,
               "flush_denormals use_fast_math"),
        **_all(False,
               "generate_test_runner is_debug origami print_kernel_resource_usage save_temps "
               "use_preselected_instances"),
        **_all(None,
               "ck_dir ck_max_profiling_configs ck_tile_max_profiling_configs kBatch_sweep n_max_profiling_configs "
               "rocm_home"),
        "arch": [], "ck_supported_arch": ["gfx90a", "gfx942", "gfx950"], "compile_opt_level": "-O2",
        "contiguous_threshold": 16, "origami_topk": 6, "split_k_threshold": 16,
    },
    "mtia": {
        **_all(False,
               "disable_welford_reduction"),
    },
    "halide": {
        **_all(False,
               "asserts debug scan_kernels"),
        "cpu_target": "host", "gpu_target": "host-cuda", "scheduler_cpu": "Adams2019",
        "scheduler_cuda": "Anderson2021",
    },
    "trace": {
        **_all(True,
               "fx_graph fx_graph_transformed ir_post_fusion ir_pre_fusion output_code"),
        **_all(False,
               "compile_profile debug_log draw_orig_fx_graph enabled graph_diagram info_log log_autotuning_results "
               "save_real_tensors"),
        **_all(None,
               "debug_dir dot_graph_shape log_url_for_graph_xform upload_tar"),
        "graph_diagram_format": "svg", "orig_fx_graph_diagram_format": "svg", "provenance_tracking_level": 0,
    },
    "lookup_table": {
        **_all(True,
               "check_src_hash"),
        **_all(None,
               "table"),
    },
    "test_configs": {
        **_all(True,
               "assume_bucketing_reduces_latency"),
        **_all(False,
               "bisect_keep_custom_backend_for_inductor bisect_pre_grad_graph "
               "force_extern_kernel_in_multi_template force_filter_reduction_configs force_no_impl_grouping "
               "graphsafe_rng_func_ignores_fallback_random runtime_triton_dtype_assert runtime_triton_shape_assert "
               "static_cpp_dtype_assert use_libtorch"),
        **_all(None,
               "autotune_choice_desc_regex autotune_choice_name_regex force_custom_op_decomposition "
               "max_flex_configs max_mm_configs track_memory_lifecycle"),
        "distort_benchmarking_result": "",
    },
    "eager_numerics": {
        **_all(False,
               "disable_ftz division_rounding use_pytorch_libdevice"),
    },
}

__all__ = ["INDUCTOR"]
