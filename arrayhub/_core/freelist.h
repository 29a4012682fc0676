/* Structs that are not in use and wait for the next one who needs one: taking one from here is several times faster than an
   allocation. With the GIL, that is: without it threads would need a lock for what allocators do a thread by themselves, so
   that nothing is kept.

   ARRAYHUB_SPARES(name, type, most) makes two functions: name_take() gives a spare one or NULL, name_keep(spare) says
   whether it was kept. ARRAYHUB_ALLOCATED_SPARES makes two more, for those who have them from PyMem_RawMalloc:
   name_new(size) gives a spare one, a new one or NULL, name_free(one) keeps or frees it. The caller has the GIL. */
#ifndef ARRAYHUB_SPARES
#ifdef Py_GIL_DISABLED
#define ARRAYHUB_SPARES(name, type, most)                                                                              \
    static inline type *name##_take(void) { return NULL; }                                                             \
    static inline int name##_keep(type *spare) { (void)spare; return 0; }
#else
#define ARRAYHUB_SPARES(name, type, most)                                                                              \
    static type *name##_kept[most];                                                                                    \
    static int name##_count = 0;                                                                                       \
    static inline type *name##_take(void) { return name##_count > 0 ? name##_kept[--name##_count] : NULL; }            \
    static inline int name##_keep(type *spare) {                                                                       \
        if (name##_count == most) return 0;                                                                            \
        name##_kept[name##_count++] = spare;                                                                           \
        return 1;                                                                                                      \
    }
#endif
#define ARRAYHUB_ALLOCATED_SPARES(name, type, most)                                                                    \
    ARRAYHUB_SPARES(name, type, most)                                                                                  \
    static inline type *name##_new(size_t size) {                                                                      \
        type *spare = name##_take();                                                                                   \
        return spare != NULL ? spare : (type *)PyMem_RawMalloc(size);                                                  \
    }                                                                                                                  \
    static inline void name##_free(type *one) {                                                                        \
        if (!name##_keep(one)) PyMem_RawFree(one);                                                                     \
    }
#endif
