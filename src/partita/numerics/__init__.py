"""Kernels that families share: how they are compiled, elementary functions, vectors, linear algebra, products with
dense and sparse matrices, quadratic programs. Numba functions of plain arrays."""
