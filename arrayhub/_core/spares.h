/* Structs that are not in use and wait for the next one who needs one: taking one from here is several times faster than an
   allocation. With the GIL, that is: without it threads would need a lock for what allocators do a thread by themselves, so
   that nothing is kept.

   ARRAYHUB_SPARES(name, type, most) makes two functions: name_take() gives a spare one or NULL, name_keep(spare) says
   whether it was kept. The caller has the GIL. */
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
#endif
