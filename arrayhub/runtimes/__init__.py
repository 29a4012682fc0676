"""Layer 2: what the SYCL and CUDA runtimes say about a pointer, and how to wait for its queue or stream."""
