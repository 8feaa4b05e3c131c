"""Writes package.safetensors with the `safetensors` package: pip install safetensors==0.8.0."""

from pathlib import Path

import numpy as np
from safetensors import TensorSpec, serialize_file

BF16 = np.array([0x3F80, 0xC020, 0x3E20, 0x4040, 0x4049, 0x0000], "<u2")

TENSORS = {
    "embed": ("float32", np.arange(12, dtype="<f4").reshape(3, 4) / np.float32(7)),
    "half": ("float16", np.arange(5, dtype="<f2") - 1.5),
    "brain": ("bfloat16", BF16.reshape(2, 3)),
    "ids": ("int64", np.array([2**40 + 1, -3], "<i8")),
}


def main():
    serialize_file(
        {
            name: TensorSpec(
                dtype=dtype,
                shape=value.shape,
                data_ptr=value.ctypes.data,
                data_len=value.nbytes,
            )
            for name, (dtype, value) in TENSORS.items()
        },
        Path(__file__).with_name("package.safetensors"),
        metadata={"format": "pt", "note": "größer"},
    )


if __name__ == "__main__":
    main()
