/*
 * sample.c
 *		The shape of an index, by a sample of its table.
 */
#include "pg/pg_compat.h"

#include "access/tableam.h"
#include "bloomslices/bloomslices.h"
#include "core/sizing.h"
#include "pg/index_method.h"
#include "value/parameters.h"
#include "value/stored_value.h"

/*
 * The sample is this many blocks of the table, or up to MOST_SAMPLE_BLOCKS if they have
 * fewer than ENOUGH_FILTERS, as for a partial index.  Of so many, 50 exceed the number of
 * elements by which the size is chosen.
 */
#define SAMPLE_BLOCKS		64
#define MOST_SAMPLE_BLOCKS	4096
#define ENOUGH_FILTERS		1000

/* The index keeps the rate of so many filters of the sample. */
#define KEPT_PERCENT		95

/* A dense filter needs the size that it has. */
#define DENSE				UINT64_MAX

typedef struct SampledFilter
{
	SlicesShape shape;			/* that it gives an index */
	uint64		elements;		/* or DENSE */
} SampledFilter;

typedef struct Sample
{
	SlicesShape option;			/* what the storage parameters say */
	SampledFilter *filters;
	uint32		n;
	uint32		room;
} Sample;

static void
sample_row(Relation index, ItemPointer tid, Datum *values, bool *isnull, bool alive, void *arg)
{
	Sample	   *sample = arg;
	SlicesShape shape = sample->option;
	bf_filter	filter;

	if (isnull[0] || !alive)
		return;
	read_header(values[0], BF_FILTER, &filter);
	if (!complete_shape(&shape, &filter))
		return;
	if (sample->n == sample->room)
	{
		sample->room = Max(1024, 2 * sample->room);
		sample->filters = sample->filters == NULL ? palloc(sample->room * sizeof(SampledFilter)) :
			repalloc(sample->filters, sample->room * sizeof(SampledFilter));
	}
	sample->filters[sample->n++] = (SampledFilter)
	{
		.shape = shape, .elements = filter.sparse ? filter.nhashes : DENSE
	};
}

/* 0 for shapes with the same bits. */
static int
compare_shapes(const void *a, const void *b)
{
	const SlicesShape *x = &((const SampledFilter *) a)->shape;
	const SlicesShape *y = &((const SampledFilter *) b)->shape;

	if (x->nblocks != y->nblocks)
		return x->nblocks < y->nblocks ? -1 : 1;
	if (x->k != y->k)
		return x->k < y->k ? -1 : 1;
	if (x->seed != y->seed)
		return x->seed < y->seed ? -1 : 1;
	return (int) x->element_class - (int) y->element_class;
}

static int
compare_elements(const void *a, const void *b)
{
	uint64		x = ((const SampledFilter *) a)->elements;
	uint64		y = ((const SampledFilter *) b)->elements;

	return x < y ? -1 : x > y;
}

/* How many filters from one on have its shape; they are sorted. */
static uint32
length_of_run(const Sample *sample, uint32 first)
{
	uint32		end = first + 1;

	while (end < sample->n && compare_shapes(&sample->filters[first], &sample->filters[end]) == 0)
		end++;
	return end - first;
}

/*
 * Of equally common ones that of the middle size: one large filter must not give each row its
 * size.  *count gets the number of filters that have it.
 */
static SlicesShape
commonest_shape(const Sample *sample, uint32 *count)
{
	uint32		ncommonest = 0;
	uint32		most = 0;
	uint32		run;

	if (sample->n > 0)
		qsort(sample->filters, sample->n, sizeof(SampledFilter), compare_shapes);
	for (uint32 i = 0; i < sample->n; i += run)
	{
		run = length_of_run(sample, i);
		ncommonest = run > most ? 1 : ncommonest + (run == most);
		most = Max(most, run);
	}
	ncommonest /= 2;
	*count = most;
	for (uint32 i = 0; i < sample->n; i += run)
	{
		run = length_of_run(sample, i);
		if (run == most && ncommonest-- == 0)
			return sample->filters[i].shape;
	}
	return sample->option;
}

/* Leaves the filters of the shape's elements and seed, by their numbers of elements. */
static void
keep_comparable(Sample *sample, const SlicesShape *shape)
{
	uint32		n = 0;

	for (uint32 i = 0; i < sample->n; i++)
	{
		const SampledFilter *filter = &sample->filters[i];

		if (filter->shape.element_class == shape->element_class && filter->shape.seed == shape->seed)
			sample->filters[n++] = *filter;
	}
	sample->n = n;
	qsort(sample->filters, n, sizeof(SampledFilter), compare_elements);
}

static void
announce_items(Relation index, const Sample *sample, uint64 elements, const SlicesShape *own, const SlicesShape *chosen)
{
	ereport(NOTICE,
			(errmsg("bloomslices index \"%s\" is built with expected_items = " UINT64_FORMAT,
					RelationGetRelationName(index), elements),
			 errdetail("Of %u sampled filters, nineteen of twenty have no more elements. Each takes %s in the index, instead of %s.",
					   sample->n, pretty_size((uint64) chosen->nblocks * BF_BLOCK_BYTES),
					   pretty_size((uint64) own->nblocks * BF_BLOCK_BYTES)),
			 errhint("Set expected_items if larger filters will come, or, for searches by @>=, to the number for which the filters were made.")));
}

/* The number of elements that KEPT_PERCENT of the filters, which are sorted, do not exceed. */
static inline uint64
most_elements(const Sample *sample)
{
	return sample->filters[((uint64) sample->n * KEPT_PERCENT + 99) / 100 - 1].elements;
}

/*
 * Filters that are also united are made for far more elements than most of them have.  These
 * are sparse, and a search tests a sparse filter in any case if its bits pass.  So the index
 * gets the size for the elements, as by expected_items, if that saves more than half.  A
 * dense filter keeps its shape, in which its bits alone decide.
 */
static SlicesShape
shape_by_elements(Relation index, Sample *sample, SlicesShape own)
{
	SlicesShape chosen = own;
	uint64		elements;
	bf_params	params;

	keep_comparable(sample, &own);
	elements = most_elements(sample);
	/* foreign filters may have any rate */
	if (elements == DENSE || own.rate < (float4) BF_MIN_RATE || own.rate > (float4) BF_MAX_RATE)
		return own;
	params = solve_params((double) elements, own.rate, BF_BLOCKED, own.seed, 1);
	chosen.nblocks = bf_shape_of(&params).nblocks;
	chosen.k = Min(params.k, own.k);	/* or the bits of no filter answer */
	if (2 * chosen.nblocks >= own.nblocks)
		return own;
	announce_items(index, sample, elements, &own, &chosen);
	return chosen;
}

static void
announce_others(Relation index, uint32 count, uint32 n)
{
	ereport(NOTICE,
			(errmsg("bloomslices index \"%s\" is built for the parameters of %u of %u sampled filters",
					RelationGetRelationName(index), count, n),
			 errdetail("Searches test many of the others themselves."),
			 errhint("Make all filters for the same number of elements of one type, as in bloom_agg(value, n).")));
}

/* Samples blocks that are evenly spread over the table. */
static void
sample_blocks(Relation heap, Relation index, struct IndexInfo *info, uint64 nblocks, uint32 nsampled, Sample *sample)
{
	sample->n = 0;
	for (uint32 i = 0; i < nsampled; i++)
		table_index_build_range_scan(heap, index, info, false, false, false,
									 (BlockNumber) ((2 * i + 1) * nblocks / (2 * nsampled)), 1, sample_row, sample, NULL);
}

SlicesShape
sample_slices_shape(Relation heap, Relation index, struct IndexInfo *info)
{
	Sample		sample = {.option = slices_shape_option(index)};
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	uint32		nsampled = 0;
	uint32		ncommon;
	uint32		n;
	SlicesShape shape;
	SlicesShape chosen;

	for (uint32 most = SAMPLE_BLOCKS; most <= MOST_SAMPLE_BLOCKS; most *= 8)
	{
		if (nsampled == nblocks || sample.n >= ENOUGH_FILTERS)
			break;
		nsampled = Min(most, nblocks);
		sample_blocks(heap, index, info, nblocks, nsampled, &sample);
	}
	shape = commonest_shape(&sample, &ncommon);
	if (sample.option.nblocks > 0 || sample.n == 0)
		return shape;
	n = sample.n;
	chosen = shape_by_elements(index, &sample, shape);
	if (chosen.nblocks == shape.nblocks && 2 * ncommon < n)
		announce_others(index, ncommon, n);
	return chosen;
}
