/* Free lists of structs. Reusing a struct is several times faster than an allocation. Free-threaded builds do not use the
   lists, because a list would need a lock, and their allocators already have per-thread free lists.

   ARRAYHUB_SPARES(name, type, most) defines two functions: name_take() returns a struct from the list or NULL,
   name_keep(spare) returns whether the list stored the struct. ARRAYHUB_ALLOCATED_SPARES defines two more for structs from
   PyMem_RawMalloc: name_new(size) returns a struct from the list, a new one or NULL, name_free(one) keeps or frees it.
   The caller holds the GIL. */
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
