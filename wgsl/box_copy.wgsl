//! lib: grid, live, axes, box_copy
// A box of 4-byte elements, or of words of four bytes, from any strides to any strides.
alias Unit = u32;
