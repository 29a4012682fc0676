from arrayhub.convert import asarray, as_numpy
from arrayhub.usm_array import USMArray
