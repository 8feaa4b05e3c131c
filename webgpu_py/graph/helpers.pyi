"""Short names of the operators; written by tests/contract/test_helpers.py."""

from collections.abc import Sequence

from .builder import Var

Argument = Var | bool | int | float | str | Sequence[Var | None] | Sequence[float] | None

class Helpers:
    def abs(self, x: Argument, /) -> Var:
        """`aten.abs.default`: abs: |x|; neg: -x; relu: max(x, 0). float32 or int32; shapes as in Unary."""
    def adamw_step(self, param: Argument, m: Argument, v: Argument, grad: Argument, lr: Argument, beta1: Argument, beta2: Argument, eps: Argument, weight_decay: Argument, bias_correction1: Argument, bias_correction2: Argument, /) -> tuple[Var, ...]:
        """`et_vk.adamw_step.default`: One AdamW step on param, m and v, in place."""
    def add(self, a: Argument, b: Argument, alpha: Argument = ..., /) -> Var:
        """`aten.add.Tensor`: y = a + alpha * b; shapes and dtypes as in Binary, an int32 result needs a whole alpha."""
    def addmm(self, input: Argument, mat1: Argument, mat2: Argument, beta: Argument = ..., alpha: Argument = ..., /) -> Var:
        """`aten.addmm.default`: out = beta * input + alpha * mat1 . mat2; with beta 0 the input is not read."""
    def alias_copy(self, x: Argument, /) -> Var:
        """`aten.alias_copy.default`: y = x. Any shape and dtype; tensors are row-major here, so a dim order changes nothing."""
    def amax(self, x: Argument, dims: Argument = ..., keepdim: Argument = ..., /) -> Var:
        """`aten.amax.default`: Largest or smallest over dims (all where none are given); NaN where one is among them."""
    def amin(self, x: Argument, dims: Argument = ..., keepdim: Argument = ..., /) -> Var:
        """`aten.amin.default`: Largest or smallest over dims (all where none are given); NaN where one is among them."""
    def apply_rotary_emb(self, q: Argument, k: Argument, cos: Argument, sin: Argument, /) -> tuple[Var, ...]:
        """`et_vk.apply_rotary_emb.default`: (x[2i] + j x[2i+1]) * (cos[s, i] + j sin[s, i]) for token s, as real and imaginary parts."""
    def apply_rotary_emb_hf(self, q: Argument, k: Argument, cos: Argument, sin: Argument, start_pos: Argument, /) -> tuple[Var, ...]:
        """`et_vk.apply_rotary_emb_hf.default`: out = x * cos[row] + rotate_half(x) * sin[row] over the first R dims, row = start_pos + s."""
    def apply_rotary_emb_interleaved(self, x: Argument, freqs: Argument, /) -> Var:
        """`et_vk.apply_rotary_emb_interleaved.default`: (x[n, 2i] + j x[n, 2i+1]) * (freqs[n, 2i] + j freqs[n, 2i+1]), as real and imaginary parts."""
    def argmax(self, x: Argument, dim: Argument = ..., keepdim: Argument = ..., /) -> Var:
        """`aten.argmax.default`: Index of the largest or smallest along dim, or into the flattened x where dim is None."""
    def argmin(self, x: Argument, dim: Argument = ..., keepdim: Argument = ..., /) -> Var:
        """`aten.argmin.default`: Index of the largest or smallest along dim, or into the flattened x where dim is None."""
    def attention(self, q: Argument, k: Argument, v: Argument, k_cache: Argument, v_cache: Argument, input_pos: Argument, scale: Argument = ..., window: Argument = ..., softcap: Argument = ..., /) -> Var:
        """`webgpu_py.attention`: As sdpa_with_kv_cache, with a sliding window, a soft cap and caches of float16."""
    def avg_pool2d(self, x: Argument, kernel_size: Argument, stride: Argument = ..., padding: Argument = ..., ceil_mode: Argument = ..., count_include_pad: Argument = ..., divisor_override: Argument = ..., /) -> Var:
        """`aten.avg_pool2d.default`: out = sum over the window / divisor."""
    def bitwise_and(self, a: Argument, b: Argument, /) -> Var:
        """`aten.bitwise_and.Tensor`: y = a & b."""
    def bitwise_not(self, x: Argument, /) -> Var:
        """`aten.bitwise_not.default`: y = ~x, for bool: not x. Any shape; bool, uint8, int8 or int32. Errors: DtypeError."""
    def bitwise_or(self, a: Argument, b: Argument, /) -> Var:
        """`aten.bitwise_or.Tensor`: y = a | b; shapes and dtypes as in BitwiseAnd."""
    def bmm(self, a: Argument, b: Argument, /) -> Var:
        """`aten.bmm.default`: mm: out[m, n] = sum_k a[m, k] * b[k, n]; bmm: the same for every batch."""
    def cat(self, tensors: Argument, dim: Argument = ..., /) -> Var:
        """`aten.cat.default`: The tensors one after the other along `dim`."""
    def choose_qparams_affine(self, x: Argument, mapping_type: Argument, block_size: Argument, target_dtype: Argument = ..., quant_min: Argument = ..., quant_max: Argument = ..., eps: Argument = ..., scale_dtype: Argument = ..., zero_point_dtype: Argument = ..., keepdim: Argument = ..., /) -> tuple[Var, ...]:
        """`torchao.choose_qparams_affine.default`: Scale and zero point of each row for asymmetric int8, 0 always representable."""
    def clamp(self, x: Argument, low: Argument = ..., high: Argument = ..., /) -> Var:
        """`aten.clamp.default`: y = min(max(x, low), high); a bound that is None does nothing."""
    def clone(self, x: Argument, memory_format: Argument = ..., /) -> Var:
        """`aten.clone.default`: y = x. Any shape and dtype; tensors are row-major here, so a dim order changes nothing."""
    def clone_dim_order(self, x: Argument, non_blocking: Argument = ..., dim_order: Argument = ..., /) -> Var:
        """`dim_order_ops._clone_dim_order.default`: y = x. Any shape and dtype; tensors are row-major here, so a dim order changes nothing."""
    def constant_pad_nd(self, x: Argument, pad: Argument, value: Argument = ..., /) -> Var:
        """`aten.constant_pad_nd.default`: y = x with `value` around it; negative pads crop."""
    def conv_with_clamp(self, x: Argument, weight: Argument, bias: Argument, stride: Argument, padding: Argument, dilation: Argument, transposed: Argument, output_padding: Argument, groups: Argument, output_min: Argument = ..., output_max: Argument = ..., /) -> Var:
        """`et_vk.conv_with_clamp.default`: out[n, oc] = bias[oc] + sum over channels and taps of weight * x, clamped where bounded."""
    def convolution(self, x: Argument, weight: Argument, bias: Argument, stride: Argument, padding: Argument, dilation: Argument, transposed: Argument, output_padding: Argument, groups: Argument, /) -> Var:
        """`aten.convolution.default`: out[n, oc] = bias[oc] + sum over channels and taps of weight * x, clamped where bounded."""
    def cos(self, x: Argument, /) -> Var:
        """`aten.cos.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def dequantize_per_tensor(self, x: Argument, scale: Argument, zero_point: Argument, quant_min: Argument = ..., quant_max: Argument = ..., dtype: Argument = ..., out_dtype: Argument = ..., /) -> Var:
        """`quantized_decomposed.dequantize_per_tensor.default`: out = (x - zero_point) * scale."""
    def div_tensor(self, a: Argument, b: Argument, /) -> Var:
        """`aten.div.Tensor`: y = a / b; shapes as in Binary, the result is float32 for integers too."""
    def div_tensor_mode(self, a: Argument, b: Argument, mode: Argument = ..., /) -> Var:
        """`aten.div.Tensor_mode`: y = a / b (mode None), floor(a / b) ("floor") or trunc(a / b) ("trunc")."""
    def embedding(self, weight: Argument, indices: Argument, padding_idx: Argument = ..., scale_grad: Argument = ..., sparse: Argument = ..., /) -> Var:
        """`aten.embedding.default`: y[.., :] = weight[indices[..], :]."""
    def embedding_f16(self, codes: Argument, code_kind: Argument, width: Argument, indices: Argument, /) -> Var:
        """`webgpu_py.embedding_f16`: y[..., :] = w[indices[...], :], w as stored: f16, bf16 or f32."""
    def embedding_q4(self, codes: Argument, scales: Argument, scale_kind: Argument, group_size: Argument, width: Argument, indices: Argument, /) -> Var:
        """`webgpu_py.embedding_q4`: y[..., d] = (c[t, d] - zero) * scale + minimum, t = indices[...]."""
    def embedding_q4gsw(self, weight: Argument, scales: Argument, group_size: Argument, indices: Argument, is_linear_weight: Argument = ..., /) -> Var:
        """`et_vk.embedding_q4gsw.default`: y[..., d] = (c[t, d] - 8) * scales[t, d div group_size], t = indices[...]."""
    def embedding_q8(self, codes: Argument, scales: Argument, scale_kind: Argument, group_size: Argument, width: Argument, indices: Argument, /) -> Var:
        """`webgpu_py.embedding_q8`: y[..., d] = (c[t, d] - zero) * scale + minimum, t = indices[...]."""
    def eq_scalar(self, x: Argument, value: Argument, /) -> Var:
        """`aten.eq.Scalar`: y = x op value as bool."""
    def eq_tensor(self, a: Argument, b: Argument, /) -> Var:
        """`aten.eq.Tensor`: y = a op b as bool."""
    def exp(self, x: Argument, /) -> Var:
        """`aten.exp.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def expand_copy(self, x: Argument, sizes: Argument, implicit: Argument = ..., /) -> Var:
        """`aten.expand_copy.default`: y = x broadcast to `sizes`: size-1 dims repeat, leading dims may be new."""
    def flip(self, x: Argument, dims: Argument, /) -> Var:
        """`aten.flip.default`: y = x with each of `dims` backwards; negative dims count from the end."""
    def full(self, size: Argument, value: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., /) -> Var:
        """`aten.full.default`: y = value (full, scalar_tensor), 0 (zeros) or 1 (ones) everywhere."""
    def full_like(self, x: Argument, value: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., memory_format: Argument = ..., /) -> Var:
        """`aten.full_like.default`: y = value (full_like), 0 or 1 everywhere, in x's shape and, unless another is said, dtype."""
    def fused_ce(self, logits: Argument, labels: Argument, n_valid: Argument, /) -> tuple[Var, ...]:
        """`et_vk.fused_ce.default`: loss = sum over rows of (logsumexp(logits) - logits[label]) / n_valid, and its gradient."""
    def gather(self, x: Argument, dim: Argument, index: Argument, sparse_grad: Argument = ..., /) -> Var:
        """`aten.gather.default`: y[i, .., j] = x at the same coordinates but index[i, .., j] along `dim`."""
    def ge_scalar(self, x: Argument, value: Argument, /) -> Var:
        """`aten.ge.Scalar`: y = x op value as bool."""
    def ge_tensor(self, a: Argument, b: Argument, /) -> Var:
        """`aten.ge.Tensor`: y = a op b as bool."""
    def gelu(self, x: Argument, approximate: Argument = ..., /) -> Var:
        """`aten.gelu.default`: y = x * (1 + erf(x / sqrt(2))) / 2, approximate "none"."""
    def grid_priors(self, x: Argument, stride: Argument, offset: Argument, /) -> Var:
        """`et_vk.grid_priors.default`: out[r] = ((r % W + offset) * stride, (r // W + offset) * stride)."""
    def grid_sampler_2d(self, x: Argument, grid: Argument, interpolation_mode: Argument, padding_mode: Argument, align_corners: Argument, /) -> Var:
        """`aten.grid_sampler_2d.default`: out[n, c, h, w] = x[n, c] at the place grid[n, h, w] = (across, down), -1 .. 1 an axis."""
    def gt_scalar(self, x: Argument, value: Argument, /) -> Var:
        """`aten.gt.Scalar`: y = x op value as bool."""
    def gt_tensor(self, a: Argument, b: Argument, /) -> Var:
        """`aten.gt.Tensor`: y = a op b as bool."""
    def hardswish(self, x: Argument, /) -> Var:
        """`aten.hardswish.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def hardtanh(self, x: Argument, low: Argument = ..., high: Argument = ..., /) -> Var:
        """`aten.hardtanh.default`: y = min(max(x, low), high); a bound that is None does nothing."""
    def index(self, x: Argument, indices: Argument, /) -> Var:
        """`aten.index.Tensor`: y = x[indices]: a list with an index tensor, or None for a whole dim, for each leading dim."""
    def index_select(self, x: Argument, dim: Argument, index: Argument, /) -> Var:
        """`aten.index_select.default`: y[.., j, ..] = x[.., index[j], ..] along `dim`."""
    def join_rows(self, parts: Argument, /) -> Var:
        """`webgpu_py.join_rows`: The rows of several weights, one weight below the other, without a copy."""
    def le_scalar(self, x: Argument, value: Argument, /) -> Var:
        """`aten.le.Scalar`: y = x op value as bool."""
    def le_tensor(self, a: Argument, b: Argument, /) -> Var:
        """`aten.le.Tensor`: y = a op b as bool."""
    def leaky_relu(self, x: Argument, slope: Argument = ..., /) -> Var:
        """`aten.leaky_relu.default`: y = max(x, 0) + slope * min(x, 0)."""
    def linear(self, x: Argument, weight: Argument, bias: Argument = ..., /) -> Var:
        """`aten.linear.default`: out[..., n] = bias[n] + sum_k x[..., k] * weight[n, k]."""
    def linear_dW(self, d_out: Argument, x: Argument, /) -> Var:
        """`et_vk.linear_dW.default`: d_weight[n, k] = sum_m d_out[m, n] * x[m, k]."""
    def linear_dq8ca_q4gsw(self, x: Argument, input_scale: Argument, input_zero_point: Argument, weight: Argument, weight_sums: Argument, weight_scales: Argument, group_size: Argument, bias: Argument = ..., /) -> Var:
        """`et_vk.linear_dq8ca_q4gsw.default`: y[m, n] = s[m] * sum_k (q[m, k] - z[m]) * (c[n, k] - 8) * scale[k div group_size, n] + bias."""
    def linear_f16(self, x: Argument, codes: Argument, code_kind: Argument, bias: Argument = ..., norm: Argument = ..., eps: Argument = ..., gate: Argument = ..., residual: Argument = ..., /) -> Var:
        """`webgpu_py.linear_f16`: y[..., n] = sum_k x[..., k] * w[n, k], w as stored: f16, bf16 or f32; `_Linear`'s extras."""
    def linear_q4(self, x: Argument, codes: Argument, scales: Argument, scale_kind: Argument, group_size: Argument, bias: Argument = ..., norm: Argument = ..., eps: Argument = ..., gate: Argument = ..., residual: Argument = ..., /) -> Var:
        """`webgpu_py.linear_q4`: y[..., n] = sum_k x[..., k] * ((c[n, k] - zero) * scale + minimum), and `_Linear`'s extras."""
    def linear_q4gsw(self, x: Argument, weight: Argument, scales: Argument, group_size: Argument, bias: Argument = ..., /) -> Var:
        """`et_vk.linear_q4gsw.default`: y[m, n] = bias[n] + sum_k x[m, k] * (c[n, k] - 8) * scales[k div group_size, n]."""
    def linear_q4gsw_backward(self, d_out: Argument, weight: Argument, scales: Argument, group_size: Argument, /) -> Var:
        """`et_vk.linear_q4gsw_backward.default`: d_x[m, k] = sum_n d_out[m, n] * (c[n, k] - 8) * scales[k div group_size, n]."""
    def linear_q8(self, x: Argument, codes: Argument, scales: Argument, scale_kind: Argument, group_size: Argument, bias: Argument = ..., norm: Argument = ..., eps: Argument = ..., gate: Argument = ..., residual: Argument = ..., /) -> Var:
        """`webgpu_py.linear_q8`: y[..., n] = sum_k x[..., k] * ((c[n, k] - zero) * scale + minimum), and `_Linear`'s extras."""
    def linear_q8ta_q8csw(self, x: Argument, input_scale: Argument, input_zero_point: Argument, weight: Argument, weight_sums: Argument, weight_scales: Argument, bias: Argument = ..., /) -> Var:
        """`et_vk.linear_q8ta_q8csw.default`: out[..., n] = input_scale * scales[n] * sum_k (x[..., k] - zero) weight[n, k] + bias[n]."""
    def linear_qcs4w(self, x: Argument, weight: Argument, scales: Argument, /) -> Var:
        """`et_vk.linear_qcs4w.default`: y[m, n] = scales[n] * sum_k x[m, k] * (c[n, k] - 8)."""
    def log_softmax(self, x: Argument, dim: Argument, half_to_float: Argument = ..., /) -> Var:
        """`aten._log_softmax.default`: exp(x - m) / sum(exp(x - m)) along dim with m the largest there, or its logarithm."""
    def logical_and(self, a: Argument, b: Argument, /) -> Var:
        """`aten.logical_and.default`: y = (a != 0) and (b != 0) as bool; shapes and dtypes as in Compare."""
    def logical_not(self, x: Argument, /) -> Var:
        """`aten.logical_not.default`: y = (x == 0) as bool; any shape, dtypes as in Compare. Errors: DtypeError."""
    def logical_or(self, a: Argument, b: Argument, /) -> Var:
        """`aten.logical_or.default`: y = (a != 0) or (b != 0) as bool; shapes and dtypes as in Compare."""
    def lt_scalar(self, x: Argument, value: Argument, /) -> Var:
        """`aten.lt.Scalar`: y = x op value as bool."""
    def lt_tensor(self, a: Argument, b: Argument, /) -> Var:
        """`aten.lt.Tensor`: y = a op b as bool."""
    def max_pool2d_with_indices(self, x: Argument, kernel_size: Argument, stride: Argument = ..., padding: Argument = ..., dilation: Argument = ..., ceil_mode: Argument = ..., /) -> tuple[Var, ...]:
        """`aten.max_pool2d_with_indices.default`: values = maximum over the window, padding left out; indices = where, as h * W + w."""
    def mean(self, x: Argument, dims: Argument = ..., keepdim: Argument = ..., dtype: Argument = ..., /) -> Var:
        """`aten.mean.dim`: Sum or mean over dims (all of them where none are given)."""
    def minimum(self, a: Argument, b: Argument, /) -> Var:
        """`aten.minimum.default`: y = min(a, b), NaN where either is; shapes and dtypes as in Binary."""
    def mm(self, a: Argument, b: Argument, /) -> Var:
        """`aten.mm.default`: mm: out[m, n] = sum_k a[m, k] * b[k, n]; bmm: the same for every batch."""
    def mul(self, a: Argument, b: Argument, /) -> Var:
        """`aten.mul.Tensor`: y = a * b; shapes and dtypes as in Binary."""
    def native_batch_norm_legit_no_training(self, x: Argument, weight: Argument, bias: Argument, mean: Argument, variance: Argument, momentum: Argument, eps: Argument, /) -> tuple[Var, ...]:
        """`aten._native_batch_norm_legit_no_training.default`: (x - mean) / sqrt(variance + eps) * weight + bias per channel."""
    def native_group_norm(self, x: Argument, weight: Argument, bias: Argument, N: Argument, C: Argument, HxW: Argument, group: Argument, eps: Argument, /) -> tuple[Var, ...]:
        """`aten.native_group_norm.default`: (x - mean) / sqrt(variance + eps) per group of channels, then * weight + bias per channel."""
    def native_layer_norm(self, x: Argument, normalized_shape: Argument, weight: Argument = ..., bias: Argument = ..., eps: Argument = ..., /) -> tuple[Var, ...]:
        """`aten.native_layer_norm.default`: (x - mean) / sqrt(variance + eps) * weight + bias over the last dims, biased variance."""
    def ne_scalar(self, x: Argument, value: Argument, /) -> Var:
        """`aten.ne.Scalar`: y = x op value as bool."""
    def ne_tensor(self, a: Argument, b: Argument, /) -> Var:
        """`aten.ne.Tensor`: y = a op b as bool."""
    def neg(self, x: Argument, /) -> Var:
        """`aten.neg.default`: abs: |x|; neg: -x; relu: max(x, 0). float32 or int32; shapes as in Unary."""
    def ones(self, size: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., /) -> Var:
        """`aten.ones.default`: y = value (full, scalar_tensor), 0 (zeros) or 1 (ones) everywhere."""
    def ones_like(self, x: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., memory_format: Argument = ..., /) -> Var:
        """`aten.ones_like.default`: y = value (full_like), 0 or 1 everywhere, in x's shape and, unless another is said, dtype."""
    def permute(self, x: Argument, dims: Argument, /) -> Var:
        """`aten.permute.default`: Dim k of y is dim dims[k] of x; negative dims count from the end."""
    def permute_copy(self, x: Argument, dims: Argument, /) -> Var:
        """`aten.permute_copy.default`: Dim k of y is dim dims[k] of x; negative dims count from the end."""
    def pixel_shuffle(self, x: Argument, factor: Argument, /) -> Var:
        """`aten.pixel_shuffle.default`: y[.., c, h, w] = x[.., c * r * r + (h % r) * r + w % r, h // r, w // r]."""
    def pow_tensor_scalar(self, x: Argument, exponent: Argument, /) -> Var:
        """`aten.pow.Tensor_Scalar`: y = x ^ exponent; for x < 0 with the sign of a whole exponent, NaN for a fractional one."""
    def pow_tensor_tensor(self, a: Argument, b: Argument, /) -> Var:
        """`aten.pow.Tensor_Tensor`: y = a ^ b: NaN for a < 0 with a fractional b; shapes and dtypes as in Binary."""
    def prepack(self, constant: Argument, /) -> Var:
        """`et_vk.prepack.default`: out = constant: an identity copy done once at build, before the first run."""
    def q4gsw_requant(self, latent: Argument, scales: Argument, group_size: Argument, /) -> Var:
        """`et_vk.q4gsw_requant.default`: c[n, k] = clamp(round to even(latent[n, k] / scale), -8, 7) + 8, packed; 8 where scale is 0."""
    def q8ta_add(self, a: Argument, b: Argument, a_scale: Argument, a_zero_point: Argument, b_scale: Argument, b_zero_point: Argument, output_scale: Argument, output_zero_point: Argument, alpha: Argument = ..., /) -> Var:
        """`et_vk.q8ta_add.default`: out = requantize(a_scale * (a - a_zero_point) + alpha * (b_scale * (b - b_zero_point)))."""
    def q8ta_conv2d(self, x: Argument, input_scale: Argument, input_zero_point: Argument, weight: Argument, weight_sums: Argument, weight_scales: Argument, output_scale: Argument, output_zero_point: Argument, bias: Argument, kernel_size: Argument, stride: Argument, padding: Argument, dilation: Argument, groups: Argument, activation: Argument = ..., /) -> Var:
        """`et_vk.q8ta_conv2d.default`: out = requantize(sum * input_scale * weight_scales[oc] + bias[oc]), as in q8ta_linear."""
    def q8ta_conv2d_dw(self, x: Argument, input_scale: Argument, input_zero_point: Argument, weight: Argument, weight_sums: Argument, weight_scales: Argument, output_scale: Argument, output_zero_point: Argument, bias: Argument, kernel_size: Argument, stride: Argument, padding: Argument, dilation: Argument, groups: Argument, activation: Argument = ..., /) -> Var:
        """`et_vk.q8ta_conv2d_dw.default`: out = requantize(sum * input_scale * weight_scales[oc] + bias[oc]), as in q8ta_linear."""
    def q8ta_conv2d_pw(self, x: Argument, input_scale: Argument, input_zero_point: Argument, weight: Argument, weight_sums: Argument, weight_scales: Argument, output_scale: Argument, output_zero_point: Argument, bias: Argument, kernel_size: Argument, stride: Argument, padding: Argument, dilation: Argument, groups: Argument, activation: Argument = ..., /) -> Var:
        """`et_vk.q8ta_conv2d_pw.default`: out = requantize(sum * input_scale * weight_scales[oc] + bias[oc]), as in q8ta_linear."""
    def q8ta_conv2d_transposed(self, x: Argument, input_scale: Argument, input_zero_point: Argument, weight: Argument, weight_sums: Argument, weight_scales: Argument, output_scale: Argument, output_zero_point: Argument, bias: Argument, kernel_size: Argument, stride: Argument, padding: Argument, output_padding: Argument, dilation: Argument, groups: Argument, activation: Argument = ..., /) -> Var:
        """`et_vk.q8ta_conv2d_transposed.default`: out = requantize(sum * input_scale * weight_scales[oc] + bias[oc]), as in q8ta_linear."""
    def q8ta_linear(self, x: Argument, input_scale: Argument, input_zero_point: Argument, weight: Argument, weight_sums: Argument, weight_scales: Argument, output_scale: Argument, output_zero_point: Argument, bias: Argument = ..., activation: Argument = ..., /) -> Var:
        """`et_vk.q8ta_linear.default`: out[..., n] = clamp(round to even(v * float32(1 / output_scale)) + output_zero_point)."""
    def q8ta_linear_gemv(self, x: Argument, input_scale: Argument, input_zero_point: Argument, weight: Argument, weight_sums: Argument, weight_scales: Argument, output_scale: Argument, output_zero_point: Argument, bias: Argument = ..., activation: Argument = ..., /) -> Var:
        """`et_vk.q8ta_linear_gemv.default`: out[..., n] = clamp(round to even(v * float32(1 / output_scale)) + output_zero_point)."""
    def q8ta_pixel_shuffle(self, x: Argument, input_scale: Argument, input_zero_point: Argument, output_inv_scale: Argument, output_zero_point: Argument, upscale_factor: Argument, /) -> Var:
        """`et_vk.q8ta_pixel_shuffle.default`: out[.., c, h, w] = requantized x[.., c r r + (h % r) r + w % r, h // r, w // r]."""
    def q8ta_relu(self, x: Argument, input_scale: Argument, input_zero_point: Argument, output_scale: Argument, output_zero_point: Argument, /) -> Var:
        """`et_vk.q8ta_relu.default`: out = requantize(max(input_scale * (x - input_zero_point), 0)), as in q8ta_add."""
    def quantize_per_tensor(self, x: Argument, scale: Argument, zero_point: Argument, quant_min: Argument = ..., quant_max: Argument = ..., dtype: Argument = ..., /) -> Var:
        """`quantized_decomposed.quantize_per_tensor.default`: out = clamp(round to even(x * float32(1 / scale)) + zero_point, quant_min, quant_max)."""
    def quantize_rows(self, weight: Argument, type: Argument, rows: Argument, columns: Argument, bits: Argument, losses: Argument, index: Argument, /) -> tuple[Var, ...]:
        """`webgpu_py.quantize_rows`: A stored matrix [rows, columns] of F32, F16 or BF16 as codes of 4 or 8 bits, scales float16."""
    def relu(self, x: Argument, /) -> Var:
        """`aten.relu.default`: abs: |x|; neg: -x; relu: max(x, 0). float32 or int32; shapes as in Unary."""
    def repack(self, blocks: Argument, type: Argument, rows: Argument, columns: Argument, /) -> tuple[Var, ...]:
        """`webgpu_py.repack`: A stored matrix [rows, columns] in the packed layout of its type, `quant.LAYOUTS`."""
    def repeat(self, x: Argument, repeats: Argument, /) -> Var:
        """`aten.repeat.default`: y = x tiled repeats[k] times along dim k; more repeats than dims prepend dims."""
    def rms_norm(self, x: Argument, weight: Argument, eps: Argument = ..., /) -> Var:
        """`et_vk.rms_norm.default`: out = x / sqrt(mean(x^2 over the last dim) + eps) * weight."""
    def rope(self, q: Argument, k: Argument, cos: Argument, sin: Argument, start_pos: Argument, interleaved: Argument = ..., /) -> tuple[Var, ...]:
        """`webgpu_py.rope.default`: Rotation by angle table row start_pos + s, one column a pair, over the first R dims."""
    def round(self, x: Argument, /) -> Var:
        """`aten.round.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def rsqrt(self, x: Argument, /) -> Var:
        """`aten.rsqrt.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def sample(self, logits: Argument, counts: Argument, bias: Argument, settings: Argument, position: Argument, /) -> tuple[Var, ...]:
        """`webgpu_py.sample.default`: token ~ softmax(adjusted / temperature) among what top-k, top-p and min-p leave."""
    def scalar_tensor(self, value: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., /) -> Var:
        """`aten.scalar_tensor.default`: y = value (full, scalar_tensor), 0 (zeros) or 1 (ones) everywhere."""
    def sdpa(self, q: Argument, k: Argument, v: Argument, attn_mask: Argument = ..., scale: Argument = ..., /) -> Var:
        """`et_vk.sdpa.default`: out = softmax(q k^T * scale + mask) v over the last two dims."""
    def sdpa_with_kv_cache(self, q: Argument, k: Argument, v: Argument, k_cache: Argument, v_cache: Argument, input_pos: Argument, seq_len: Argument = ..., attn_mask: Argument = ..., dropout_p: Argument = ..., is_causal: Argument = ..., scale: Argument = ..., /) -> Var:
        """`sdpa_with_kv_cache.default`: out = softmax(q k^T * scale, causal) v over caches that first take k and v at input_pos."""
    def select_as_symint(self, x: Argument, dim: Argument, index: Argument, /) -> Var:
        """`et_vk.select_as_symint.default`: out = x[0, .., index, .., 0] at dimension `dim`, read from the host's array at each run."""
    def select_copy(self, x: Argument, dim: Argument, index: Argument, /) -> Var:
        """`aten.select_copy.int`: y = x[.., index, ..] along `dim`, which goes away; any dtype."""
    def self_attention(self, qkv: Argument, rotation: Argument, k_cache: Argument, v_cache: Argument, input_pos: Argument, q_heads: Argument, interleaved: Argument = ..., scale: Argument = ..., window: Argument = ..., softcap: Argument = ..., q_norm: Argument = ..., k_norm: Argument = ..., eps: Argument = ..., /) -> Var:
        """`webgpu_py.self_attention`: Causal attention over caches that first take the new keys and values at input_pos."""
    def sigmoid(self, x: Argument, /) -> Var:
        """`aten.sigmoid.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def sin(self, x: Argument, /) -> Var:
        """`aten.sin.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def slice_copy(self, x: Argument, dim: Argument = ..., start: Argument = ..., end: Argument = ..., step: Argument = ..., /) -> Var:
        """`aten.slice_copy.Tensor`: y = x[.., start:end:step, ..] along `dim`; any dtype."""
    def softmax(self, x: Argument, dim: Argument, half_to_float: Argument = ..., /) -> Var:
        """`aten._softmax.default`: exp(x - m) / sum(exp(x - m)) along dim with m the largest there, or its logarithm."""
    def split_with_sizes_copy(self, x: Argument, sizes: Argument, dim: Argument = ..., /) -> tuple[Var, ...]:
        """`aten.split_with_sizes_copy.default`: One result a size: consecutive parts of x along `dim`; any dtype."""
    def sqrt(self, x: Argument, /) -> Var:
        """`aten.sqrt.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def squeeze_copy(self, x: Argument, dims: Argument, /) -> Var:
        """`aten.squeeze_copy.dims`: y = x without those of `dims` whose size is 1; negative dims count from the end."""
    def sub(self, a: Argument, b: Argument, alpha: Argument = ..., /) -> Var:
        """`aten.sub.Tensor`: y = a - alpha * b; shapes and dtypes as in Binary, an int32 result needs a whole alpha."""
    def sum(self, x: Argument, dims: Argument = ..., keepdim: Argument = ..., dtype: Argument = ..., /) -> Var:
        """`aten.sum.dim_IntList`: Sum or mean over dims (all of them where none are given)."""
    def sym_add(self, a: Argument, b: Argument, /) -> Var:
        """`add`: a + b, a - b, a * b, floor(a / b) in int32, which wraps; a and b are Int or SymInt."""
    def sym_floordiv(self, a: Argument, b: Argument, /) -> Var:
        """`floordiv`: a + b, a - b, a * b, floor(a / b) in int32, which wraps; a and b are Int or SymInt."""
    def sym_mul(self, a: Argument, b: Argument, /) -> Var:
        """`mul`: a + b, a - b, a * b, floor(a / b) in int32, which wraps; a and b are Int or SymInt."""
    def sym_size(self, x: Argument, dim: Argument, /) -> Var:
        """`sym_size.int`: out = the live size of dimension `dim` of x, of an intermediate tensor too."""
    def sym_sub(self, a: Argument, b: Argument, /) -> Var:
        """`sub`: a + b, a - b, a * b, floor(a / b) in int32, which wraps; a and b are Int or SymInt."""
    def tanh(self, x: Argument, /) -> Var:
        """`aten.tanh.default`: exp, sqrt, rsqrt = 1 / sqrt(x), sin, cos, tanh."""
    def to_copy(self, x: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., non_blocking: Argument = ..., memory_format: Argument = ..., /) -> Var:
        """`aten._to_copy.default`: y = x in another dtype; the same dtype is a flat copy."""
    def to_dim_order_copy(self, x: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., non_blocking: Argument = ..., dim_order: Argument = ..., /) -> Var:
        """`dim_order_ops._to_dim_order_copy.default`: y = x in another dtype; the same dtype is a flat copy."""
    def unsqueeze_copy(self, x: Argument, dim: Argument, /) -> Var:
        """`aten.unsqueeze_copy.default`: y = x with a dim of size 1 inserted before `dim`."""
    def update_cache(self, value: Argument, cache: Argument, input_pos: Argument, /) -> Var:
        """`update_cache.default`: cache[0, input_pos + s] = value[0, s], in place."""
    def upsample_bilinear2d(self, x: Argument, output_size: Argument = ..., align_corners: Argument = ..., scale_factors: Argument = ..., /) -> Var:
        """`aten.upsample_bilinear2d.vec`: Nearest: out[h, w] = x[floor(h * H / OH), floor(w * W / OW)]; bilinear: of four neighbours."""
    def upsample_nearest2d(self, x: Argument, output_size: Argument = ..., scale_factors: Argument = ..., /) -> Var:
        """`aten.upsample_nearest2d.vec`: Nearest: out[h, w] = x[floor(h * H / OH), floor(w * W / OW)]; bilinear: of four neighbours."""
    def view_copy(self, x: Argument, sizes: Argument, /) -> Var:
        """`aten.view_copy.default`: y = x under other dims of the same product; one size may be -1."""
    def where(self, condition: Argument, a: Argument, b: Argument, /) -> Var:
        """`aten.where.self`: y = a where condition is not 0, else b."""
    def zeros(self, size: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., /) -> Var:
        """`aten.zeros.default`: y = value (full, scalar_tensor), 0 (zeros) or 1 (ones) everywhere."""
    def zeros_like(self, x: Argument, dtype: Argument = ..., layout: Argument = ..., device: Argument = ..., pin_memory: Argument = ..., memory_format: Argument = ..., /) -> Var:
        """`aten.zeros_like.default`: y = value (full_like), 0 or 1 everywhere, in x's shape and, unless another is said, dtype."""
