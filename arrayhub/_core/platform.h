/* What differs between operating systems and between compilers. GCC, clang and clang-cl compile the package. */
#ifndef ARRAYHUB_PLATFORM_H
#define ARRAYHUB_PLATFORM_H

#include <Python.h>
#include <stdint.h>
#ifdef _WIN32
#include <process.h>    /* getpid */
#else
#include <signal.h>
#include <unistd.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#endif

/* Signed arithmetic that reports overflow. In C, signed overflow is undefined behavior. */
static inline int checked_mul(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) { return __builtin_mul_overflow(a, b, out); }
static inline int checked_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) { return __builtin_add_overflow(a, b, out); }

/* The first access to each page dominates the time of a copy into new memory. Huge pages reduce the number of pages, and
   NumPy requests them, too. The request is only a hint, so its result is ignored. */
static inline void arrayhub_prefer_huge_pages(void *memory, size_t nbytes, uintptr_t page) {
#ifdef __linux__
    uintptr_t start = ((uintptr_t)memory + page - 1) & ~(page - 1);
    (void)madvise((void *)start, nbytes - (start - (uintptr_t)memory), MADV_HUGEPAGE);
#else
    (void)memory; (void)nbytes; (void)page;
#endif
}

/* Block the signals that this thread and new threads of this thread would handle, except those for faults of their own.
   Windows handles signals in a thread of its own. */
#ifdef _WIN32
typedef int arrayhub_signals;
static inline void arrayhub_block_signals(arrayhub_signals *before) { *before = 0; }
static inline void arrayhub_restore_signals(const arrayhub_signals *before) { (void)before; }
#else
typedef sigset_t arrayhub_signals;
static inline void arrayhub_block_signals(arrayhub_signals *before) {
    sigset_t every;
    sigfillset(&every);
    sigdelset(&every, SIGSEGV);
    sigdelset(&every, SIGBUS);
    sigdelset(&every, SIGFPE);
    sigdelset(&every, SIGILL);
    pthread_sigmask(SIG_SETMASK, &every, before);
}
static inline void arrayhub_restore_signals(const arrayhub_signals *before) { pthread_sigmask(SIG_SETMASK, before, NULL); }
#endif

#endif
