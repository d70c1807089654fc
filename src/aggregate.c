/*
 * aggregate.c
 *		What the support functions of all aggregates check first.
 *
 * A state is of type internal, which says nothing about what it is, and memory
 * that another function made cannot be told from ours by looking at it.  Who
 * may create aggregates with such a state can put one together from functions
 * of several kinds.  So every function looks up what its aggregate is made of:
 * then no state of ours reaches a function that does not know it, nor the
 * other way round.
 */
#include "pg_compat.h"

#include "access/htup_details.h"
#include "aggregate.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "core/bytes.h"
#include "core/format.h"
#include "errors.h"
#include "nodes/execnodes.h"
#include "utils/builtins.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "value.h"

/* Is it a C function of the library, with a name that begins so? */
static bool
is_of_kind(Oid function, Datum library, const StateKind *kind)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Datum		path;
	Datum		name;
	bool		null;
	bool		found = false;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	if (((Form_pg_proc) GETSTRUCT(tuple))->prolang == ClanguageId)
	{
		path = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_probin, &null);
		name = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &null);
		found = strncmp(TextDatumGetCString(name), kind->prefix, strlen(kind->prefix)) == 0 &&
			strcmp(TextDatumGetCString(path), TextDatumGetCString(library)) == 0;
	}
	ReleaseSysCache(tuple);
	return found;
}

/* All or none of the functions that share one state must be of a kind. */
static void
check_functions(Oid aggregate, const Oid *functions, int count, Datum library,
				const StateKind *kind)
{
	Oid			stranger = InvalidOid;
	Oid			known = InvalidOid;

	for (int i = 0; i < count; i++)
	{
		if (!OidIsValid(functions[i]))
			continue;
		if (is_of_kind(functions[i], library, kind))
			known = functions[i];
		else
			stranger = functions[i];
	}
	if (OidIsValid(known) && OidIsValid(stranger))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				 errmsg("support functions of aggregate %s do not belong together",
						format_procedure(aggregate)),
				 errdetail("Function %s does not know the state of function %s.",
						   format_procedure(stranger), format_procedure(known))));
}

static void
check_aggregate(Oid aggregate, Datum library, const StateKind *kind)
{
	HeapTuple	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(aggregate));
	FormData_pg_aggregate form;

	if (!HeapTupleIsValid(tuple))
		return;					/* a window function that is no aggregate */
	form = *(Form_pg_aggregate) GETSTRUCT(tuple);
	ReleaseSysCache(tuple);
	if (form.aggtranstype == INTERNALOID)
	{
		const Oid	functions[] = {form.aggtransfn, form.aggfinalfn, form.aggcombinefn,
			form.aggserialfn, form.aggdeserialfn};

		check_functions(aggregate, functions, lengthof(functions), library, kind);
	}
	if (form.aggmtranstype == INTERNALOID)
	{
		const Oid	functions[] = {form.aggmtransfn, form.aggminvtransfn, form.aggmfinalfn};

		check_functions(aggregate, functions, lengthof(functions), library, kind);
	}
}

/*
 * Checks all aggregates of the plan node: those with equal transition functions
 * share one state.
 */
static void
check_aggregates(FunctionCallInfo fcinfo, const StateKind *kind)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
	Datum		library;
	bool		null;
	ListCell   *cell;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
	library = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_probin, &null);
	if (IsA(fcinfo->context, AggState))
		foreach(cell, ((AggState *) fcinfo->context)->aggs)
			check_aggregate(lfirst_node(Aggref, cell)->aggfnoid, library, kind);
	else
		foreach(cell, ((WindowAggState *) fcinfo->context)->funcs)
			check_aggregate(((WindowFuncExprState *) lfirst(cell))->wfunc->winfnoid, library, kind);
	ReleaseSysCache(tuple);
}

MemoryContext
require_aggregate(FunctionCallInfo fcinfo, const StateKind *kind, void **approved)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("aggregate support function called outside an aggregate")));
	if (unlikely(*approved != fcinfo->context))
	{
		check_aggregates(fcinfo, kind);
		*approved = fcinfo->context;
	}
	return context;
}

void
report_foreign_state(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("aggregate state is of another kind than this function's")));
}

void
open_serialized(const uint8 *bytes, uint64 size, bf_source source, bf_filter *filter)
{
	bf_status	status = bf_decode(bytes, size, source, filter);

	if (status.error == BF_OK)
		status = check_payload(filter);
	if (status.error != BF_OK)
		report_invalid_input(status, NULL);
}

bytea *
join_serialized(struct varlena **values, int count)
{
	Size		size = VARHDRSZ;
	bytea	   *joined;
	uint8	   *to;

	for (int i = 0; i < count; i++)
		size += sizeof(uint64) + VARSIZE(values[i]) - VARHDRSZ;
	joined = palloc(size);
	SET_VARSIZE(joined, size);
	to = (uint8 *) VARDATA(joined);
	for (int i = 0; i < count; i++)
	{
		size = VARSIZE(values[i]) - VARHDRSZ;
		bf_store64(to, size);
		copy_bytes(to + sizeof(uint64), (uint8 *) VARDATA(values[i]), size);
		to += sizeof(uint64) + size;
	}
	return joined;
}

bool
read_serialized(const uint8 **bytes, uint64 *left, bf_filter *filter)
{
	uint64		size;

	if (*left == 0)
		return false;
	size = *left < sizeof(size) ? 0 : bf_load64(*bytes);
	if (*left < sizeof(size) || size > *left - sizeof(size))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("serialized aggregate state ends before its time")));
	open_serialized(*bytes + sizeof(size), size, BF_VALUE, filter);
	*bytes += sizeof(size) + size;
	*left -= sizeof(size) + size;
	return true;
}
