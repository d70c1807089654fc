/*
 * question.h
 *		What a scan asks of each row: a condition, or a distance.
 */
#ifndef BF_QUESTION_H
#define BF_QUESTION_H

#include "pg/pg_compat.h"

#include "access/skey.h"
#include "bloomslices/bloomslices.h"

/* What a row of a kind answers. */
typedef enum Verdict
{
	VERDICT_NO = 0,
	VERDICT_YES,
	VERDICT_MAYBE,				/* recheck */
	VERDICT_BITS,				/* as its bits say */
	VERDICT_BITS_MAYBE			/* if its bits say so, recheck */
} Verdict;

typedef enum QuestionMode
{
	ASK_NOTHING,				/* no bits needed */
	ASK_ALL,					/* of the keys, or of the bits */
	ASK_ANY,
	ASK_LEAST
} QuestionMode;

/*
 * The keys' hashes ascend, and so do their blocks, so that the keys of a block are
 * consecutive.
 */
typedef struct Question
{
	QuestionMode mode;
	bf_shape	shape;			/* of the index */
	uint32		nkeys;
	uint32		least;			/* number of keys, for ASK_LEAST */
	const uint64 *hashes;		/* of the keys, or NULL */
	const uint8 *bits;			/* else nblocks * 64 bytes */
	bool		is_null;		/* a distance is NULL */
	uint8		verdicts[ROW_NULL + 1]; /* by RowKind */
} Question;

/* Prepares a condition, or the distance of an ORDER BY, in the current memory context. */
extern void prepare_condition(Question *question, const SlicesShape *shape, const ScanKeyData *key);
extern void prepare_distance(Question *question, const SlicesShape *shape, const ScanKeyData *key);

static inline bool
asks_bits(const Question *question)
{
	return question->mode != ASK_NOTHING;
}

/* The tests of one block: of up to 16 keys, or of bits. */
#define KEYS_PER_BLOCK	16

typedef struct BlockTest
{
	uint16		bit;
	uint16		key;			/* counted from the first of these keys */
} BlockTest;

typedef struct BlockTests
{
	uint64		next;			/* key or block; 0 before the first call */
	uint32		block;
	uint32		nkeys;
	uint32		ntests;
	BlockTest	tests[KEYS_PER_BLOCK * BF_MAX_K];	/* by bit */
} BlockTests;

/* The next tests of a question; false at the end. */
extern bool next_block_tests(const Question *question, BlockTests *tests);

#endif							/* BF_QUESTION_H */
