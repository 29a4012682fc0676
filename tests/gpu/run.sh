#!/bin/sh
# Build in place without meson, print the installed versions, and run the GPU tests.
#   sh tests/gpu/run.sh [pytest arguments]
cd "$(dirname "$0")/../.." || exit 1
export PYTHONUNBUFFERED=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONFAULTHANDLER=1
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
python3 -c "
import importlib.metadata as m, sys
print('python', sys.version.split()[0])
for n in ('numpy', 'cython', 'cupy-cuda13x', 'torch', 'jax', 'numba', 'numba-cuda', 'cuda-core', 'ml-dtypes', 'pytest'):
    try: print(n, m.version(n))
    except m.PackageNotFoundError: print(n, '-')
"
python3 tools/build_inplace.py || exit 1
# With and without the fast paths. Each file has its own process, because an error in CUDA destroys the process's context.
status=0
for off in 0 1; do
    echo "ARRAYHUB_DISABLE_FAST_PATHS=$off"
    for file in tests/gpu/test_*.py; do
        ARRAYHUB_DISABLE_FAST_PATHS=$off timeout 400 python3 -m pytest -q -rfEs --tb=short -p no:cacheprovider "$file" "$@" ||
            status=1
    done
done
exit $status
