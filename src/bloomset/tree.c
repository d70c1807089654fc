/*
 * tree.c
 *		The bloomsets that answer for a relation with its partitions and children.
 *
 * A query reads all of them, so absence from the relation is absence from each.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "bloomset/access.h"
#include "bloomset/bloomset.h"
#include "bloomset/tree.h"
#include "bloomset/tree_cache.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "pg/index_method.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* What a search of the tree looks for. */
typedef struct Search
{
	const char *column;			/* or NULL */
	List	   *indexes;		/* else these */
	bool		found;			/* a set, even if it cannot answer */
	List	   *leaves;			/* SetLeaf */
	List	   *parents;		/* have children, or may get some */
	List	   *locked;			/* relations, apart from the one asked for */
} Search;

static bool
is_whole_column(Relation index, AttrNumber column)
{
	return index->rd_index->indnatts == 1 && index->rd_index->indkey.values[0] == column &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
}

/* Is an index of a table one of those that the search asks? */
static bool
is_searched(const Search *search, Relation table, Relation index)
{
	if (!is_bloomset(index))
		return false;
	if (search->column == NULL)
		return list_member_oid(search->indexes, RelationGetRelid(index));
	return is_whole_column(index, get_attnum(RelationGetRelid(table), search->column));
}

/* TimescaleDB keeps the compressed rows of a chunk, a child table, in another one. */
static bool
may_be_compressed(Relation table)
{
	char	   *schema = get_namespace_name(RelationGetNamespace(table));

	if (schema != NULL && strcmp(schema, "_timescaledb_internal") == 0)
		return true;
	return !table->rd_rel->relispartition &&
		OidIsValid(get_extension_oid("timescaledb", true)) && has_superclass(RelationGetRelid(table));
}

/* Do the table's rows lie in its own file, in the form of the heap access method? */
static bool
has_own_rows(Relation table)
{
	char		kind = table->rd_rel->relkind;

	return (kind == RELKIND_RELATION || kind == RELKIND_MATVIEW) &&
		table->rd_rel->relam == HEAP_TABLE_AM_OID && RelationIsPopulated(table) &&
		!may_be_compressed(table);
}

/* Can the process read the pages of a table's indexes? */
static bool
is_readable(Relation table)
{
	check_has_contents(table);
	return table->rd_rel->relpersistence != RELPERSISTENCE_TEMP || !IsParallelWorker();
}

/* The access method of an index may be ours only if it is not one of the server's. */
static bool
may_be_bloomset(Oid index)
{
	return access_method_of(index) >= FirstUnpinnedObjectId;
}

/* The searched indexes of a table, locked. */
static List *
searched_indexes(const Search *search, Relation table)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index;

		if (!may_be_bloomset(lfirst_oid(lc)))
			continue;
		index = index_open(lfirst_oid(lc), AccessShareLock);
		if (is_searched(search, table, index))
			result = lappend_oid(result, lfirst_oid(lc));
		index_close(index, NoLock);
	}
	return result;
}

/* Returns the leaf, or NULL if the table holds no rows itself. */
static SetLeaf *
add_table(Search *search, Relation table)
{
	List	   *indexes = searched_indexes(search, table);
	SetLeaf    *leaf;
	ListCell   *lc;

	search->found |= indexes != NIL;
	search->locked = list_concat(search->locked, indexes);
	if (table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return NULL;
	leaf = palloc0(sizeof(SetLeaf));
	leaf->table = RelationGetRelid(table);
	leaf->indexes = palloc((list_length(indexes) + 1) * sizeof(Oid));
	search->leaves = lappend(search->leaves, leaf);
	if (!has_own_rows(table) || !is_readable(table))
		return leaf;
	foreach(lc, indexes)
		leaf->indexes[leaf->nindexes++] = lfirst_oid(lc);
	return leaf;
}

/*
 * The children of a table, locked in the order of their OIDs, as the server does.  A child
 * may be visible before the invalidation of its parent's relhassubclass comes, which
 * find_inheritance_children() trusts.
 */
static List *
lock_children(Oid parent)
{
	Relation	catalog = table_open(InheritsRelationId, AccessShareLock);
	List	   *children = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	ScanKeyInit(&key, Anum_pg_inherits_inhparent, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(parent));
	scan = systable_beginscan(catalog, InheritsParentIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		children = lappend_oid(children, ((Form_pg_inherits) GETSTRUCT(tuple))->inhrelid);
	systable_endscan(scan);
	table_close(catalog, AccessShareLock);
	list_sort(children, list_oid_cmp);
	foreach(lc, children)
	{
		LockRelationOid(lfirst_oid(lc), AccessShareLock);
		/* it may have been dropped before the lock was granted */
		if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))))
		{
			UnlockRelationOid(lfirst_oid(lc), AccessShareLock);
			children = foreach_delete_current(children, lc);
		}
	}
	return children;
}

/*
 * Adds a locked table and what inherits from it.  Partitions that are being detached
 * are included, because older snapshots see their rows.
 */
static void
add_tree(Search *search, Oid relation, List **visited)
{
	Relation	table = table_open(relation, NoLock);
	SetLeaf    *leaf;
	ListCell   *lc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (RELATION_IS_OTHER_TEMP(table))
	{
		/* queries skip it, too */
		table_close(table, NoLock);
		return;
	}
	/* a partition has one parent, other children may have several */
	if (!table->rd_rel->relispartition)
		*visited = lappend_oid(*visited, relation);
	leaf = add_table(search, table);
	if (!table->rd_rel->relispartition || table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
	{
		List	   *children = lock_children(relation);

		if (leaf != NULL)
			leaf->has_children = children != NIL;
		search->parents = lappend_oid(search->parents, relation);
		search->locked = list_concat(search->locked, children);
		foreach(lc, children)
		{
			if (!list_member_oid(*visited, lfirst_oid(lc)))
				add_tree(search, lfirst_oid(lc), visited);
		}
	}
	table_close(table, NoLock);
}

static void
collect_leaves(const Search *search, SetTree *tree)
{
	ListCell   *lc;

	tree->leaves = palloc(Max(list_length(search->leaves), 1) * sizeof(SetLeaf));
	foreach(lc, search->leaves)
		tree->leaves[tree->nleaves++] = *(SetLeaf *) lfirst(lc);
	tree->parents = palloc((list_length(search->parents) + 1) * sizeof(Oid));
	foreach(lc, search->parents)
		tree->parents[tree->nparents++] = lfirst_oid(lc);
}

/* An index of the table only, or the index of all partitions. */
static void
search_index(Search *search, Oid index, Oid table)
{
	List	   *visited = NIL;
	Relation	relation;

	if (get_rel_relkind(index) == RELKIND_PARTITIONED_INDEX)
	{
		search->indexes = find_all_inheritors(index, NoLock, NULL);
		add_tree(search, table, &visited);
		return;
	}
	search->indexes = list_make1_oid(index);
	relation = table_open(table, NoLock);
	(void) add_table(search, relation);
	table_close(relation, NoLock);
}

/* The collation of a column decides which values are equal, even if its index has another. */
static void
set_value_type(SetTree *tree, Oid type, Oid collation)
{
	ElementType element;

	require_element_type(type, collation, &element);
	tree->value_type = type;
	tree->element_class = element.element_class;
}

static void
set_value_type_of_column(SetTree *tree, AttrNumber column)
{
	Oid			type;
	int32		typmod;
	Oid			collation;

	get_atttypetypmodcoll(tree->table, column, &type, &typmod, &collation);
	set_value_type(tree, type, collation);
}

static void
set_value_type_of_index(SetTree *tree, Oid index_oid)
{
	Relation	index = index_open(index_oid, AccessShareLock);
	AttrNumber	column = index->rd_index->indkey.values[0];

	if (column != InvalidAttrNumber)
		set_value_type_of_column(tree, column);
	else
		set_value_type(tree, TupleDescAttr(RelationGetDescr(index), 0)->atttypid,
					   index->rd_indcollation[0]);
	index_close(index, NoLock);
}

/* Finds and keeps the leaves of a relation whose table is locked. */
static void
search_leaves(SetTree *tree, Oid relation, AttrNumber number, const char *column)
{
	Search		search = {.column = column};
	List	   *visited = NIL;
	uint64		since = bloomset_changes;

	if (column == NULL)
		search_index(&search, relation, tree->table);
	else
		add_tree(&search, relation, &visited);
	if (!search.found)
		report_no_set(relation, column);
	collect_leaves(&search, tree);
	cache_tree(relation, number, tree, search.locked, since);
}

SetTree
resolve_sets(Oid relation, const char *column)
{
	SetTree		tree = {.table = relation};
	AttrNumber	number = InvalidAttrNumber;

	watch_changes();
	/* a lock that is held already would not do it */
	AcceptInvalidationMessages();
	if (column != NULL)
		number = lock_table_column(relation, column);
	else
	{
		tree.table = lock_table_of_index(&bloomset_method, relation);
		check_index_access(&bloomset_method, relation, tree.table);
	}
	if (!find_cached_tree(relation, number, &tree))
		search_leaves(&tree, relation, number, column);
	if (column != NULL)
		set_value_type_of_column(&tree, number);
	else
		set_value_type_of_index(&tree, relation);
	return tree;
}

SetTree
tree_without_leaves(Oid relation, const char *column)
{
	SetTree		tree = {.table = relation};

	set_value_type_of_column(&tree, lock_table_column(relation, column));
	return tree;
}

Relation
open_set(Oid oid)
{
	Relation	index = index_open(oid, NoLock);

	if (likely(bloomset_can_exclude(index)))
		return index;
	index_close(index, NoLock);
	return NULL;
}
