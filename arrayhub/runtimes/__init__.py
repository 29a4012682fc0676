"""Layer 2: the SYCL and CUDA runtimes, which identify pointers and wait for queues and streams."""
