/*
 * spool.c
 *		The hashes of a build, in memory or in temporary files.
 *
 * A file takes the hashes of one range, which is a range of blocks of the filter.
 * So the filter can be filled part by part, each within its memory, and each file
 * is read once or a few times.
 */
#include "pg/pg_compat.h"

#include "bloomset/spool.h"
#include "miscadmin.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#define RANGE_BITS		6		/* of a hash, which select its file */
#define RANGES			(1 << RANGE_BITS)
#define RANGE_SHIFT		(64 - RANGE_BITS)
#define CHUNK			8192	/* hashes passed on at once */

struct HashSpool
{
	uint64	   *hashes;
	uint64		count;			/* in memory */
	uint64		room;
	uint64		max_room;
	uint64		total;
	bool		in_files;
	BufFile    *files[RANGES];	/* NULL while empty */
};

HashSpool *
make_spool(Size memory)
{
	HashSpool  *spool = palloc0(sizeof(HashSpool));

	spool->max_room = Max(memory / sizeof(uint64), CHUNK);
	spool->room = CHUNK;
	spool->hashes = palloc(spool->room * sizeof(uint64));
	return spool;
}

uint64
spooled_hashes(const HashSpool *spool)
{
	return spool->total;
}

static void
move_to_files(HashSpool *spool)
{
	for (uint64 i = 0; i < spool->count; i++)
	{
		BufFile   **file = &spool->files[spool->hashes[i] >> RANGE_SHIFT];

		if (i % CHUNK == 0)
			CHECK_FOR_INTERRUPTS();
		if (*file == NULL)
			*file = BufFileCreateTemp(false);
		BufFileWrite(*file, &spool->hashes[i], sizeof(uint64));
	}
	spool->count = 0;
	spool->in_files = true;
}

static pg_noinline void
make_room(HashSpool *spool)
{
	if (spool->room == spool->max_room)
		move_to_files(spool);
	else
	{
		spool->room = Min(2 * spool->room, spool->max_room);
		spool->hashes = repalloc_huge(spool->hashes, spool->room * sizeof(uint64));
	}
}

void
spool_hash(HashSpool *spool, uint64 hash)
{
	if (unlikely(spool->count == spool->room))
		make_room(spool);
	spool->hashes[spool->count++] = hash;
	spool->total++;
}

static void
read_file(BufFile *file, uint64 *chunk, UseHashes use, void *state)
{
	size_t		size;

	if (BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in a temporary file of a bloomset build: %m")));
	while ((size = BufFileRead(file, chunk, CHUNK * sizeof(uint64))) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		use(state, chunk, size / sizeof(uint64));
	}
}

void
read_spool(HashSpool *spool, uint64 first, uint64 last, UseHashes use, void *state)
{
	if (!spool->in_files)
	{
		for (uint64 i = 0; i < spool->count; i += CHUNK)
		{
			CHECK_FOR_INTERRUPTS();
			use(state, spool->hashes + i, Min(CHUNK, spool->count - i));
		}
		return;
	}
	move_to_files(spool);
	for (uint32 range = (uint32) (first >> RANGE_SHIFT); range <= last >> RANGE_SHIFT; range++)
	{
		if (spool->files[range] != NULL)
			read_file(spool->files[range], spool->hashes, use, state);
	}
}

void
free_spool(HashSpool *spool)
{
	for (uint32 range = 0; range < RANGES; range++)
	{
		if (spool->files[range] != NULL)
			BufFileClose(spool->files[range]);
	}
	pfree(spool->hashes);
	pfree(spool);
}
