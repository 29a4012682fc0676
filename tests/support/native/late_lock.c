/* Library for LD_PRELOAD: delay a thread before it acquires a read lock, as a scheduler might. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static _Thread_local int armed;
static atomic_int delayed;

/* Delay the calling thread when it next acquires a read lock. */
void arm(void) { armed = 1; }

/* Return whether the delay has begun. */
int is_delayed(void) { return delayed; }

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    static int (*lock_now)(pthread_rwlock_t *);
    if (lock_now == NULL)
        *(void **) &lock_now = dlsym(RTLD_NEXT, "pthread_rwlock_rdlock");
    if (armed) {
        armed = 0;
        delayed = 1;
        usleep(200 * 1000);
    }
    return lock_now(lock);
}
