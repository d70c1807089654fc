/*
 * new.c
 *		bloomset_new(): which elements no row of a table has.
 *
 * Sessions that import the same element must not both be told that it is new.  So each
 * call first takes locks that the hashes of its elements choose, until its transaction
 * ends, and takes its snapshot then: who waited for another import sees its rows.  The
 * locks are taken in their order, so that two calls cannot deadlock.
 *
 * The sets are asked leaf by leaf, and what a leaf may have is looked up by one query.  All
 * of them use the one snapshot, so that no row escapes by moving between leaves.
 */
#include "pg/pg_compat.h"

#include "access/xact.h"
#include "bloomset/leaf_query.h"
#include "bloomset/lookup.h"
#include "bloomset/tree.h"
#include "catalog/pg_class.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(bloomset_new);

/*
 * Locks of a table.  More of them let more sessions import small batches at once; a large batch
 * takes them all, and shared memory must have room for that.
 */
#define NLOCKS	256

/* The objsubid of our locks in pg_locks.  It is 1 or 2 for the advisory locks of users. */
#define LOCK_CLASS	25204

/* What a call asks for. */
typedef struct Import
{
	Oid			type;			/* of the elements */
	Lookup		lookup;
	int			count;
	LookedUp   *values;			/* about in the order of their hashes */
	bool	   *present;		/* which of them a row has */
	bool		same_type;		/* as the column */
} Import;

/* Later isolation levels keep a snapshot from before the wait for a lock. */
static void
require_new_snapshots(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("bloomset_new needs the isolation level READ COMMITTED"),
				 errdetail("At other levels a transaction does not see what others have imported since it began.")));
}

static Datum *
read_elements(Import *import, ArrayType *array)
{
	Datum	   *elements;
	int16		length;
	bool		by_value;
	char		alignment;

	import->type = ARR_ELEMTYPE(array);
	if (array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("elements to import must not be null"),
				 errhint("Leave them out, or store them without asking.")));
	get_typlenbyvalalign(import->type, &length, &by_value, &alignment);
	deconstruct_array(array, import->type, length, by_value, alignment, &elements, NULL,
					  &import->count);
	return elements;
}

static int
compare_hashes(const void *a, const void *b)
{
	uint64		x = ((const LookedUp *) a)->hash;
	uint64		y = ((const LookedUp *) b)->hash;

	return (x > y) - (x < y);
}

/* Elements that are sorted at once, which takes some milliseconds. */
#define SORTED	65536

/*
 * Hashes the elements as sets of the default seed do, and sorts each part of them, so that
 * many that are in one page of a set come together.
 */
static void
hash_elements(Import *import, const Datum *elements)
{
	import->values = palloc_extended(sizeof(LookedUp) * import->count, MCXT_ALLOC_HUGE);
	import->present = palloc0(import->count);
	for (int i = 0; i < import->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		import->values[i] = (LookedUp)
		{
			.value = elements[i], .hashed = true, .hash = import->lookup.hash(elements[i], 0)
		};
	}
	for (int i = 0; i < import->count; i += SORTED)
	{
		CHECK_FOR_INTERRUPTS();
		qsort(import->values + i, Min(SORTED, import->count - i), sizeof(LookedUp), compare_hashes);
	}
}

/* Who only reads the table must not be able to keep others from importing. */
static bool
may_import(Oid relation)
{
	return !XactReadOnly &&
		(pg_class_aclcheck(relation, GetUserId(), ACL_INSERT) == ACLCHECK_OK ||
		 pg_attribute_aclcheck_all(relation, GetUserId(), ACL_INSERT, ACLMASK_ANY) == ACLCHECK_OK);
}

static void
lock_elements(const Import *import, Oid relation)
{
	bool		wanted[NLOCKS] = {false};

	for (int i = 0; i < import->count; i++)
		wanted[import->values[i].hash % NLOCKS] = true;
	for (int i = 0; i < NLOCKS; i++)
	{
		LOCKTAG		tag;

		SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, relation, i, LOCK_CLASS);
		if (wanted[i])
			(void) LockAcquire(&tag, ExclusiveLock, false, false);
	}
}

/* An array of some of the elements, as a parameter without domains. */
static Datum
array_of(const Import *import, const int *positions, int count)
{
	Datum	   *elements = palloc((count + 1) * sizeof(Datum));
	int16		length;
	bool		by_value;
	char		alignment;
	Datum		result;

	for (int i = 0; i < count; i++)
		elements[i] = import->values[positions[i]].value;
	get_typlenbyvalalign(import->type, &length, &by_value, &alignment);
	result = PointerGetDatum(construct_array(elements, count, import->lookup.type, length, by_value,
											 alignment));
	pfree(elements);
	return result;
}

/* So many elements can be compared with each row. */
#define FEW_ELEMENTS	100

/*
 * The join tells which elements the rows have.  "= ANY" lets another server find the rows; between
 * different types it would compare each row with each element.
 */
static char *
condition_of_leaf(const Import *import, const SetLeaf *leaf, const char *column, int count)
{
	const char *name = quote_identifier(column);
	char	   *any = "";

	if (get_rel_relkind(leaf->table) == RELKIND_FOREIGN_TABLE && (import->same_type || count <= FEW_ELEMENTS))
		any = psprintf(" AND t.%s OPERATOR(pg_catalog.=) ANY ($1)", name);
	return psprintf(" AS t WHERE t.%s OPERATOR(pg_catalog.=) u.e%s)", name, any);
}

/* Receives the numbers of the elements that rows have. */
typedef struct FoundReceiver
{
	DestReceiver receiver;
	Import	   *import;
	const int  *positions;		/* of the elements that the query looks for */
} FoundReceiver;

static bool
receive_found(TupleTableSlot *slot, DestReceiver *receiver)
{
	FoundReceiver *found = (FoundReceiver *) receiver;
	bool		isnull;
	Datum		n = slot_getattr(slot, 1, &isnull);

	Assert(!isnull);
	found->import->present[found->positions[DatumGetInt64(n) - 1]] = true;
	return true;
}

/* Looks up elements in a leaf. */
static void
look_up(Import *import, const SetLeaf *leaf, const char *column, const int *positions, int count)
{
	Oid			type = get_array_type(import->lookup.type);
	Datum		array = array_of(import, positions, count);
	QueryParameters parameters = {.count = 1, .types = &type, .values = &array};
	FoundReceiver found = {.receiver = *None_Receiver, .import = import, .positions = positions};

	found.receiver.receiveSlot = receive_found;
	run_query("SELECT u.n FROM pg_catalog.unnest($1) WITH ORDINALITY AS u (e, n) WHERE EXISTS (SELECT FROM ", leaf,
			  condition_of_leaf(import, leaf, column, count), &parameters, &found.receiver);
	pfree(DatumGetPointer(array));
}

/* Writes the positions of the elements that no row has been found to have. */
static int
list_absent(const Import *import, int *positions)
{
	int			count = 0;

	for (int i = 0; i < import->count; i++)
	{
		if (!import->present[i])
			positions[count++] = i;
	}
	return count;
}

static void
look_up_in_tree(Import *import, const SetTree *tree, const char *column, int *positions)
{
	for (int i = 0; i < tree->nleaves; i++)
	{
		const SetLeaf *leaf = &tree->leaves[i];
		int			count;

		CHECK_FOR_INTERRUPTS();
		count = shorten_candidates(leaf, &import->lookup, import->values, positions,
								   list_absent(import, positions));
		if (count > 0)
			look_up(import, leaf, column, positions, count);
	}
}

/* The elements that no row has, each once. */
static void
put_absent(const Import *import, ReturnSetInfo *result, int *positions)
{
	Oid			type = get_array_type(import->lookup.type);
	Datum		array = array_of(import, positions, list_absent(import, positions));
	QueryParameters parameters = {.count = 1, .types = &type, .values = &array};
	DestReceiver *receiver = CreateDestReceiver(DestTuplestore);

	SetTuplestoreDestReceiverParams(receiver, result->setResult,
									result->econtext->ecxt_per_query_memory, false, NULL, NULL);
	run_query("SELECT DISTINCT u.e FROM pg_catalog.unnest($1) AS u (e)", NULL, NULL, &parameters, receiver);
	receiver->rDestroy(receiver);
}

static void
import_elements(Import *import, Oid relation, const char *column, ReturnSetInfo *result)
{
	int		   *positions;
	SetTree		tree;

	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	positions = palloc(import->count * sizeof(int));
	tree = resolve_sets(relation, column);
	look_up_in_tree(import, &tree, column, positions);
	put_absent(import, result, positions);
	PopActiveSnapshot();
}

Datum
bloomset_new(PG_FUNCTION_ARGS)
{
	Oid			relation = PG_GETARG_OID(0);
	const char *column = NameStr(*PG_GETARG_NAME(1));
	SetTree		tree = tree_without_leaves(relation, column);
	Import		import;
	Datum	   *elements;

	require_new_snapshots();
	elements = read_elements(&import, PG_GETARG_ARRAYTYPE_P(2));
	prepare_lookup_of_elements(&import.lookup, &tree, import.type, fcinfo, 2);
	require_operator(&import.lookup, &tree);
	import.same_type = import.lookup.type == getBaseType(tree.value_type);
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	hash_elements(&import, elements);
	if (may_import(relation))
		lock_elements(&import, relation);
	import_elements(&import, relation, column, (ReturnSetInfo *) fcinfo->resultinfo);
	return (Datum) 0;
}
