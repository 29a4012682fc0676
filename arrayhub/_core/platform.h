/* What differs between operating systems. The functions whose names start with __builtin are those of GCC and clang. */
#ifndef ARRAYHUB_PLATFORM_H
#define ARRAYHUB_PLATFORM_H

#include <Python.h>
#ifdef _WIN32
#include <process.h>    /* getpid */
#else
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
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

/* Start a thread that blocks all signals except those for its own faults. Return 0, or another number if it cannot start.
   Windows handles signals in a thread of its own, and arrayhub_join_thread does nothing there. */
#ifdef _WIN32
typedef unsigned long arrayhub_thread;
static inline int arrayhub_start_thread(arrayhub_thread *thread, void *(*function)(void *), void *argument) {
    *thread = PyThread_start_new_thread((void (*)(void *))function, argument);    /* ignores the result */
    return *thread == PYTHREAD_INVALID_THREAD_ID;
}
static inline void arrayhub_join_thread(arrayhub_thread thread) { (void)thread; }
#else
typedef pthread_t arrayhub_thread;
static inline int arrayhub_start_thread(arrayhub_thread *thread, void *(*function)(void *), void *argument) {
    sigset_t every, before;
    sigfillset(&every);
    sigdelset(&every, SIGSEGV);
    sigdelset(&every, SIGBUS);
    sigdelset(&every, SIGFPE);
    sigdelset(&every, SIGILL);
    pthread_sigmask(SIG_SETMASK, &every, &before);
    int error = pthread_create(thread, NULL, function, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
static inline void arrayhub_join_thread(arrayhub_thread thread) { pthread_join(thread, NULL); }
#endif

#endif
