"""Operators outside the delegate, on NumPy, keyed as `.pte` files name them.

A family is imported when one of its operators is first asked for: most programs need one or two,
and compiling them all costs a browser a noticeable moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from .kernel import KERNELS, Kernel, Out

__all__ = ["FAMILIES", "Kernel", "Out", "find_kernel", "missing"]

FAMILIES: dict[str, str] = {
    "arithmetic": """add sub mul div floor_divide remainder fmod pow rsub maximum minimum clamp
        atan2 bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift
        bitwise_right_shift""",
    "compare": """eq ne lt le gt ge logical_and logical_or logical_xor logical_not any all isinf
        isnan where masked_fill""",
    "copies": """copy_ copy clone alias_copy detach_copy lift_fresh_copy _to_copy
        _to_dim_order_copy _clone_dim_order _empty_dim_order _h2d_copy _d2h_copy fill full full_like
        zeros ones empty scalar_tensor arange""",
    "convolution": """convolution avg_pool2d max_pool2d_with_indices _adaptive_avg_pool2d
        upsample_nearest2d upsample_bilinear2d""",
    "indexing": """embedding index index_put index_put_ index_select gather scatter scatter_add
        select_scatter slice_scatter masked_select masked_scatter nonzero topk
        repeat_interleave""",
    "matmul": "mm bmm addmm linear",
    "norms": """_softmax _log_softmax native_layer_norm native_group_norm
        _native_batch_norm_legit_no_training _native_batch_norm_legit""",
    "quantized": """quantize_per_tensor dequantize_per_tensor quantize_per_channel
        dequantize_per_channel quantize_per_token dequantize_per_token choose_qparams
        choose_qparams_per_token_asymmetric embedding_byte embedding_4bit embedding_2bit""",
    "reduce": """sum mean prod cumsum amax amin argmax argmin max min var var_mean""",
    "shape": """view_copy squeeze_copy unsqueeze_copy permute_copy transpose_copy t_copy
        expand_copy repeat select_copy slice_copy narrow_copy cat stack split_copy
        split_with_sizes_copy unbind_copy flip roll tril diagonal_copy unfold_copy as_strided_copy
        pixel_shuffle pixel_unshuffle constant_pad_nd reflection_pad1d reflection_pad2d
        reflection_pad3d replication_pad1d replication_pad2d replication_pad3d""",
    "symbolic": "",
    "unary": """abs neg sign ceil floor round trunc exp expm1 log log2 log10 log1p sqrt rsqrt
        reciprocal sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf sigmoid logit
        relu gelu elu glu hardtanh leaky_relu _conj_physical""",
}
"""Family (module) -> operators in it, without namespace and overload; a test compares the two.

`symbolic` needs no list: it has the `executorch_prim` namespace and `aten::sym_*`.
"""

_FAMILY_OF = {operator: family for family, text in FAMILIES.items() for operator in text.split()}


def find_kernel(name: str) -> Kernel | None:
    """The kernel of an operator such as `aten::add.out`, or None."""
    if name not in KERNELS:
        namespace, _, rest = name.rpartition("::")
        operator = rest.partition(".")[0]
        family = _FAMILY_OF.get(operator, "symbolic")
        if namespace == "executorch_prim":
            family = "symbolic"
        elif namespace == "quantized_decomposed":
            family = "quantized"
        import_module(f".{family}", __name__)
    return KERNELS.get(name)


def missing(names: Iterable[str]) -> list[str]:
    """Those of `names` that have no kernel, sorted, each once."""
    return sorted(name for name in set(names) if find_kernel(name) is None)
