"""Test torch tensors in bsc format, and without private names of torch."""

import textwrap

import pytest
import torch
from children import python

import arrayhub as ah


def test_bsc_tensors_are_imported_without_a_copy():
    dense = torch.arange(1.0, 25.0).reshape(4, 6)
    tensor = dense.to_sparse_bsc((2, 3))
    x = ah.assparse(tensor)
    assert (x.format, x.blocksize, x.shape) == ("bsc", (2, 3), (4, 6))
    assert x.data.ptr == tensor.values().data_ptr() and x.indices.ptr == tensor.row_indices().data_ptr()
    assert x.to_dense().tolist() == dense.tolist()


@pytest.mark.slow
def test_error_suggests_coalesce_without_the_private_names():
    """Runs in a subprocess, which removes `_indices` from torch's tensor type."""
    program = """
        import arrayhub, torch
        tensor = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2))
        import ctypes, gc
        del gc.get_referents(torch._C.TensorBase.__dict__)[0]["_indices"]
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(torch._C.TensorBase))
        try:
            arrayhub.assparse(tensor)
        except BufferError as error:
            print(error)
        print(arrayhub.assparse(tensor.coalesce()).nnz)
    """
    said = python(textwrap.dedent(program)).splitlines()
    assert said == ["torch: the tensor is not coalesced. Call arrayhub.assparse(x.coalesce())", "1"]
