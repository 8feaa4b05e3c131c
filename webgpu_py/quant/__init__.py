"""Weights in few bits: quantize, pack, unpack, and the stored forms of GGUF.

`q4gsw` is ExecuTorch's 4-bit group-wise symmetric form, `nibbles` its two byte orders, `snr` the
loss. `ggml` names the tensor types of GGUF, `blocks` takes them apart, `layouts` defines what our
own GPU kernels read, `repack` brings one to the other. NumPy only; no files, no GPU.
"""
