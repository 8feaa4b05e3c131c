"""Quantized codes: per tensor, per channel, per token, and embeddings."""

import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401
import torch
import torch.ao.quantization.fx._decomposed
from portable_cases.recorder import F32, F64, I8, I64, U8, f32, ints, record


def quantized():
    q = torch.ops.quantized_decomposed
    d = "quantized_decomposed::"
    x = torch.cat([f32(12, scale=3), torch.tensor([0.125, 0.375, -1e9, 1e9])]).reshape(4, 4)
    codes = ints(I8, 4, 4, low=-128, high=127)
    record(
        d + "quantize_per_tensor.out",
        (x, 0.25, 3, -128, 127, 1),
        [I8],
        [q.quantize_per_tensor(x, 0.25, 3, -128, 127, I8)],
    )
    s, z = torch.tensor([0.05]), torch.tensor([7])
    record(
        d + "quantize_per_tensor.Tensor_out",
        (x, s, z, 0, 255, 0),
        [U8],
        [q.quantize_per_tensor.tensor(x, s, z, 0, 255, U8)],
    )
    record(
        d + "dequantize_per_tensor.out",
        (codes, 0.3, -5, -128, 127, 1, None),
        [F32],
        [q.dequantize_per_tensor(codes, 0.3, -5, -128, 127, I8)],
    )
    record(
        d + "dequantize_per_tensor.Tensor_out",
        (codes, s, z, -128, 127, 1, None),
        [F32],
        [q.dequantize_per_tensor.tensor(codes, s, z, -128, 127, I8)],
    )
    scales, zeros = torch.rand(4) + 0.1, ints(I64, 4, low=-9, high=9)
    record(
        d + "quantize_per_channel.out",
        (x, scales, zeros, 1, -128, 127, 1),
        [I8],
        [q.quantize_per_channel(x, scales, zeros, 1, -128, 127, I8)],
    )
    record(
        d + "dequantize_per_channel.out",
        (codes, scales, zeros, 0, -128, 127, 1, None),
        [F32],
        [q.dequantize_per_channel(codes, scales, zeros, 0, -128, 127, I8)],
    )
    s, z = q.choose_qparams_per_token_asymmetric(x[:3], I8)
    record(d + "choose_qparams_per_token_asymmetric.out", (x[:3], 1), [F64, I64], [s, z])
    record(
        d + "quantize_per_token.out",
        (x[:3], s, z, -128, 127, 1),
        [I8],
        [q.quantize_per_token(x[:3], s, z, -128, 127, I8)],
    )
    record(
        d + "dequantize_per_token.out",
        (codes[:3], s, z, -128, 127, 1, 6),
        [F32],
        [q.dequantize_per_token(codes[:3], s, z, -128, 127, I8, F32)],
    )
    s, z = q.choose_qparams.tensor(x[:3], -128, 127, 1e-6, I8)
    record(d + "choose_qparams.Tensor_out", (x[:3], -128, 127, 1e-6, 1), [F64, I64], [s, z])
    indices = torch.tensor([[5, 0], [3, 5]])
    table = ints(I8, 6, 8, low=-128, high=127)
    one, groups = torch.rand(6) + 0.1, torch.rand(6, 2) + 0.1
    shift = ints(I64, 6, low=-5, high=5).to(F32)
    for scales, zeros in ((one, None), (one, shift)):
        record(
            d + "embedding_byte.out",
            (table, scales, zeros, -128, 127, indices),
            [F32],
            [q.embedding_byte(table, scales, zeros, -128, 127, indices)],
        )
    record(
        d + "embedding_byte.dtype_out",
        (table, groups, None, -128, 127, indices, 6),
        [F32],
        [q.embedding_byte.dtype(table, groups, None, -128, 127, indices, dtype=F32)],
    )
    packed = torch.randint(0, 256, (6, 4)).to(U8)
    record(
        d + "embedding_4bit.out",
        (packed, groups, None, -8, 7, indices),
        [F32],
        [q.embedding_4bit(packed, groups, None, -8, 7, indices)],
    )
    four = q.embedding_4bit.dtype(packed, one, None, -8, 7, indices, dtype=F32)
    record(d + "embedding_4bit.dtype_out", (packed, one, None, -8, 7, indices, 6), [F32], [four])
    two = q.embedding_2bit.dtype(packed, groups, None, -2, 1, indices, dtype=F32)
    record(d + "embedding_2bit.dtype_out", (packed, groups, None, -2, 1, indices, 6), [F32], [two])
    record(
        d + "embedding_2bit.out",
        (packed, one, None, -2, 1, indices),
        [F32],
        [q.embedding_2bit(packed, one, None, -2, 1, indices)],
    )
