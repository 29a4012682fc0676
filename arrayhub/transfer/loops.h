/* Loops that copy between two layouts of host memory. A row is a sequence of words at a constant step. A tile is a block
   of two dimensions, with at most a cache line of words on each side. A run is a sequence of contiguous bytes. */
#ifndef ARRAYHUB_LOOPS_H
#define ARRAYHUB_LOOPS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAYHUB_LINE 64
#define ARRAYHUB_FEW_LINES 8        /* lines that one set of any cache holds */
#define ARRAYHUB_MANY_LINES 128     /* source lines that the L1 cache holds beside as many target lines */
#define ARRAYHUB_MOST_LINES 384     /* source lines that an L1 cache of 32 KiB holds beside a few target lines */
#define ARRAYHUB_STEP 256           /* bytes; lines with this stride map to a quarter of the sets of the L1 cache */
#define ARRAYHUB_LARGE_STEP 1024    /* bytes; lines with this stride map to a few sets of the L1 cache */
#define ARRAYHUB_ONE_PLACE 2048     /* bytes; all lines with this stride map to one or two sets of the L1 cache */
#define ARRAYHUB_SECOND_CACHE (1 << 20)     /* bytes; a lower bound of the size of the L2 cache */
#define ARRAYHUB_PAGE 4096          /* bytes */
#define ARRAYHUB_AT_ONCE 4  /* words that the inner loop copies per iteration */
#define ARRAYHUB_SHORT 16   /* bytes; below this, the loop overhead costs more than the copy */
#define ARRAYHUB_MANY_TILES 8   /* adjacent tiles; beyond this number an additional tile is cheap */
#define ARRAYHUB_BLOCK 64   /* rows of a block, which is copied column by column while its lines stay in the L1 cache */

static inline ptrdiff_t arrayhub_least(ptrdiff_t a, ptrdiff_t b) { return a < b ? a : b; }

/* Copy LENGTH elements of SIZE bytes from s to t. Both steps are in bytes. memcpy of a constant size compiles to a
   single instruction, and does not require alignment. */
#define ARRAYHUB_STEPS(SIZE, LENGTH, TARGET_STEP, SOURCE_STEP)                                                         \
    do {                                                                                                               \
        _Pragma("GCC unroll 4")                                                                                        \
        for (ptrdiff_t n = 0; n < (LENGTH); n++) {                                                                     \
            memcpy(t, s, SIZE);                                                                                        \
            t += (TARGET_STEP);                                                                                        \
            s += (SOURCE_STEP);                                                                                        \
        }                                                                                                              \
    } while (0)

/* Unrolled version of ARRAYHUB_STEPS, in which the addresses do not depend on each other. With a constant source step,
   the compiler would pack these words into vectors and unpack them again, so that ARRAYHUB_STEPS is faster in that
   case. */
#define ARRAYHUB_LOOP(SIZE, LENGTH, TARGET_STEP, SOURCE_STEP)                                                          \
    do {                                                                                                               \
        const ptrdiff_t there = (TARGET_STEP), here = (SOURCE_STEP);                                                   \
        ptrdiff_t left = (LENGTH);                                                                                     \
        for (; left >= ARRAYHUB_AT_ONCE; left -= ARRAYHUB_AT_ONCE) {                                                   \
            memcpy(t, s, SIZE);                                                                                        \
            memcpy(t + there, s + here, SIZE);                                                                         \
            memcpy(t + 2 * there, s + 2 * here, SIZE);                                                                 \
            memcpy(t + 3 * there, s + 3 * here, SIZE);                                                                 \
            t += ARRAYHUB_AT_ONCE * there;                                                                             \
            s += ARRAYHUB_AT_ONCE * here;                                                                              \
        }                                                                                                              \
        for (; left > 0; left--, t += there, s += here)                                                                \
            memcpy(t, s, SIZE);                                                                                        \
    } while (0)

/* ------------------------------------------------------------------------------------------------------ vectors of 16 bytes */

typedef uint8_t arrayhub_words_1 __attribute__((vector_size(16)));
typedef uint16_t arrayhub_words_2 __attribute__((vector_size(16)));
typedef uint32_t arrayhub_words_4 __attribute__((vector_size(16)));
typedef uint64_t arrayhub_words_8 __attribute__((vector_size(16)));

/* Shuffles of two vectors. EVEN: words at even positions. FIRST, SECOND: interleaved words of the first or second
   halves. Each compiles to one or a few instructions. */
#define ARRAYHUB_EVEN_1 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ARRAYHUB_EVEN_2 0, 2, 4, 6, 8, 10, 12, 14
#define ARRAYHUB_EVEN_4 0, 2, 4, 6
#define ARRAYHUB_FIRST_1 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ARRAYHUB_SECOND_1 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define ARRAYHUB_FIRST_2 0, 8, 1, 9, 2, 10, 3, 11
#define ARRAYHUB_SECOND_2 4, 12, 5, 13, 6, 14, 7, 15
#define ARRAYHUB_FIRST_4 0, 4, 1, 5
#define ARRAYHUB_SECOND_4 2, 6, 3, 7
#define ARRAYHUB_FIRST_8 0, 2
#define ARRAYHUB_SECOND_8 1, 3
#if defined(__clang__) || __GNUC__ >= 12
#define ARRAYHUB_WORDS_OF(SIZE, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define ARRAYHUB_WORDS_OF(SIZE, a, b, ...) __builtin_shuffle(a, b, (arrayhub_words_##SIZE){__VA_ARGS__})
#endif

/* Copy every second word, one vector at a time. The last vector ends with the last word, and may overlap the vector
   before it. The second of two loads starts one word early, so that no byte after the last word is read. The words to
   copy are then at odd positions, and a shift moves them to even positions. */
#define ARRAYHUB_SECONDS(SIZE, DOUBLE, SHIFT)                                                                          \
    static inline void arrayhub_second_##SIZE(char *t, const char *s) {                                                \
        arrayhub_words_##SIZE low;                                                                                     \
        arrayhub_words_##DOUBLE odd;                                                                                   \
        memcpy(&low, s, 16);                                                                                           \
        memcpy(&odd, s + 16 - SIZE, 16);                                                                               \
        odd = SHIFT;                                                                                                   \
        low = ARRAYHUB_WORDS_OF(SIZE, low, (arrayhub_words_##SIZE) odd, ARRAYHUB_EVEN_##SIZE);                         \
        memcpy(t, &low, 16);                                                                                           \
    }                                                                                                                  \
    static inline void arrayhub_seconds_##SIZE(char *t, const char *s, ptrdiff_t length) {                             \
        if (length < 16 / SIZE) {                                                                                      \
            ARRAYHUB_STEPS(SIZE, length, SIZE, 2 * SIZE);                                                              \
            return;                                                                                                    \
        }                                                                                                              \
        const ptrdiff_t vectors = length / (16 / SIZE);                                                                \
        for (ptrdiff_t n = 0; n < vectors; n++)                                                                        \
            arrayhub_second_##SIZE(t + 16 * n, s + 32 * n);                                                            \
        if (length % (16 / SIZE) != 0)                                                                                 \
            arrayhub_second_##SIZE(t + length * SIZE - 16, s + 2 * length * SIZE - 32);                                \
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
ARRAYHUB_SECONDS(1, 2, odd >> 8)
ARRAYHUB_SECONDS(2, 4, odd >> 16)
ARRAYHUB_SECONDS(4, 8, odd >> 32)
#else
ARRAYHUB_SECONDS(1, 2, odd << 8)
ARRAYHUB_SECONDS(2, 4, odd << 16)
ARRAYHUB_SECONDS(4, 8, odd << 32)
#endif

/* For words of 8 and 16 bytes, vectors are not faster. */
static inline void arrayhub_seconds_8(char *t, const char *s, ptrdiff_t length) { ARRAYHUB_STEPS(8, length, 8, 16); }
static inline void arrayhub_seconds_16(char *t, const char *s, ptrdiff_t length) { ARRAYHUB_STEPS(16, length, 16, 32); }

/* Fill contiguous memory with copies of a single word, one cache line at a time. */
#define ARRAYHUB_FILL(SIZE)                                                                                            \
    static void arrayhub_fill_##SIZE(char *t, const char *s, ptrdiff_t length) {                                       \
        char line[ARRAYHUB_LINE];                                                                                      \
        for (ptrdiff_t n = 0; n < ARRAYHUB_LINE; n += SIZE)                                                            \
            memcpy(line + n, s, SIZE);                                                                                 \
        for (; length >= ARRAYHUB_LINE / SIZE; length -= ARRAYHUB_LINE / SIZE, t += ARRAYHUB_LINE)                     \
            memcpy(t, line, ARRAYHUB_LINE);                                                                            \
        memcpy(t, line, (size_t) length * SIZE);                                                                       \
    }

/* Copy runs of `nbytes`, with one call of memcpy per run. */
#if defined(__clang__)
__attribute__((noinline))
#else
__attribute__((noipa)) /* a clone for a constant `nbytes` would inline memcpy */
#endif
static void arrayhub_calls(char *t, const char *s, ptrdiff_t length, ptrdiff_t nbytes, ptrdiff_t target_step,
                           ptrdiff_t source_step) {
    for (ptrdiff_t n = 0; n < length; n++, t += target_step, s += source_step)
        memcpy(t, s, (size_t) nbytes);
}

/* Copy many rows of a few words: block by block, and each block column by column. */
#define ARRAYHUB_LONG(SIZE)                                                                                            \
    static void arrayhub_long_##SIZE(char *target, const char *source, ptrdiff_t outer, ptrdiff_t inner,               \
                                     ptrdiff_t target_outer, ptrdiff_t target_inner, ptrdiff_t source_outer,           \
                                     ptrdiff_t source_inner) {                                                         \
        for (ptrdiff_t i = 0; i < outer; i += ARRAYHUB_BLOCK)                                                          \
            for (ptrdiff_t j = 0; j < inner; j++) {                                                                    \
                char *t = target + i * target_outer + j * target_inner;                                                \
                const char *s = source + i * source_outer + j * source_inner;                                          \
                const ptrdiff_t length = arrayhub_least(outer - i, ARRAYHUB_BLOCK);                                    \
                ARRAYHUB_LOOP(SIZE, length, target_outer, source_outer);                                               \
            }                                                                                                          \
    }

#define ARRAYHUB_EACH_ROW(COPY)                                                                                        \
    for (ptrdiff_t i = 0; i < outer; i++) {                                                                            \
        char *t = target + i * target_outer;                                                                           \
        const char *s = source + i * source_outer;                                                                     \
        COPY;                                                                                                          \
    }

/* Copy `outer` rows of `inner` words. */
#define ARRAYHUB_ROWS(SIZE)                                                                                            \
    static void arrayhub_rows_##SIZE(char *target, const char *source, ptrdiff_t outer, ptrdiff_t inner,               \
                                     ptrdiff_t target_outer, ptrdiff_t target_inner, ptrdiff_t source_outer,           \
                                     ptrdiff_t source_inner) {                                                         \
        if (inner * SIZE < ARRAYHUB_SHORT && outer >= ARRAYHUB_BLOCK) {                                                \
            arrayhub_long_##SIZE(target, source, outer, inner, target_outer, target_inner, source_outer, source_inner);\
            return;                                                                                                    \
        }                                                                                                              \
        if (target_inner == SIZE && source_inner == 0)                                                                 \
            ARRAYHUB_EACH_ROW(arrayhub_fill_##SIZE(t, s, inner))                                                       \
        else if (target_inner == SIZE && source_inner == 2 * SIZE && inner * SIZE >= ARRAYHUB_SHORT)                   \
            ARRAYHUB_EACH_ROW(arrayhub_seconds_##SIZE(t, s, inner))                                                    \
        else if (target_inner == SIZE)                                                                                 \
            ARRAYHUB_EACH_ROW(ARRAYHUB_LOOP(SIZE, inner, SIZE, source_inner))                                          \
        else                                                                                                           \
            ARRAYHUB_EACH_ROW(ARRAYHUB_LOOP(SIZE, inner, target_inner, source_inner))                                  \
    }

/* --------------------------------------------------------------------------------------------- tiles of words of 1 to 16 bytes

   A tile is a square whose side is the number of words in a cache line. Each line is read once and completely,
   transposed in registers, and written once and completely. */

/* Transpose a square of as many vectors as a vector has words. The steps are in bytes. Interleaving row i with row i +
   ROWS / 2, log2(ROWS) times, exchanges rows and columns. */
#define ARRAYHUB_TURN(SIZE)                                                                                            \
    static inline void arrayhub_turn_##SIZE(char *target, ptrdiff_t target_step, const char *source,                   \
                                            ptrdiff_t source_step) {                                                   \
        enum { ROWS = 16 / SIZE };                                                                                     \
        arrayhub_words_##SIZE rows[ROWS], next[ROWS];                                                                  \
        _Pragma("GCC unroll 16")                                                                                       \
        for (int i = 0; i < ROWS; i++)                                                                                 \
            memcpy(&rows[i], source + i * source_step, 16);                                                            \
        _Pragma("GCC unroll 4")                                                                                        \
        for (int halved = ROWS; halved > 1; halved /= 2) {                                                             \
            _Pragma("GCC unroll 8")                                                                                    \
            for (int i = 0; i < ROWS / 2; i++) {                                                                       \
                next[2 * i] = ARRAYHUB_WORDS_OF(SIZE, rows[i], rows[i + ROWS / 2], ARRAYHUB_FIRST_##SIZE);             \
                next[2 * i + 1] = ARRAYHUB_WORDS_OF(SIZE, rows[i], rows[i + ROWS / 2], ARRAYHUB_SECOND_##SIZE);        \
            }                                                                                                          \
            memcpy(rows, next, sizeof rows);                                                                           \
        }                                                                                                              \
        _Pragma("GCC unroll 16")                                                                                       \
        for (int i = 0; i < ROWS; i++)                                                                                 \
            memcpy(target + i * target_step, &rows[i], 16);                                                            \
    }

/* For words of 16 bytes, a square is a single word. */
static inline void arrayhub_turn_16(char *target, ptrdiff_t target_step, const char *source, ptrdiff_t source_step) {
    (void) target_step, (void) source_step;
    memcpy(target, source, 16);
}

/* Copy up to a cache line. */
static inline void arrayhub_part(char *t, const char *s, ptrdiff_t nbytes) {
    switch (nbytes) {
    case 8: memcpy(t, s, 8); break;
    case 16: memcpy(t, s, 16); break;
    case 32: memcpy(t, s, 32); break;
    case 48: memcpy(t, s, 48); break;
    case ARRAYHUB_LINE: memcpy(t, s, ARRAYHUB_LINE); break;
    default: memcpy(t, s, (size_t) nbytes);
    }
}

/* Transpose all squares of a tile, in the order of the target's lines. */
#define ARRAYHUB_SQUARES(SIZE, TALL, WIDE, TARGET, TARGET_STEP, SOURCE, SOURCE_STEP)                                   \
    for (ptrdiff_t i = 0; i < (TALL); i += 16 / SIZE)                                                                  \
        for (ptrdiff_t j = 0; j < (WIDE); j += 16 / SIZE)                                                              \
            arrayhub_turn_##SIZE((TARGET) + i * (TARGET_STEP) + j * SIZE, TARGET_STEP,                                 \
                                 (SOURCE) + j * (SOURCE_STEP) + i * SIZE, SOURCE_STEP)

/* Copy a tile: `tall` words of each of `wide` lines. Both numbers are at most the number of words in a line. The compiler
   specializes the function for full tiles. Source lines are first copied to a buffer, because one cache set may not hold
   all of them. If the target's lines map to one cache set, the tile is also transposed in a buffer before it is written. */
#define ARRAYHUB_TILE(SIZE)                                                                                            \
    static inline void arrayhub_tile_##SIZE(char *target, const char *source, ptrdiff_t tall, ptrdiff_t wide,          \
                                            ptrdiff_t target_along, ptrdiff_t target_across, ptrdiff_t source_along,   \
                                            ptrdiff_t source_across) {                                                 \
        enum { SIDE = ARRAYHUB_LINE / SIZE };                                                                          \
        char lines[SIDE][ARRAYHUB_LINE], turned[SIDE][ARRAYHUB_LINE];                                                  \
        const int full = tall == SIDE && wide == SIDE;                                                                 \
        if (SIZE >= 8 && full && source_along == SIZE && target_across == SIZE) {                                      \
            ARRAYHUB_SQUARES(SIZE, SIDE, SIDE, target, target_along, source, source_across);                           \
            return;                                                                                                    \
        }                                                                                                              \
        for (ptrdiff_t j = 0; j < wide; j++, source += source_across) {                                                \
            const char *s = source;                                                                                    \
            char *t = lines[j];                                                                                        \
            if (source_along == SIZE)                                                                                  \
                arrayhub_part(t, s, tall * SIZE);                                                                      \
            else if (source_along == 2 * SIZE)                                                                         \
                arrayhub_seconds_##SIZE(t, s, tall);                                                                   \
            else                                                                                                       \
                ARRAYHUB_STEPS(SIZE, tall, SIZE, source_along);                                                        \
        }                                                                                                              \
        if (full && target_across == SIZE && target_along % ARRAYHUB_ONE_PLACE != 0) {                                 \
            ARRAYHUB_SQUARES(SIZE, SIDE, SIDE, target, target_along, lines[0], ARRAYHUB_LINE);                         \
            return;                                                                                                    \
        }                                                                                                              \
        ARRAYHUB_SQUARES(SIZE, tall, wide, turned[0], ARRAYHUB_LINE, lines[0], ARRAYHUB_LINE);                         \
        for (ptrdiff_t i = 0; i < tall; i++, target += target_along) {                                                 \
            const char *s = turned[i];                                                                                 \
            char *t = target;                                                                                          \
            if (target_across == SIZE)                                                                                 \
                arrayhub_part(t, s, wide * SIZE);                                                                      \
            else                                                                                                       \
                ARRAYHUB_STEPS(SIZE, wide, target_across, SIZE);                                                       \
        }                                                                                                              \
    }

/* Return the number of words from `address` to the next line boundary, for the first tile. Return the words of a whole
   line if `address` is on a boundary, if a word crosses the boundary, or if the lines, `apart` bytes from each other,
   are not equally aligned. */
static ptrdiff_t arrayhub_lead(const char *address, ptrdiff_t size, ptrdiff_t apart) {
    const ptrdiff_t before = (ptrdiff_t) (-(uintptr_t) address % ARRAYHUB_LINE);
    return before == 0 || before % size != 0 || apart % ARRAYHUB_LINE != 0 ? ARRAYHUB_LINE / size : before / size;
}

/* Return how many lines with this stride stay in the L1 cache. The larger the power of two that divides the stride, the
   fewer sets the lines map to. */
static inline ptrdiff_t arrayhub_lines_kept(ptrdiff_t step) {
    const ptrdiff_t apart = step & -step;
    return apart <= ARRAYHUB_LINE ? ARRAYHUB_MANY_LINES
           : apart >= ARRAYHUB_LARGE_STEP ? ARRAYHUB_FEW_LINES
                                          : ARRAYHUB_MANY_LINES * ARRAYHUB_LINE / apart;
}

/* Copy a tile word by word, in blocks of as many lines as stay in the L1 cache. */
#define ARRAYHUB_BLOCKS(SIZE)                                                                                          \
    static void arrayhub_blocks_##SIZE(char *target, const char *source, ptrdiff_t along, ptrdiff_t across,            \
                                       ptrdiff_t target_along, ptrdiff_t target_across, ptrdiff_t source_along,        \
                                       ptrdiff_t source_across) {                                                      \
        enum { SIDE = ARRAYHUB_LINE / SIZE };                                                                          \
        const ptrdiff_t lines = arrayhub_lines_kept(source_across);                                                    \
        if (across <= ARRAYHUB_AT_ONCE) {                                                                              \
            arrayhub_long_##SIZE(target, source, along, across, target_along, target_across, source_along, source_across);\
            return;                                                                                                    \
        }                                                                                                              \
        for (ptrdiff_t p = 0; p < along; p += SIDE)                                                                    \
            for (ptrdiff_t q = 0; q < across; q += lines)                                                              \
                for (ptrdiff_t i = p; i < p + SIDE && i < along; i++) {                                                \
                    const ptrdiff_t wide = arrayhub_least(across - q, lines);                                          \
                    char *t = target + i * target_along + q * target_across;                                           \
                    const char *s = source + i * source_along + q * source_across;                                     \
                    if (target_across == SIZE)                                                                         \
                        ARRAYHUB_LOOP(SIZE, wide, SIZE, source_across);                                                \
                    else                                                                                               \
                        ARRAYHUB_LOOP(SIZE, wide, target_across, source_across);                                       \
                }                                                                                                      \
    }

/* Return whether copying word by word is faster than transposing vectors. The first case that applies decides. The cases
   were measured:

   1. The words do not fill vectors, or come from so few lines that all lines stay in any cache: word by word.
   2. The strides between the source's lines are multiples of ARRAYHUB_LARGE_STEP, so that the lines do not stay in the
      cache until their next word is read: word by word only for words of 8 bytes or more with gaps on either side.
   3. There are gaps, or the words have 1 or 2 bytes: word by word if the target has gaps, or if the source has gaps,
      except for single bytes at every second address.
   4. One of the two dimensions is shorter than a cache line: word by word.
   5. Words of 16 bytes, which are not transposed: word by word if the lines stay in the cache or are in few pages.
   6. Words of 4 or 8 bytes: word by word if the lines stay in the cache, because a vector holds few words. Words of 8
      bytes are copied word by word even if vectors would cross lines. */
static inline int arrayhub_by_words(ptrdiff_t size, ptrdiff_t along, ptrdiff_t across, ptrdiff_t target_across,
                                    ptrdiff_t source_along, ptrdiff_t source_across) {
    const int gaps = source_along != size, spread = target_across != size;
    const int share = source_across % ARRAYHUB_STEP == 0;
    if ((along * size < ARRAYHUB_LINE && along * size % 16 != 0) || across <= ARRAYHUB_FEW_LINES)
        return 1;
    if (source_across % ARRAYHUB_LARGE_STEP == 0)
        return (gaps || spread) && size >= 8;
    if (gaps || spread || size < 4)
        return spread || (gaps && !(size == 1 && source_along == 2));
    if (along * size < ARRAYHUB_LINE || across * size < ARRAYHUB_LINE)
        return 1;
    if (size == 16)
        return !share || (-2 * ARRAYHUB_PAGE < source_across && source_across < 2 * ARRAYHUB_PAGE);
    return !share && (across < ARRAYHUB_MOST_LINES || (size == 8 && source_across % ARRAYHUB_LINE != 0));
}

/* Return the extent in bytes of the target's lines or of the source's lines, whichever is larger. */
static inline ptrdiff_t arrayhub_spans(ptrdiff_t along, ptrdiff_t target_along, ptrdiff_t across, ptrdiff_t source_across) {
    const ptrdiff_t target = along * target_along;
    const ptrdiff_t source = source_across < 0 ? -source_across * across : source_across * across;
    return target > source ? target : source;
}

/* Round a number of words up to whole vectors. */
#define ARRAYHUB_WHOLE(SIZE, WORDS) (((WORDS) + 16 / SIZE - 1) / (16 / SIZE) * (16 / SIZE))

/* Copy two dimensions by tiles: `along` is the dimension of the source's lines, and `across` is the dimension of the
   target's lines. If there are many tiles, the second tile starts on a line boundary. The last tile has a length of
   whole vectors and ends at the end of the dimension. Its overlap with the previous tile is copied twice, which is
   faster than a tile of arbitrary length. Only dimensions shorter than a vector use tiles of arbitrary length. If
   the extent exceeds the L2 cache, the lines of the next tile are prefetched before a tile is copied. */
#define ARRAYHUB_TILES(SIZE)                                                                                           \
    static void arrayhub_tiles_##SIZE(char *target, const char *source, ptrdiff_t item, ptrdiff_t along,               \
                                      ptrdiff_t across, ptrdiff_t target_along, ptrdiff_t target_across,               \
                                      ptrdiff_t source_along, ptrdiff_t source_across) {                               \
        enum { SIDE = ARRAYHUB_LINE / SIZE, MANY = ARRAYHUB_MANY_TILES * SIDE };                                       \
        const ptrdiff_t up = along > MANY && source_along == SIZE ? arrayhub_lead(source, SIZE, source_across) : SIDE; \
        const ptrdiff_t left =                                                                                         \
            across > MANY && target_across == SIZE ? arrayhub_lead(target, SIZE, target_along) : SIDE;                 \
        const int far = arrayhub_spans(along, target_along, across, source_across) > ARRAYHUB_SECOND_CACHE;            \
        (void) item;                                                                                                   \
        if (arrayhub_by_words(SIZE, along, across, target_across, source_along, source_across)) {                      \
            arrayhub_blocks_##SIZE(target, source, along, across, target_along, target_across, source_along,           \
                                   source_across);                                                                     \
            return;                                                                                                    \
        }                                                                                                              \
        for (ptrdiff_t i = 0, below = arrayhub_least(up, along); i < along;                                            \
             i = below, below = arrayhub_least(i + SIDE, along)) {                                                     \
            const ptrdiff_t tall = arrayhub_least(ARRAYHUB_WHOLE(SIZE, below - i), along), p = i ? below - tall : 0;   \
            for (ptrdiff_t j = 0, behind = arrayhub_least(left, across); j < across;                                   \
                 j = behind, behind = arrayhub_least(j + SIDE, across)) {                                              \
                const ptrdiff_t wide = arrayhub_least(ARRAYHUB_WHOLE(SIZE, behind - j), across);                       \
                const ptrdiff_t q = j ? behind - wide : 0;                                                             \
                char *t = target + p * target_along + q * target_across;                                               \
                const char *s = source + p * source_along + q * source_across;                                         \
                if (far && behind + SIDE <= across) {                                                                  \
                    for (ptrdiff_t k = wide; k < wide + SIDE; k++)                                                     \
                        __builtin_prefetch(s + k * source_across);                                                     \
                    for (ptrdiff_t k = 0; k < tall; k++)                                                               \
                        __builtin_prefetch(t + k * target_along + wide * target_across, 1);                            \
                }                                                                                                      \
                if (tall == SIDE && wide == SIDE)                                                                      \
                    arrayhub_tile_##SIZE(t, s, SIDE, SIDE, target_along, target_across, source_along, source_across);  \
                else                                                                                                   \
                    arrayhub_tile_##SIZE(t, s, tall, wide, target_along, target_across, source_along, source_across);  \
            }                                                                                                          \
        }                                                                                                              \
    }


ARRAYHUB_TURN(1)
ARRAYHUB_TURN(2)
ARRAYHUB_TURN(4)
ARRAYHUB_TURN(8)
#define ARRAYHUB_EACH(MAKE) MAKE(1) MAKE(2) MAKE(4) MAKE(8) MAKE(16)
ARRAYHUB_EACH(ARRAYHUB_FILL)
ARRAYHUB_EACH(ARRAYHUB_LONG)
ARRAYHUB_EACH(ARRAYHUB_ROWS)
ARRAYHUB_EACH(ARRAYHUB_TILE)
ARRAYHUB_EACH(ARRAYHUB_BLOCKS)
ARRAYHUB_EACH(ARRAYHUB_TILES)

/* Copy one to two words as the first word and the last word, which may overlap. `last` is the byte offset of the last
   word. */
#define ARRAYHUB_MOVE(SIZE)                                                                                            \
    static inline void arrayhub_move_##SIZE(char *t, const char *s, ptrdiff_t last) {                                  \
        char first_word[SIZE], last_word[SIZE];                                                                        \
        memcpy(first_word, s, SIZE);                                                                                   \
        memcpy(last_word, s + last, SIZE);                                                                             \
        memcpy(t, first_word, SIZE);                                                                                   \
        memcpy(t + last, last_word, SIZE);                                                                             \
    }
ARRAYHUB_EACH(ARRAYHUB_MOVE)

/* ---------------------------------------------------------------------------------------- tiles of items of any other size

   Items longer than one word and at most two words long are copied as two overlapping words. Tiles of contiguous items
   are read as rows of a few lines. */
#define ARRAYHUB_ITEM_TILES(SIZE)                                                                                      \
    static void arrayhub_item_tiles_##SIZE(char *target, const char *source, ptrdiff_t item, ptrdiff_t along,          \
                                           ptrdiff_t across, ptrdiff_t target_along, ptrdiff_t target_across,          \
                                           ptrdiff_t source_along, ptrdiff_t source_across) {                          \
        enum { SIDE = 2 * ARRAYHUB_LINE / SIZE };                                                                      \
        char rows[SIDE * SIDE * 2 * SIZE];                                                                             \
        const ptrdiff_t last = item - SIZE, pitch = SIDE * item;                                                       \
        for (ptrdiff_t p = 0; p < along; p += SIDE) {                                                                  \
            const ptrdiff_t tall = arrayhub_least(along - p, SIDE);                                                    \
            for (ptrdiff_t q = 0; q < across; q += SIDE) {                                                             \
                const ptrdiff_t wide = arrayhub_least(across - q, SIDE);                                               \
                const char *from = source + p * source_along + q * source_across;                                      \
                ptrdiff_t next = source_along, row = source_across;                                                    \
                if (source_along == item) {                                                                            \
                    for (ptrdiff_t j = 0; j < wide; j++)                                                               \
                        memcpy(rows + j * pitch, from + j * source_across, (size_t) (tall * item));                    \
                    from = rows, next = item, row = pitch;                                                             \
                }                                                                                                      \
                for (ptrdiff_t i = 0; i < tall; i++) {                                                                 \
                    char *t = target + (p + i) * target_along + q * target_across;                                     \
                    for (ptrdiff_t j = 0; j < wide; j++)                                                               \
                        arrayhub_move_##SIZE(t + j * target_across, from + i * next + j * row, last);                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
ARRAYHUB_ITEM_TILES(2)
ARRAYHUB_ITEM_TILES(4)
ARRAYHUB_ITEM_TILES(8)
ARRAYHUB_ITEM_TILES(16)

typedef void (*arrayhub_row_loop)(char *, const char *, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t);
typedef void (*arrayhub_tile_loop)(char *, const char *, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t, ptrdiff_t,
                                   ptrdiff_t);

/* Return the row loop for words of 1, 2, 4, 8 or 16 bytes. */
static arrayhub_row_loop arrayhub_row_loop_of(ptrdiff_t size) {
    switch (size) {
    case 1: return arrayhub_rows_1;
    case 2: return arrayhub_rows_2;
    case 4: return arrayhub_rows_4;
    case 8: return arrayhub_rows_8;
    default: return arrayhub_rows_16;
    }
}

/* Return the tile loop for items of up to 32 bytes. */
static inline arrayhub_tile_loop arrayhub_tile_loop_of(ptrdiff_t item) {
    switch (item) {
    case 1: return arrayhub_tiles_1;
    case 2: return arrayhub_tiles_2;
    case 4: return arrayhub_tiles_4;
    case 8: return arrayhub_tiles_8;
    case 16: return arrayhub_tiles_16;
    }
    return item < 4    ? arrayhub_item_tiles_2
           : item < 8  ? arrayhub_item_tiles_4
           : item < 16 ? arrayhub_item_tiles_8
                       : arrayhub_item_tiles_16;
}

/* Copy runs of `nbytes` bytes each. A run is one to two words long. */
#define ARRAYHUB_PAIRS(SIZE)                                                                                           \
    static void arrayhub_pairs_##SIZE(char *t, const char *s, ptrdiff_t outer, ptrdiff_t nbytes,                       \
                                      ptrdiff_t target_outer, ptrdiff_t source_outer) {                                \
        const ptrdiff_t last = nbytes - SIZE;                                                                          \
        _Pragma("GCC unroll 4")                                                                                        \
        for (ptrdiff_t i = 0; i < outer; i++, t += target_outer, s += source_outer)                                    \
            arrayhub_move_##SIZE(t, s, last);                                                                          \
    }
ARRAYHUB_EACH(ARRAYHUB_PAIRS)

/* Copy runs of two or more bytes. Each run is contiguous on both sides. */
static void arrayhub_runs(char *target, const char *source, ptrdiff_t outer, ptrdiff_t nbytes, ptrdiff_t target_outer,
                          ptrdiff_t source_outer) {
#define ARRAYHUB_UP_TO(SIZE)                                                                                           \
    if (nbytes <= 2 * SIZE) {                                                                                          \
        arrayhub_pairs_##SIZE(target, source, outer, nbytes, target_outer, source_outer);                              \
        return;                                                                                                        \
    }
    ARRAYHUB_EACH(ARRAYHUB_UP_TO)
    arrayhub_calls(target, source, outer, nbytes, target_outer, source_outer);
}

#endif
