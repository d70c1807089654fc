/*
 * errors.c
 *		Error messages for the codes that the core returns.
 *
 * No message repeats bytes of the input.
 */
#include "pg/pg_compat.h"

#include "core/layout.h"
#include "filter/errors.h"
#include "utils/builtins.h"

static bool
is_counter(bf_source source)
{
	return source == BF_COUNTER_VALUE || source == BF_COUNTER_STATE;
}

const char *
source_type_name(bf_source source)
{
	return is_counter(source) ? "bloomcounter" : "bloomfilter";
}

static const char *
other_type_name(bf_source source)
{
	return source_type_name(is_counter(source) ? BF_VALUE : BF_COUNTER_VALUE);
}

/* What the positions of a filter hold. */
static const char *
unit_name(bool counter)
{
	return counter ? "numbers" : "bits";
}

/* The errdetail of a status. */
static int
status_detail(bf_status status, bf_source source)
{
	const char *unit = unit_name(is_counter(source));
	unsigned long long got = (unsigned long long) status.got;
	unsigned long long limit = (unsigned long long) status.limit;
	uint32		rate_bits = (uint32) status.got;
	float		rate;

	memcpy(&rate, &rate_bits, sizeof(rate));

	switch (status.error)
	{
		case BF_OK:
			break;
		case BF_ERR_SHORT:
			return errdetail("There are %llu bytes, but a header takes %llu.", got, limit);
		case BF_ERR_LONG:
			return errdetail("There are %llu bytes, but the largest value takes %llu.", got, limit);
		case BF_ERR_VERSION:
			return errdetail("Its format version is %llu, but this release reads version %llu.", got, limit);
		case BF_ERR_LAYOUT:
			return errdetail("Its layout number is %llu, but the highest known number is %llu.", got, limit);
		case BF_ERR_FLAGS:
			return errdetail("Its flags are 0x%llx, but the defined flags are 0x%llx.", got, limit);
		case BF_ERR_TYPE:
			return errdetail("It is of type %s.", other_type_name(source));
		case BF_ERR_COUNTER_BITS:
			return errdetail("The code for its width is %llu, but the highest known code is %llu.", got, limit);
		case BF_ERR_STATE:
			return errdetail("It is the state of an aggregate, not a finished value.");
		case BF_ERR_K:
			return errdetail("It has %llu hash functions, but the number must be between 1 and %llu.", got, limit);
		case BF_ERR_CLASS:
			return errdetail("Its element class %llu is unknown.", got);
		case BF_ERR_RATE:
			return errdetail("Its false-positive rate is %g, which is not between 0 and 1.", rate);
		case BF_ERR_BITS_MAX:
			return errdetail("It has %llu %s, but the maximum is %llu.", got, unit, limit);
		case BF_ERR_BITS_MULTIPLE:
			return errdetail("It has %llu %s, which is not a multiple of %llu.", got, unit, limit);
		case BF_ERR_UNSIZED:
			return errdetail("The number of %s is invalid for this layout and representation.", unit);
		case BF_ERR_LENGTH:
			return errdetail("There are %llu bytes after the header, but its %s take %llu.", got, unit, limit);
		case BF_ERR_HASHES_LENGTH:
			return errdetail("There are %llu bytes after the header, which is not a multiple of %llu.", got, limit);
		case BF_ERR_HASHES_MAX:
			return errdetail("It has %llu hashes, but at most %llu are allowed at its size.", got, limit);
		case BF_ERR_HASHES_ORDER:
			return errdetail("Its hashes are not in strictly ascending order at position %llu.", got);
		case BF_ERR_NUMBER:
			return errdetail("An element has the number %llu, which is not between 1 and %llu.", got, limit);
		case BF_ERR_CLASS_MISSING:
			return errdetail("It has elements, but no element class.");
		case BF_ERR_EMPTY:
			return errdetail("It has no elements, but an element class or levels.");
	}
	return 0;
}

bool
report_invalid_input(bf_status status, bf_source source, Node *escontext)
{
	ereturn(escontext, false,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid value for type %s", source_type_name(source)),
			 status_detail(status, source),
			 status.error == BF_ERR_TYPE
			 ? errhint("Cast it to %s.", other_type_name(source)) : 0));
}

void
report_corrupt_value(bf_status status, bf_source source)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid %s value in the database", source_type_name(source)),
			 status_detail(status, source)));
}

static const char *
class_name(uint32 element_class)
{
	/* format_type_be() returns "character" for bpchar, but that means char(1) */
	return format_type_with_typemod((Oid) element_class, -1);
}

/* The errdetail of a mismatch. */
static int
mismatch_detail(bf_mismatch mismatch, const bf_params *left, const bf_params *right)
{
	switch (mismatch)
	{
		case BF_MATCH:
			break;
		case BF_MISMATCH_CLASS:
			return errdetail("One holds elements of type %s, the other of type %s.",
							 class_name(left->element_class), class_name(right->element_class));
		case BF_MISMATCH_LAYOUT:
			return errdetail("One has the %s layout, the other the %s layout.",
							 bf_layout_name(left->layout), bf_layout_name(right->layout));
		case BF_MISMATCH_K:
			return errdetail("One has %u hash functions (rate %g), the other %u (rate %g).",
							 left->k, left->rate, right->k, right->rate);
		case BF_MISMATCH_SEED:
			return errdetail("One has seed %lld, the other seed %lld.",
							 (long long) left->seed, (long long) right->seed);
		case BF_MISMATCH_COUNTER_BITS:
			return errdetail("One has %u bits per number, the other %u.",
							 left->counter_bits, right->counter_bits);
		case BF_MISMATCH_SIZE:
			return errdetail("One has %llu %s, the other %llu %s.",
							 (unsigned long long) left->m, unit_name(left->counter_bits != 0),
							 (unsigned long long) right->m, unit_name(left->counter_bits != 0));
	}
	return 0;
}

/* The noun for a value with these parameters. */
static const char *
noun(const bf_params *params)
{
	return params->counter_bits == 0 ? "filter" : "counter";
}

static int
size_mismatch_hint(const bf_params *left, const bf_params *right)
{
	if (left->counter_bits != 0)
		return errhint("Build both counters with the same expected number of elements, as in bloom_counter_agg(value, n).");
	if (bf_folds_to(left, right->m) || bf_folds_to(right, left->m))
		return errhint("Build both filters with the same expected number of elements, as in bloom_agg(value, n), or fold one to the size of the other with bloom_fold(filter, like).");
	return errhint("Build both filters with the same expected number of elements, as in bloom_agg(value, n).");
}

/* The errhint of a mismatch. */
static int
mismatch_hint(bf_mismatch mismatch, const bf_params *left, const bf_params *right)
{
	switch (mismatch)
	{
		case BF_MATCH:
			break;
		case BF_MISMATCH_CLASS:
			return errhint("Build both %ss from values of one type.", noun(left));
		case BF_MISMATCH_LAYOUT:
		case BF_MISMATCH_SEED:
		case BF_MISMATCH_COUNTER_BITS:
			return errhint("Build both %ss with the same parameters.", noun(left));
		case BF_MISMATCH_K:
			return errhint("Build both %ss for the same false-positive rate.", noun(left));
		case BF_MISMATCH_SIZE:
			return size_mismatch_hint(left, right);
	}
	return 0;
}

void
report_mismatch(bf_mismatch mismatch, const bf_params *left, const bf_params *right)
{
	bool		types = mismatch == BF_MISMATCH_CLASS;

	ereport(ERROR,
			(errcode(types ? ERRCODE_DATATYPE_MISMATCH : ERRCODE_INVALID_PARAMETER_VALUE),
			 types ? errmsg("cannot combine bloom %ss of different element types", noun(left))
			 : mismatch == BF_MISMATCH_SIZE
			 ? errmsg("cannot combine bloom %ss of different sizes", noun(left))
			 : errmsg("cannot combine bloom %ss with different parameters", noun(left)),
			 mismatch_detail(mismatch, left, right),
			 mismatch_hint(mismatch, left, right)));
}

void
require_match(const bf_params *left, const bf_params *right)
{
	bf_mismatch mismatch = bf_compare_params(left, right);

	if (mismatch != BF_MATCH)
		report_mismatch(mismatch, left, right);
}

bf_params
combine_params(const bf_params *left, const bf_params *right)
{
	require_match(left, right);
	return bf_combined_params(left, right);
}

/*
 * True if a cast to the filter's type can make a value differ from an element
 * that it equals in SQL.  SQL compares these types after the opposite cast.
 */
static bool
cast_loses_equality(uint32 filter_class, uint32 element_class)
{
	switch (element_class)
	{
		case BF_CLASS_FLOAT8:
			return filter_class == BF_CLASS_INT8 || filter_class == BF_CLASS_NUMERIC;
		case BF_CLASS_TIMESTAMPTZ:
			return filter_class == BF_CLASS_TIMESTAMP || filter_class == BF_CLASS_DATE;
		default:
			return false;
	}
}

static int
class_mismatch_hint(const bf_params *filter, uint32 element_class)
{
	uint32		filter_class = filter->element_class;

	if (filter_class == BF_CLASS_TEXT && element_class == BF_CLASS_BPCHAR)
		return errhint("Build the %s from values cast to bpchar, or cast the value to text if no element ends in blanks.",
					   noun(filter));
	if (cast_loses_equality(filter_class, element_class))
		return errhint("Build the %s from values cast to %s.", noun(filter), class_name(element_class));
	return errhint("Cast the value to %s.", class_name(filter_class));
}

void
report_class_mismatch(const bf_params *filter, uint32 element_class)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("bloom %s holds elements of type %s, not %s", noun(filter),
					class_name(filter->element_class), class_name(element_class)),
			 class_mismatch_hint(filter, element_class)));
}

int
levels_detail(void)
{
	return errdetail("After bloom_raise(), bloom_level_agg(), bloom_decay(), | or &, the numbers of a counter are levels, not counts.");
}

void
report_unsized(const bf_params *filter)
{
	bool		counter = filter->counter_bits != 0;

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot add to an empty bloom %s without a size", noun(filter)),
			 errdetail("The %s is the result of an aggregate over no rows, so its size is unknown.", noun(filter)),
			 errhint("Use %s or %s.", counter ? "bloom_create_counter()" : "bloom_create()",
					 counter ? "bloom_counter_agg()" : "bloom_agg()")));
}
