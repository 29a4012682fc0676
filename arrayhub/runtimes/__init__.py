"""Layer 2: the SYCL and CUDA runtimes, used to identify pointers and to synchronize queues and streams."""
