/*
 * query_expression.c
 *		Conditions on a filter as the equivalent "filter @@ query".
 *
 * An index can only answer operators of its operator class.  @> is in none,
 * because its right operand is of a pseudo-type.
 */
#include "pg/pg_compat.h"

#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "pg/element.h"
#include "planner/query_expression.h"
#include "query/query.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(bloomfilter_contains_support);

extern PGDLLEXPORT Datum bloomfilter_contains(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomfilter_contained(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomfilter_contains_any(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomfilter_contains_all(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomfilter_contains_least(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomfilter_hits(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomfilter_matches(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomfilter_absent(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomquery_make(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum bloomquery_make_least(PG_FUNCTION_ARGS);

/* The strategy of @@ in an operator family of an access method for filters. */
#define QUERY_STRATEGY	1

static PGFunction
address_of(Oid function)
{
	FmgrInfo	info;

	fmgr_info(function, &info);
	return info.fn_addr;
}

/* Can keys of this expression's type be hashed without an error? */
static bool
is_hashable(const Node *keys, bool is_array, Oid collation)
{
	Oid			type = exprType(keys);
	ElementType element;

	return find_element_type(is_array ? get_base_element_type(type) : type, collation, &element);
}

static bool
may_execute(Oid function)
{
	return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
}

/* Would the call raise an error that a plan without it need not raise? */
static bool
is_negative(const Node *least)
{
	const Const *value = (const Const *) least;

	return IsA(least, Const) && !value->constisnull && DatumGetInt32(value->constvalue) < 0;
}

/* Finds bloom_query() with this number of arguments in a schema. */
static Oid
find_constructor(int count, Oid schema)
{
	const Oid	types[] = {count == 1 ? ANYCOMPATIBLEOID : ANYCOMPATIBLEARRAYOID, INT4OID};

	return GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum("bloom_query"),
						   PointerGetDatum(buildoidvector(types, count)), ObjectIdGetDatum(schema));
}

/*
 * A call of bloom_query(), which is in the schema of the function.  NULL if it was renamed,
 * or the user may not execute it.  Another function may have its name if the extension's
 * SQL is older than the library.
 */
static Node *
call_constructor(Oid function, List *arguments, Oid collation)
{
	int			count = list_length(arguments);
	Oid			constructor = find_constructor(count, get_func_namespace(function));

	if (!OidIsValid(constructor) || !may_execute(constructor) ||
		address_of(constructor) != (count == 1 ? bloomquery_make : bloomquery_make_least))
		return NULL;
	return (Node *) makeFuncExpr(constructor, get_func_rettype(constructor), arguments, InvalidOid,
								 collation, COERCE_EXPLICIT_CALL);
}

static Node *
integer_constant(int32 value)
{
	return (Node *) makeConst(INT4OID, -1, InvalidOid, sizeof(int32), Int32GetDatum(value), false,
							  true);
}

bool
find_query_expression(Oid function, List *arguments, Oid collation, QueryExpression *expression)
{
	PGFunction	address = address_of(function);
	bool		is_array = address != bloomfilter_contains && address != bloomfilter_contained;
	int			filter = address == bloomfilter_contained ? 1 : 0;
	Node	   *keys = list_nth(arguments, 1 - filter);
	List	   *query = list_make1(keys);

	if (!is_hashable(keys, is_array, collation))
		return false;
	if (address == bloomfilter_contains_any)
		query = lappend(query, integer_constant(1));
	else if (address == bloomfilter_contains_least && !is_negative(lthird(arguments)))
		query = lappend(query, lthird(arguments));
	else if (is_array && address != bloomfilter_contains_all)
		return false;
	expression->filter_argument = filter;
	expression->filter = list_nth(arguments, filter);
	expression->query = call_constructor(function, query, collation);
	return expression->query != NULL;
}

/* The condition for an index whose column is the filter, or NIL. */
static List *
index_condition(SupportRequestIndexCondition *request)
{
	const OpExpr *operation = (OpExpr *) request->node;
	const FuncExpr *call = (FuncExpr *) request->node;
	bool		is_call = IsA(request->node, FuncExpr);
	QueryExpression expression;
	Oid			operator;

	if (!is_call && !IsA(request->node, OpExpr))
		return NIL;
	if (!find_query_expression(request->funcid, is_call ? call->args : operation->args,
							   is_call ? call->inputcollid : operation->inputcollid, &expression) ||
		expression.filter_argument != request->indexarg ||
		!is_pseudo_constant_for_index(request->root, expression.query, request->index))
		return NIL;
	operator = get_opfamily_member(request->opfamily, request->index->opcintype[request->indexcol],
								   exprType(expression.query), QUERY_STRATEGY);
	if (!OidIsValid(operator) || !may_execute(get_opcode(operator)))
		return NIL;
	request->lossy = false;
	return list_make1(make_opclause(operator, BOOLOID, false, (Expr *) expression.filter,
									(Expr *) expression.query, InvalidOid, InvalidOid));
}

/* The selectivity of a call; false if the filter is no column. */
static bool
call_selectivity(SupportRequestSelectivity *request)
{
	QueryExpression expression;

	if (request->is_join ||
		!find_query_expression(request->funcid, request->args, request->inputcollid, &expression) ||
		!contain_var_clause(expression.filter))
		return false;
	request->selectivity = query_selectivity(request->root, request->funcid, expression.filter,
											 expression.query, request->varRelid);
	return true;
}

/* Of an array that is not known. */
#define DEFAULT_KEYS	10

/* root is NULL where the server prices an argument of an SQL function to inline it. */
static const Const *
known_value(PlannerInfo *root, Node *expression)
{
	return (const Const *) (root == NULL ? expression : estimate_expression_value(root, expression));
}

static double
count_elements(PlannerInfo *root, Node *array)
{
	const Const *value = known_value(root, array);
	ArrayType  *elements;

	if (!IsA(value, Const) || value->constisnull)
		return DEFAULT_KEYS;
	elements = DatumGetArrayTypeP(value->constvalue);
	return ArrayGetNItems(ARR_NDIM(elements), ARR_DIMS(elements));
}

/* Until a filter that does not have them has missed enough of its keys. */
static double
tests_until(double nkeys, double least)
{
	return Max(nkeys - least, 0) + 1;
}

/* The argument at_least, or 0 if it is not known. */
static double
least_argument(PlannerInfo *root, Node *argument)
{
	const Const *value = known_value(root, argument);

	return IsA(value, Const) && !value->constisnull ? DatumGetInt32(value->constvalue) : 0;
}

static bool
is_constructor(Oid function)
{
	PGFunction	address = address_of(function);

	return address == bloomquery_make || address == bloomquery_make_least;
}

/* Does not make the query, which could raise an error. */
static double
tests_of_constructor(PlannerInfo *root, const List *arguments, bool all)
{
	Node	   *keys = linitial(arguments);
	double		nkeys = OidIsValid(get_base_element_type(exprType(keys))) ? count_elements(root, keys) : 1;
	double		least = list_length(arguments) > 1 ? least_argument(root, lsecond(arguments)) : nkeys;

	return all ? nkeys : tests_until(nkeys, least);
}

static double
tests_of_query(PlannerInfo *root, Node *query, bool all)
{
	OpenQuery	open;

	if (IsA(query, FuncExpr) && is_constructor(((FuncExpr *) query)->funcid))
		return tests_of_constructor(root, ((FuncExpr *) query)->args, all);
	if (!IsA(query, Const) || ((Const *) query)->constisnull)
		return 1;
	open_query(((Const *) query)->constvalue, &open);
	return all ? open.nkeys : tests_until(open.nkeys, open.least);
}

/* How many keys a call tests of a filter that few of them are in. */
static double
tests_of_call(PlannerInfo *root, Oid function, const List *arguments)
{
	PGFunction	address = address_of(function);

	if (address == bloomfilter_matches || address == bloomfilter_absent)
		return tests_of_query(root, lsecond(arguments), address == bloomfilter_absent);
	if (address == bloomfilter_contains_any || address == bloomfilter_hits)
		return count_elements(root, lsecond(arguments));
	if (address == bloomfilter_contains_least)
		return tests_until(count_elements(root, lsecond(arguments)), least_argument(root, lthird(arguments)));
	return 1;
}

static double
declared_cost(Oid function)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	double		cost;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	cost = ((Form_pg_proc) GETSTRUCT(tuple))->procost;
	ReleaseSysCache(tuple);
	return cost;
}

/* The cost that a function is declared with is that of one key. */
static bool
call_cost(SupportRequestCost *request)
{
	List	   *arguments;

	if (request->node == NULL || !(IsA(request->node, OpExpr) || IsA(request->node, FuncExpr)))
		return false;
	arguments = IsA(request->node, OpExpr) ? ((OpExpr *) request->node)->args : ((FuncExpr *) request->node)->args;
	request->startup = 0;
	request->per_tuple = declared_cost(request->funcid) * cpu_operator_cost *
		Max(tests_of_call(request->root, request->funcid, arguments), 1);
	return true;
}

Datum
bloomfilter_contains_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestIndexCondition))
		PG_RETURN_POINTER(index_condition((SupportRequestIndexCondition *) request));
	if (IsA(request, SupportRequestSelectivity) &&
		call_selectivity((SupportRequestSelectivity *) request))
		PG_RETURN_POINTER(request);
	if (IsA(request, SupportRequestCost) && call_cost((SupportRequestCost *) request))
		PG_RETURN_POINTER(request);
	PG_RETURN_POINTER(NULL);
}
