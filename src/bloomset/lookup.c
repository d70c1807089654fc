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
report_other_class(Oid type, Oid value_type)
{
	ElementType element;

	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("cannot look up a value of type %s in a set of values of type %s",
					format_type_be(type), format_type_be(value_type)),
			 find_hash_function(type, &element) ?
			 errdetail("Values of these types have different hashes even if they are equal.") : 0,
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
	lookup->converts = true;
}

void
prepare_lookup(Lookup *lookup, const SetTree *tree, FunctionCallInfo fcinfo, int argument,
			   MemoryContext context)
{
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, argument);
	ElementType element;
	bool		is_text;

	lookup->element_class = tree->element_class;
	lookup->converts = false;
	lookup->hash = NULL;
	if (!OidIsValid(type))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("could not determine the type of the value to look up")));
	if (find_hash_function(type, &element))
	{
		require_element_type(type, collation_of_argument(fcinfo, argument), &element);
		lookup->hash = lookup_hash(&element, tree->element_class);
	}
	is_text = getBaseType(type) == TEXTOID;
	/* an untyped literal is text, which SQL would cut off as a name */
	if (is_text && (lookup->hash == NULL || getBaseType(tree->value_type) == NAMEOID))
		prepare_conversion(lookup, tree->value_type, context);
	else if (lookup->hash == NULL)
		report_other_class(type, tree->value_type);
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

/* The hash comes first, because it may accept an invalidation of what probing reads. */
static bool
set_excludes(Relation index, const Lookup *lookup, LookedUp *value)
{
	const BloomsetMeta *meta = &bloomset_state(index, false)->meta;
	Snapshot	snapshot = GetActiveSnapshot();
	uint64		seed = meta->seed;
	uint32		generations;

	if (meta->element_class != lookup->element_class)
		return false;
	if (!value->hashed || value->seed != seed)
	{
		value->hash = lookup->hash(value->value, seed);
		value->seed = seed;
		value->hashed = true;
	}
	pgstat_count_index_scan(index);
	PredicateLockRelation(index, snapshot);
	return !probe_bloomset(index, snapshot, value->hash, &generations);
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
