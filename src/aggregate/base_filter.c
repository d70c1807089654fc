/*
 * base_filter.c
 *		The filter to which bloom_agg(element, filter) adds elements.
 */
#include "pg/pg_compat.h"

#include "access/detoast.h"
#include "aggregate/base_filter.h"
#include "core/hash.h"
#include "nodes/primnodes.h"
#include "utils/fmgrprotos.h"
#include "value/value.h"

struct BaseFilter
{
	bool		given;			/* false if it is NULL */
	bool		stored;			/* out of line */
	char		pointer[TOAST_POINTER_SIZE];	/* valid if stored */
	Size		size;			/* of the detoasted value, in bytes */
	uint64		hash;			/* of its bytes; valid if it can change */
};

bool
is_constant_argument(FunctionCallInfo fcinfo, int argument)
{
	const Aggref *aggref = AggGetAggref(fcinfo);
	const Expr *expression;

	/* a window function, or arguments that are numbered otherwise */
	if (aggref == NULL || aggref->aggdirectargs != NIL || argument > list_length(aggref->args))
		return false;
	expression = list_nth_node(TargetEntry, aggref->args, argument - 1)->expr;
	while (IsA(expression, RelabelType))
		expression = ((const RelabelType *) expression)->arg;
	return IsA(expression, Const) || IsA(expression, Param);
}

static uint64
hash_value(Datum value)
{
	struct varlena *bytes = PG_DETOAST_DATUM_PACKED(value);
	uint64		hash = bf_hash_bytes(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), 0);

	close_value(value, bytes);
	return hash;
}

BaseFilter *
remember_base(Datum value, bool isnull, bool can_change, MemoryContext context)
{
	BaseFilter *base = MemoryContextAllocZero(context, sizeof(*base));

	base->given = !isnull;
	if (isnull)
		return base;
	base->stored = VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value));
	if (base->stored)
		memcpy(base->pointer, DatumGetPointer(value), TOAST_POINTER_SIZE);
	base->size = toast_raw_datum_size(value);
	if (can_change)
		base->hash = hash_value(value);
	return base;
}

bool
is_base(const BaseFilter *base, Datum value, bool isnull)
{
	if (isnull || !base->given)
		return isnull && !base->given;
	if (base->stored && VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value)) &&
		memcmp(base->pointer, DatumGetPointer(value), TOAST_POINTER_SIZE) == 0)
		return true;
	return toast_raw_datum_size(value) == base->size && hash_value(value) == base->hash;
}

Datum
reuse_stored_base(const BaseFilter *base, Datum result)
{
	char	   *pointer;

	if (!base->stored ||
		!DatumGetBool(DirectFunctionCall2(byteaeq, PointerGetDatum(base->pointer), result)))
		return result;
	pointer = palloc(TOAST_POINTER_SIZE);
	memcpy(pointer, base->pointer, TOAST_POINTER_SIZE);
	return PointerGetDatum(pointer);
}
