/* Loops over words of 1 to 16 bytes between two layouts of host memory: rows, tiles, runs. */
#ifndef ARRAYHUB_LOOPS_H
#define ARRAYHUB_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAYHUB_LINE 64
#define ARRAYHUB_SHORT 16   /* words: a shorter inner loop costs more than what it copies */
#define ARRAYHUB_BLOCK 64   /* words of a longer one in its place, so that their lines stay in the first-level cache */

/* One loop of one pair of steps. Words move by memcpy of a constant size, which is one instruction and needs no
   alignment; steps are in bytes. A constant target step lets the compiler do better. */
#define ARRAYHUB_LOOP(SIZE, LENGTH, TARGET_STEP, SOURCE_STEP)                                                          \
    do {                                                                                                               \
        _Pragma("GCC unroll 4")                                                                                        \
        for (ptrdiff_t n = 0; n < (LENGTH); n++) {                                                                     \
            memcpy(t, s, SIZE);                                                                                        \
            t += (TARGET_STEP);                                                                                        \
            s += (SOURCE_STEP);                                                                                        \
        }                                                                                                              \
    } while (0)

/* The same word again and again, a line at a time. */
#define ARRAYHUB_FILL(SIZE)                                                                                            \
    static void arrayhub_fill_##SIZE(char *t, const char *s, ptrdiff_t length) {                                       \
        char line[ARRAYHUB_LINE];                                                                                      \
        for (ptrdiff_t n = 0; n < ARRAYHUB_LINE; n += SIZE)                                                            \
            memcpy(line + n, s, SIZE);                                                                                 \
        for (; length >= ARRAYHUB_LINE / SIZE; length -= ARRAYHUB_LINE / SIZE, t += ARRAYHUB_LINE)                     \
            memcpy(t, line, ARRAYHUB_LINE);                                                                            \
        memcpy(t, line, (size_t) length * SIZE);                                                                       \
    }

/* `outer` rows of `inner` words. Where the rows are short, the outer dimension is gone through block by block. */
#define ARRAYHUB_ROWS(SIZE)                                                                                            \
    static void arrayhub_rows_##SIZE(char *target, const char *source, ptrdiff_t outer, ptrdiff_t inner,               \
                                     ptrdiff_t target_outer, ptrdiff_t target_inner, ptrdiff_t source_outer,           \
                                     ptrdiff_t source_inner) {                                                         \
        if (inner < ARRAYHUB_SHORT && outer >= ARRAYHUB_SHORT) {                                                       \
            for (ptrdiff_t i = 0; i < outer; i += ARRAYHUB_BLOCK)                                                      \
                for (ptrdiff_t j = 0; j < inner; j++) {                                                                \
                    char *t = target + i * target_outer + j * target_inner;                                            \
                    const char *s = source + i * source_outer + j * source_inner;                                      \
                    const ptrdiff_t length = outer - i < ARRAYHUB_BLOCK ? outer - i : ARRAYHUB_BLOCK;                  \
                    ARRAYHUB_LOOP(SIZE, length, target_outer, source_outer);                                           \
                }                                                                                                      \
            return;                                                                                                    \
        }                                                                                                              \
        for (ptrdiff_t i = 0; i < outer; i++) {                                                                        \
            char *t = target + i * target_outer;                                                                       \
            const char *s = source + i * source_outer;                                                                 \
            if (target_inner == SIZE && source_inner == 0)                                                             \
                arrayhub_fill_##SIZE(t, s, inner);                                                                     \
            else if (target_inner == SIZE)                                                                             \
                ARRAYHUB_LOOP(SIZE, inner, SIZE, source_inner);                                                        \
            else                                                                                                       \
                ARRAYHUB_LOOP(SIZE, inner, target_inner, source_inner);                                                \
        }                                                                                                              \
    }

/* One tile: the words that one line holds of as many lines. They are read line by line into compact ones, and written
   line by line. Both loops have a constant length, for the compiler to unroll. */
#define ARRAYHUB_TILE(SIZE)                                                                                            \
    static inline void arrayhub_tile_##SIZE(char *target, const char *source, ptrdiff_t target_along,                  \
                                            ptrdiff_t target_across, ptrdiff_t source_along,                           \
                                            ptrdiff_t source_across) {                                                 \
        enum { SIDE = ARRAYHUB_LINE / SIZE };                                                                          \
        char buffer[SIDE][SIDE][SIZE];                                                                                 \
        for (ptrdiff_t j = 0; j < SIDE; j++, source += source_across) {                                                \
            const char *s = source;                                                                                    \
            char *t = buffer[j][0];                                                                                    \
            if (source_along == SIZE)                                                                                  \
                memcpy(t, s, ARRAYHUB_LINE);                                                                           \
            else                                                                                                       \
                ARRAYHUB_LOOP(SIZE, SIDE, SIZE, source_along);                                                         \
        }                                                                                                              \
        for (ptrdiff_t i = 0; i < SIDE; i++, target += target_along) {                                                 \
            const char *s = buffer[0][i];                                                                              \
            char *t = target;                                                                                          \
            if (target_across == SIZE)                                                                                 \
                ARRAYHUB_LOOP(SIZE, SIDE, SIZE, ARRAYHUB_LINE);                                                        \
            else                                                                                                       \
                ARRAYHUB_LOOP(SIZE, SIDE, target_across, ARRAYHUB_LINE);                                               \
        }                                                                                                              \
    }

/* Tiles side by side: `along` is the dimension of the source's lines, `across` that of the target's, neither shorter than
   a tile. The second tile on each side begins on the boundary of a line, and the last one ends with the dimension: what
   two tiles share is copied twice, which is quicker than tiles of any length. */
#define ARRAYHUB_TILES(SIZE)                                                                                           \
    static void arrayhub_tiles_##SIZE(char *target, const char *source, ptrdiff_t along, ptrdiff_t across,             \
                                      ptrdiff_t target_along, ptrdiff_t target_across, ptrdiff_t source_along,         \
                                      ptrdiff_t source_across) {                                                       \
        enum { SIDE = ARRAYHUB_LINE / SIZE };                                                                          \
        const ptrdiff_t up = source_along == SIZE ? arrayhub_lead(source, SIZE) : SIDE;                                \
        const ptrdiff_t left = target_across == SIZE ? arrayhub_lead(target, SIZE) : SIDE;                             \
        for (ptrdiff_t next = 0; next < along; next += next ? SIDE : up) {                                             \
            const ptrdiff_t p = next < along - SIDE ? next : along - SIDE;                                             \
            for (ptrdiff_t then = 0; then < across; then += then ? SIDE : left) {                                      \
                const ptrdiff_t q = then < across - SIDE ? then : across - SIDE;                                       \
                arrayhub_tile_##SIZE(target + p * target_along + q * target_across,                                    \
                                     source + p * source_along + q * source_across, target_along, target_across,       \
                                     source_along, source_across);                                                     \
            }                                                                                                          \
        }                                                                                                              \
    }

/* How many words lie before the next boundary of a line; a whole line's where none does, or the words lie across it. */
static ptrdiff_t arrayhub_lead(const char *address, ptrdiff_t size) {
    const ptrdiff_t before = (ptrdiff_t) (-(uintptr_t) address % ARRAYHUB_LINE);
    return before == 0 || before % size != 0 ? ARRAYHUB_LINE / size : before / size;
}

#define ARRAYHUB_EACH(MAKE) MAKE(1) MAKE(2) MAKE(4) MAKE(8) MAKE(16)
ARRAYHUB_EACH(ARRAYHUB_FILL)
ARRAYHUB_EACH(ARRAYHUB_ROWS)
ARRAYHUB_EACH(ARRAYHUB_TILE)
ARRAYHUB_EACH(ARRAYHUB_TILES)

typedef void (*arrayhub_kernel)(char *, const char *, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t);

static arrayhub_kernel arrayhub_kernel_of(ptrdiff_t size, int tiled) {
    switch (size) {
    case 1: return tiled ? arrayhub_tiles_1 : arrayhub_rows_1;
    case 2: return tiled ? arrayhub_tiles_2 : arrayhub_rows_2;
    case 4: return tiled ? arrayhub_tiles_4 : arrayhub_rows_4;
    case 8: return tiled ? arrayhub_tiles_8 : arrayhub_rows_8;
    default: return tiled ? arrayhub_tiles_16 : arrayhub_rows_16;
    }
}

/* Runs of `nbytes`, as long as two words or shorter: the first word and the last, which may overlap. */
#define ARRAYHUB_PAIRS(SIZE)                                                                                           \
    static void arrayhub_pairs_##SIZE(char *t, const char *s, ptrdiff_t outer, ptrdiff_t nbytes,                       \
                                      ptrdiff_t target_outer, ptrdiff_t source_outer) {                                \
        const ptrdiff_t last = nbytes - SIZE;                                                                          \
        for (ptrdiff_t i = 0; i < outer; i++, t += target_outer, s += source_outer) {                                  \
            memcpy(t, s, SIZE);                                                                                        \
            memcpy(t + last, s + last, SIZE);                                                                          \
        }                                                                                                              \
    }
ARRAYHUB_EACH(ARRAYHUB_PAIRS)

/* Runs of bytes that lie one after the other on both sides; two or more. */
static void arrayhub_runs(char *target, const char *source, ptrdiff_t outer, ptrdiff_t nbytes, ptrdiff_t target_outer,
                          ptrdiff_t source_outer) {
#define ARRAYHUB_UP_TO(SIZE)                                                                                           \
    if (nbytes <= 2 * SIZE) {                                                                                          \
        arrayhub_pairs_##SIZE(target, source, outer, nbytes, target_outer, source_outer);                              \
        return;                                                                                                        \
    }
    ARRAYHUB_EACH(ARRAYHUB_UP_TO)
    for (ptrdiff_t i = 0; i < outer; i++)
        memcpy(target + i * target_outer, source + i * source_outer, (size_t) nbytes);
}

#endif
