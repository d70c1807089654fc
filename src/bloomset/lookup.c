/*
 * lookup.c
 *		Asking the sets of a tree for a value.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "bloomset/bloomset.h"
#include "bloomset/lookup.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

pg_noreturn static void
report_other_class(Oid type, Oid value_type, bool is_array)
{
	ElementType element;

	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("cannot look up a value of type %s in a set of values of type %s",
					format_type_be(type), format_type_be(value_type)),
			 find_hash_function(type, &element) && !type_is_enum(type) ?
			 errdetail("Values of these types have different hashes even if they are equal.") : 0,
			 is_array ? errhint("Look up values of type %s[].", format_type_be(getBaseType(value_type))) :
			 errhint("Look up a value of type %s.", format_type_be(getBaseType(value_type)))));
}

/*
 * The collation of an argument.  That of a function call comes from all arguments, and a
 * column's name has one, too.
 */
static Oid
collation_of_argument(FunctionCallInfo fcinfo, int argument)
{
	Node	   *call = fcinfo->flinfo->fn_expr;

	if (!IsA(call, FuncExpr))
		return PG_GET_COLLATION();
	return exprCollation(list_nth(((FuncExpr *) call)->args, argument));
}

/* An untyped literal arrives as text. */
static void
prepare_conversion(Lookup *lookup, Oid value_type, MemoryContext context)
{
	Oid			function;
	ElementType element;

	getTypeInputInfo(getBaseType(value_type), &function, &lookup->input_parameter);
	fmgr_info_cxt(function, &lookup->input, context);
	(void) find_hash_function(value_type, &element);
	lookup->hash = element.hash;
	lookup->type = getBaseType(value_type);
	lookup->converts = true;
}

static pg_noinline void
report_unknown_type(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("could not determine the type of the value to look up")));
}

/* Values as they are; the hash remains NULL if the sets cannot answer. */
static void
prepare_for_type(Lookup *lookup, const SetTree *tree, Oid type, Oid collation)
{
	ElementType element;

	lookup->type = getBaseType(type);
	lookup->element_class = tree->element_class;
	lookup->converts = false;
	lookup->hash = NULL;
	if (find_hash_function(type, &element))
	{
		require_element_type(type, collation, &element);
		lookup->hash = lookup_hash(&element, tree->element_class);
	}
}

void
require_operator(const Lookup *lookup, const SetTree *tree)
{
	if (type_is_enum(lookup->type))
		report_other_class(lookup->type, tree->value_type, false);
}

/*
 * An untyped literal is text.  SQL would give it the type of the column, where that makes a
 * difference: it cuts off a name, and ignores blanks at the end of char(n).
 */
static bool
converts_literals(const SetTree *tree)
{
	Oid			type = getBaseType(tree->value_type);

	return type == NAMEOID || type == BPCHAROID;
}

void
prepare_lookup_of_elements(Lookup *lookup, const SetTree *tree, Oid element_type,
						   FunctionCallInfo fcinfo, int argument)
{
	if (!OidIsValid(get_fn_expr_argtype(fcinfo->flinfo, argument)))
		report_unknown_type();
	prepare_for_type(lookup, tree, element_type, collation_of_argument(fcinfo, argument));
	if (lookup->hash == NULL || (lookup->type == TEXTOID && converts_literals(tree)))
		report_other_class(element_type, tree->value_type, true);
}

void
prepare_lookup(Lookup *lookup, const SetTree *tree, FunctionCallInfo fcinfo, int argument,
			   MemoryContext context)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, argument);
	bool		is_text;

	if (!OidIsValid(type))
		report_unknown_type();
	prepare_for_type(lookup, tree, type, collation_of_argument(fcinfo, argument));
	is_text = getBaseType(type) == TEXTOID;
	if (is_text && (lookup->hash == NULL || converts_literals(tree)))
		prepare_conversion(lookup, tree->value_type, context);
	else if (lookup->hash == NULL)
		report_other_class(type, tree->value_type, false);
}

LookedUp
looked_up_value(Lookup *lookup, Datum value)
{
	LookedUp	result = {.value = value};

	if (lookup->converts)
		result.value = InputFunctionCall(&lookup->input, TextDatumGetCString(value),
										 lookup->input_parameter, -1);
	return result;
}

static uint64
hash_of(LookedUp *value, const Lookup *lookup, uint64 seed)
{
	if (!value->hashed || value->seed != seed)
	{
		value->hash = lookup->hash(value->value, seed);
		value->seed = seed;
		value->hashed = true;
	}
	return value->hash;
}

/* The hash comes first, because it may accept an invalidation of what probing reads. */
static bool
set_excludes(Relation index, const Lookup *lookup, LookedUp *value)
{
	const BloomsetMeta *meta = &bloomset_state(index, false)->meta;
	Snapshot	snapshot = GetActiveSnapshot();
	uint64		hash;
	uint32		generations;

	if (meta->element_class != lookup->element_class)
		return false;
	hash = hash_of(value, lookup, meta->seed);
	pgstat_count_index_scan(index);
	PredicateLockRelation(index, snapshot);
	return !probe_bloomset(index, snapshot, hash, &generations);
}

bool
leaf_may_contain(const SetLeaf *leaf, const Lookup *lookup, LookedUp *value)
{
	for (int i = 0; i < leaf->nindexes; i++)
	{
		Relation	index = open_set(leaf->indexes[i]);
		bool		excluded = index != NULL && set_excludes(index, lookup, value);

		if (index != NULL)
			index_close(index, NoLock);
		if (excluded)
			return false;
	}
	return true;
}

/* The values that a set does not exclude.  The hashes come first here, too. */
static int
shorten_by_set(Relation index, const Lookup *lookup, LookedUp *values, int *candidates, int count)
{
	const BloomsetMeta *meta = &bloomset_state(index, false)->meta;
	uint64		seed = meta->seed;
	BatchProbe *probes;
	int			left = 0;

	if (meta->element_class != lookup->element_class)
		return count;
	probes = palloc_extended(count * sizeof(BatchProbe), MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		probes[i].hash = hash_of(&values[candidates[i]], lookup, seed);
	}
	pgstat_count_index_scan(index);
	PredicateLockRelation(index, GetActiveSnapshot());
	probe_bloomset_batch(index, GetActiveSnapshot(), probes, count);
	for (int i = 0; i < count; i++)
	{
		if (probes[i].found)
			candidates[left++] = candidates[i];
	}
	pfree(probes);
	return left;
}

/* Opens each set once, which takes longer than asking it. */
int
shorten_candidates(const SetLeaf *leaf, const Lookup *lookup, LookedUp *values, int *candidates,
				   int count)
{
	for (int i = 0; i < leaf->nindexes; i++)
	{
		Relation	index = open_set(leaf->indexes[i]);

		if (index == NULL)
			continue;
		if (count > 0)
			count = shorten_by_set(index, lookup, values, candidates, count);
		index_close(index, NoLock);
	}
	return count;
}
