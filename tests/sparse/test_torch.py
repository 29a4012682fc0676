"""torch: what the import of sparse tensors does with states, layouts and missing private names."""

import textwrap

import pytest
import torch
from children import python

import arrayhub as ah


def test_layouts_without_a_format_name_a_call():
    tensor = torch.eye(4).to_sparse_bsc((2, 2))
    with pytest.raises(BufferError, match=r"sparse_bsc; accepted:.*x\.to_sparse_csr\(\)"):
        ah.assparse(tensor)


def test_tensors_without_the_private_names_name_coalesce():
    """Remove `_indices` in another process, because the type is torch's own."""
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
    assert said == ["torch: the tensor is not coalesced; call x.coalesce() first, which copies", "1"]


def test_unsorted_indices_would_give_wrong_results():
    """torch multiplies the elements of two csr tensors as if their columns were sorted."""
    pointers, values = torch.tensor([0, 3]), torch.tensor([1.0, 2.0, 3.0])
    unsorted = torch.sparse_csr_tensor(pointers, torch.tensor([2, 0, 1]), values, (1, 3))
    ordered = torch.sparse_csr_tensor(pointers, torch.tensor([0, 1, 2]), values, (1, 3))
    right = unsorted.to_dense() * ordered.to_dense()
    assert (unsorted * ordered).to_dense().tolist() != right.tolist()
    with pytest.raises(BufferError, match="not sorted or repeat.*copy='if_needed'"):
        ah.as_torch(ah.assparse(unsorted))
    fixed = ah.as_torch(ah.assparse(unsorted), copy="if_needed")
    assert (fixed * ordered).to_dense().tolist() == right.tolist()
