//! lib: grid, axes, fault, wrapped, take
// 4-byte elements by index, or words of four bytes.
alias Unit = u32;
