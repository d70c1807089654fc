/*
 * base_filter.c
 *		The filter that bloom_agg(element, filter) adds to, row after row.
 */
#include "base_filter.h"

#include "access/detoast.h"
#include "nodes/primnodes.h"
#include "value.h"

bool
is_constant_argument(FunctionCallInfo fcinfo, int argument)
{
	const Aggref *aggref = AggGetAggref(fcinfo);
	const Expr *expression;

	/* a window function; or arguments that are not the transition function's */
	if (aggref == NULL || aggref->aggdirectargs != NIL || argument > list_length(aggref->args))
		return false;
	expression = list_nth_node(TargetEntry, aggref->args, argument - 1)->expr;
	while (IsA(expression, RelabelType))
		expression = ((const RelabelType *) expression)->arg;
	return IsA(expression, Const) || IsA(expression, Param);
}

/*
 * A form of the value that can be compared later.  A pointer into memory says
 * nothing when that is used again, and the beginning of a compressed value says
 * nothing without the rest.
 */
static Datum
comparable_form(Datum value)
{
	struct varlena *bytes = (struct varlena *) DatumGetPointer(value);

	if (VARATT_IS_EXTERNAL(bytes) && !VARATT_IS_EXTERNAL_ONDISK(bytes))
		bytes = detoast_external_attr(bytes);
	if (VARATT_IS_COMPRESSED(bytes) && VARSIZE_ANY(bytes) > COMPARED_BYTES)
		bytes = detoast_attr(bytes);
	return PointerGetDatum(bytes);
}

BaseFilter *
remember_base(Datum value, bool isnull, MemoryContext context)
{
	Datum		direct = isnull ? value : comparable_form(value);
	Size		size = isnull ? 0 : VARSIZE_ANY(DatumGetPointer(direct));
	Size		kept = Min(size, COMPARED_BYTES);
	BaseFilter *base = MemoryContextAlloc(context, offsetof(BaseFilter, bytes) + kept);

	base->given = !isnull;
	base->size = size;
	base->kept = kept;
	if (!isnull)
		memcpy(base->bytes, DatumGetPointer(direct), kept);
	return base;
}

bool
is_base_elsewhere(const BaseFilter *base, Datum value)
{
	struct varlena *other;
	bool		same;

	if (base->kept == base->size)
		return equal_values(PointerGetDatum(base->bytes), value);
	/* what is too large to be kept whole is neither stored nor compressed */
	other = PG_DETOAST_DATUM_PACKED(value);
	same = VARSIZE_ANY_EXHDR(other) == base->size - VARHDRSZ &&
		memcmp(VARDATA_ANY(other), base->bytes + VARHDRSZ, base->kept - VARHDRSZ) == 0;
	close_value(value, other);
	return same;
}
