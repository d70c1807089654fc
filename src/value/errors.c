/*
 * errors.c
 *		Error messages for the codes that the core returns, and the messages that
 *		differ between the types.
 *
 * No message repeats bytes of the input.
 */
#include "pg/pg_compat.h"

#include "core/layout.h"
#include "utils/builtins.h"
#include "value/errors.h"

const TypeMessages type_messages[BLOOM_TYPES] = {
	[BF_FILTER] = {
		.too_many_cells = gettext_noop("It has %llu bits, but the maximum is %llu."),
		.cells_not_multiple = gettext_noop("It has %llu bits, which is not a multiple of %llu."),
		.cells_invalid = gettext_noop("The number of bits is invalid for this layout and representation."),
		.wrong_length = gettext_noop("There are %llu bytes after the header, but its bits take %llu."),
		.different_classes = gettext_noop("cannot combine bloom filters of different element types"),
		.different_sizes = gettext_noop("cannot combine bloom filters of different sizes"),
		.different_parameters = gettext_noop("cannot combine bloom filters with different parameters"),
		.sizes = gettext_noop("One has %llu bits, the other %llu bits."),
		.build_from_one_type = gettext_noop("Build both filters from values of one type."),
		.build_for_one_rate = gettext_noop("Build both filters for the same false-positive rate."),
		.build_with_same_parameters = gettext_noop("Build both filters with the same parameters."),
		.build_for_same_items = gettext_noop("Build both filters with the same expected number of elements, as in bloom_agg(value, n)."),
		.build_or_fold = gettext_noop("Build both filters with the same expected number of elements, as in bloom_agg(value, n), or fold one to the size of the other with bloom_fold(filter, like)."),
		.class_mismatch = gettext_noop("bloom filter holds elements of type %s, not %s"),
		.build_from_type = gettext_noop("Build the filter from values cast to %s."),
		.build_from_bpchar = gettext_noop("Build the filter from values cast to bpchar, or cast the value to text if no element ends in blanks."),
		.unsized = gettext_noop("cannot add to an empty bloom filter without a size"),
		.unsized_hint = gettext_noop("Use bloom_create() or bloom_agg()."),
		.too_large = gettext_noop("bloom filter for %s elements at a false-positive rate of %g would be too large"),
		.largest = gettext_noop("The largest filter has %llu bits, enough for %llu elements at this rate."),
		.use_higher_rate = gettext_noop("Use a higher rate, or distribute the elements over several filters."),
		.changed_base = gettext_noop("filter argument must not change within an aggregate"),
		.fold_to_rate = gettext_noop("cannot fold a bloom filter to a false-positive rate of %.9g"),
		.fold_to_size = gettext_noop("cannot fold a bloom filter of %llu bits to %llu bits")
	},
	[BF_COUNTER] = {
		.too_many_cells = gettext_noop("It has %llu numbers, but the maximum is %llu."),
		.cells_not_multiple = gettext_noop("It has %llu numbers, which is not a multiple of %llu."),
		.cells_invalid = gettext_noop("The number of numbers is invalid for this layout and representation."),
		.wrong_length = gettext_noop("There are %llu bytes after the header, but its numbers take %llu."),
		.different_classes = gettext_noop("cannot combine bloom counters of different element types"),
		.different_sizes = gettext_noop("cannot combine bloom counters of different sizes"),
		.different_parameters = gettext_noop("cannot combine bloom counters with different parameters"),
		.sizes = gettext_noop("One has %llu numbers, the other %llu numbers."),
		.build_from_one_type = gettext_noop("Build both counters from values of one type."),
		.build_for_one_rate = gettext_noop("Build both counters for the same false-positive rate."),
		.build_with_same_parameters = gettext_noop("Build both counters with the same parameters."),
		.build_for_same_items = gettext_noop("Build both counters with the same expected number of elements, as in bloom_counter_agg(value, n)."),
		.build_or_fold = gettext_noop("Build both counters with the same expected number of elements, as in bloom_counter_agg(value, n), or fold one to the size of the other with bloom_fold(counter, like)."),
		.class_mismatch = gettext_noop("bloom counter holds elements of type %s, not %s"),
		.build_from_type = gettext_noop("Build the counter from values cast to %s."),
		.build_from_bpchar = gettext_noop("Build the counter from values cast to bpchar, or cast the value to text if no element ends in blanks."),
		.unsized = gettext_noop("cannot add to an empty bloom counter without a size"),
		.unsized_hint = gettext_noop("Use bloom_create_counter() or bloom_counter_agg()."),
		.too_large = gettext_noop("bloom counter for %s elements at a false-positive rate of %g would be too large"),
		.largest = gettext_noop("The largest counter with %3$u bits per number has %1$llu numbers, enough for %2$llu elements at this rate."),
		.use_higher_rate = gettext_noop("Use a higher rate, or distribute the elements over several counters."),
		.changed_base = gettext_noop("counter argument must not change within an aggregate"),
		.fold_to_rate = gettext_noop("cannot fold a bloom counter to a false-positive rate of %.9g"),
		.fold_to_size = gettext_noop("cannot fold a bloom counter of %llu numbers to %llu numbers")
	}
};

static const char *
other_type_name(bf_kind kind)
{
	return bloom_types[kind == BF_FILTER ? BF_COUNTER : BF_FILTER].name;
}

/* The errdetail of a status. */
static int
status_detail(bf_status status, bf_kind kind)
{
	const TypeMessages *messages = &type_messages[kind];
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
			return errdetail("It is of type %s.", other_type_name(kind));
		case BF_ERR_CELL_BITS:
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
			return errdetail(messages->too_many_cells, got, limit);
		case BF_ERR_BITS_MULTIPLE:
			return errdetail(messages->cells_not_multiple, got, limit);
		case BF_ERR_UNSIZED:
			return errdetail_internal("%s", _(messages->cells_invalid));
		case BF_ERR_LENGTH:
			return errdetail(messages->wrong_length, got, limit);
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
report_invalid_input(bf_status status, bf_kind kind, Node *escontext)
{
	ereturn(escontext, false,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid value for type %s", bloom_types[kind].name),
			 status_detail(status, kind),
			 status.error == BF_ERR_TYPE
			 ? errhint("Cast it to %s.", other_type_name(kind)) : 0));
}

void
report_corrupt_value(bf_status status, bf_kind kind)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("invalid %s value in the database", bloom_types[kind].name),
			 status_detail(status, kind)));
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
		case BF_MISMATCH_CELL_BITS:
			return errdetail("One has %u bits per number, the other %u.",
							 left->cell_bits, right->cell_bits);
		case BF_MISMATCH_SIZE:
			return errdetail(messages_for(left)->sizes,
							 (unsigned long long) left->m, (unsigned long long) right->m);
	}
	return 0;
}

/* The errhint of a mismatch. */
static int
mismatch_hint(bf_mismatch mismatch, const bf_params *left, const bf_params *right)
{
	const TypeMessages *messages = messages_for(left);

	switch (mismatch)
	{
		case BF_MATCH:
			break;
		case BF_MISMATCH_CLASS:
			return errhint_of(messages->build_from_one_type);
		case BF_MISMATCH_LAYOUT:
		case BF_MISMATCH_SEED:
		case BF_MISMATCH_CELL_BITS:
			return errhint_of(messages->build_with_same_parameters);
		case BF_MISMATCH_K:
			return errhint_of(messages->build_for_one_rate);
		case BF_MISMATCH_SIZE:
			return bf_folds_to(left, right->m) || bf_folds_to(right, left->m)
				? errhint_of(messages->build_or_fold) : errhint_of(messages->build_for_same_items);
	}
	return 0;
}

void
report_mismatch(bf_mismatch mismatch, const bf_params *left, const bf_params *right)
{
	const TypeMessages *messages = messages_for(left);
	bool		types = mismatch == BF_MISMATCH_CLASS;

	ereport(ERROR,
			(errcode(types ? ERRCODE_DATATYPE_MISMATCH : ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg_of(types ? messages->different_classes
					   : mismatch == BF_MISMATCH_SIZE ? messages->different_sizes
					   : messages->different_parameters),
			 mismatch_detail(mismatch, left, right),
			 mismatch_hint(mismatch, left, right)));
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
		return errhint_of(messages_for(filter)->build_from_bpchar);
	if (cast_loses_equality(filter_class, element_class))
		return errhint(messages_for(filter)->build_from_type, class_name(element_class));
	return errhint("Cast the value to %s.", class_name(filter_class));
}

void
report_class_mismatch(const bf_params *filter, uint32 element_class)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg(messages_for(filter)->class_mismatch,
					class_name(filter->element_class), class_name(element_class)),
			 class_mismatch_hint(filter, element_class)));
}

int
levels_detail(void)
{
	return errdetail("After bloom_raise(), bloom_level_agg(), bloom_decay(), | or &, the numbers of a counter are levels, not counts.");
}

void
report_misfit(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("cannot subtract a bloom counter from one that does not contain it"),
			 errdetail("A number of the second counter is greater than that of the first.")));
}

void
report_unsized(const bf_params *filter)
{
	const TypeMessages *messages = messages_for(filter);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg_of(messages->unsized),
			 errdetail("It is the result of an aggregate over no rows, so its size is unknown."),
			 errhint_of(messages->unsized_hint)));
}
