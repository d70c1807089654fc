/*
 * server_fuzzer_calls.c
 *		The calls that an accepted filter meets, alone and with all stored ones.
 *
 * All calls of one kind go in a single statement.  Only if that fails are they
 * made in groups, and only the calls of a group that fails are made one by one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server_fuzzer.h"

/* Each stored filter goes to one of these tables. */
static const char *const storages[] = {"external", "compressed", "inline"};

#define NSTORAGES	3

static int
first_call(const Battery *battery)
{
	return battery->ngroups + 1;
}

static void
append_call(char **list, const char *sql)
{
	size_t		length = *list ? strlen(*list) : 0;

	*list = realloc(*list, length + strlen(sql) + 3);
	sprintf(*list + length, "%s%s", length > 0 ? ", " : "", sql);
}

static PGresult *
ask_calls(Fuzzer *fuzzer, const char *kind)
{
	char		sql[500];

	snprintf(sql, sizeof(sql), "SELECT sql, (SELECT string_agg(DISTINCT m[1], '' ORDER BY m[1]) "
			 "FROM regexp_matches(sql, '@(.)', 'g') AS m) COLLATE \"C\" AS uses "
			 "FROM fuzz.call WHERE kind = '%s' ORDER BY uses, sql COLLATE \"C\"", kind);
	return ask(fuzzer, sql, 0);
}

/* Calls that use the same kinds of arguments form a group. */
static void
load_battery(Fuzzer *fuzzer, Battery *battery)
{
	PGresult   *result = ask_calls(fuzzer, battery->kind);
	const char *group = "none yet";

	battery->ncalls = PQntuples(result);
	for (int i = 0; i < battery->ncalls; i++)
	{
		if (strcmp(group, PQgetvalue(result, i, 1)) != 0)
			battery->ngroups++;
		group = PQgetvalue(result, i, 1);
		if (battery->ngroups + battery->ncalls >= MAX_SLOTS)
			fatal(fuzzer, "too many calls");
		append_call(&battery->slots[0], PQgetvalue(result, i, 0));
		append_call(&battery->slots[battery->ngroups], PQgetvalue(result, i, 0));
		battery->group_of[i] = battery->ngroups;
		battery->group_size[battery->ngroups]++;
	}
	for (int i = 0; i < battery->ncalls; i++)
		append_call(&battery->slots[first_call(battery) + i], PQgetvalue(result, i, 0));
	if (battery->ncalls == 0)
		fatal(fuzzer, "no calls");
	printf("%d calls of kind %s in %d groups\n", battery->ncalls, battery->kind, battery->ngroups);
	PQclear(result);
}

/* Replaces the placeholders of sql. */
static char *
substitute(const char *sql, const char *filter, const char *row)
{
	size_t		room = 16 * strlen(sql) + 100;
	char	   *result = malloc(room);
	char	   *to = result;

	for (; *sql; sql++)
	{
		const char *arg = "FGEIPT";
		const char *found = *sql == '@' && sql[1] ? strchr(arg, sql[1]) : NULL;

		if (*sql == '@' && (sql[1] == 'f' || sql[1] == 'e'))
			to += sprintf(to, "%s.%s", row, sql[1] == 'f' ? "f" : "v");
		else if (found == arg)
			to += sprintf(to, "%s", filter);
		else if (found)
			to += sprintf(to, "$%d", (int) (found - arg) + 1);
		else
		{
			*to++ = *sql;
			continue;
		}
		sql++;
	}
	*to = '\0';
	return result;
}

static char *
load_list(Fuzzer *fuzzer, const char *kind)
{
	char		sql[300];
	char	   *list;
	PGresult   *result;

	snprintf(sql, sizeof(sql), "SELECT string_agg(sql, ', ' ORDER BY sql COLLATE \"C\") FROM fuzz.call "
			 "WHERE kind = '%s' AND sql !~ '@[A-Ze]'", kind);
	result = ask(fuzzer, sql, 0);
	list = substitute(PQgetvalue(result, 0, 0), "", "x");
	PQclear(result);
	return list;
}

void
load_calls(Fuzzer *fuzzer)
{
	static const char *const kinds[NBATTERIES] = {"scalar", "aggregate", "number", "sizing", "predicate"};

	for (int i = 0; i < NBATTERIES; i++)
	{
		Battery    *battery = &fuzzer->batteries[i];

		battery->index = (BatteryIndex) i;
		battery->kind = kinds[i];
		battery->stored = i == SCALAR_CALLS || i == NUMBER_CALLS;
		load_battery(fuzzer, battery);
	}
	fuzzer->aggregate_list = load_list(fuzzer, "aggregate");
	fuzzer->window_list = load_list(fuzzer, "window");
}

void
prepare_storing(Fuzzer *fuzzer)
{
	for (int i = 0; i < NSTORAGES; i++)
	{
		char		sql[500];

		snprintf(sql, sizeof(sql), "INSERT INTO fuzz.stored_%s SELECT $7, '%s', $1, $6, %s",
				 storages[i], storages[i], i < 2 ? "repeat('x', 2000)" : "NULL");
		prepare_about(fuzzer, storages[i], sql, 0);
	}
}

void
store_input(Fuzzer *fuzzer, Input *input)
{
	fuzzer->stored++;
	execute_about(fuzzer, SETUP, storages[input->number % NSTORAGES], input);
}

/* What a slot's list of calls selects from. */
static const char *
slot_source(const Battery *battery, Place place)
{
	if (battery->index == AGGREGATE_CALLS || battery->index == SIZING_CALLS)
		return "FROM (VALUES ($1, $3), ($2, $3), (NULL, NULL)) x (f, v)";
	return place == STORED ? "FROM fuzz.stored s, generate_series(1, $8) WHERE s.id = $7" : "";
}

char *
slot_sql(const Battery *battery, int slot, Oid type, Place place)
{
	char	   *list = substitute(battery->slots[slot], place == STORED ? "s.f" : "$1", "x");
	char	   *sql = malloc(strlen(list) + 1000);

	if (battery->index != PREDICATES)
		sprintf(sql, "SELECT hash_record_extended(ROW(%s), 0) %s", list, slot_source(battery, place));
	else
		sprintf(sql, strstr(battery->slots[slot], "@e") ? "SELECT count(*) FROM fuzz.elements_%u x WHERE %s"
				: "SELECT count(*) FROM (SELECT f, %u FROM fuzz.filters) x WHERE %s", type, list);
	free(list);
	return sql;
}

static void
execute_slot(Fuzzer *fuzzer, Battery *battery, int slot, Place place, Input *input)
{
	bool	   *prepared = &battery->prepared[place == STORED][slot][input->type];
	char		name[64];
	Pending    *pending;

	snprintf(name, sizeof(name), "%s %d %s %d", battery->kind, slot, place == STORED ? "stored" : "given",
			 input->type);
	if (!*prepared)
	{
		char	   *sql = slot_sql(battery, slot, fuzzer->types[input->type].oid, place);

		prepare_about(fuzzer, name, sql, input->type);
		free(sql);
		*prepared = true;
	}
	pending = execute_about(fuzzer, battery->index == PREDICATES ? EXTRA : CALL, name, input);
	pending->battery = battery;
	pending->slot = slot;
	pending->place = place;
	fuzzer->counts.calls += slot == 0 ? (uint64_t) battery->ncalls : 1;
}

/* What a group or its calls are made on, after all calls together have failed. */
static void
run_group(Fuzzer *fuzzer, Input *input, Battery *battery, int group, int round)
{
	const Result *result = &input->results[battery->index][group];

	if (round == 1)
		execute_slot(fuzzer, battery, group, DIRECT, input);
	else if (battery->stored && input->repeat > 0)
		execute_slot(fuzzer, battery, group, STORED, input);
	if (round == 1 || battery->group_size[group] == 1)
		return;
	for (int i = 0; result->outcome == FAILED && i < battery->ncalls; i++)
	{
		if (battery->group_of[i] == group)
			execute_slot(fuzzer, battery, first_call(battery) + i, DIRECT, input);
	}
}

/*
 * Round 0 makes all calls at once, as parameters.  If that succeeds, round 1 makes
 * them on the stored filter.  If it fails, round 1 makes them in groups, and round 2
 * makes the groups on the stored filter, and one by one the calls of those that fail.
 */
void
run_calls(Fuzzer *fuzzer, Input *input, BatteryIndex index, int round)
{
	Battery    *battery = &fuzzer->batteries[index];

	if (round == 0)
	{
		execute_slot(fuzzer, battery, 0, DIRECT, input);
		fuzzer->counts.batteries++;
	}
	else if (input->results[index][0].outcome == SUCCEEDED)
	{
		if (round == 1 && battery->stored && input->repeat > 0)
			execute_slot(fuzzer, battery, 0, STORED, input);
	}
	else
	{
		for (int group = 1; group < first_call(battery); group++)
			run_group(fuzzer, input, battery, group, round);
	}
}

/* A predicate as the condition of a join with the stored filters. */
static void
explain_join(Fuzzer *fuzzer, Input *input, Battery *battery, int slot)
{
	bool	   *joined = &battery->joined[slot][input->type];
	char		name[64];

	snprintf(name, sizeof(name), "join %d %d", slot, input->type);
	if (!*joined)
	{
		char	   *sql = slot_sql(battery, slot, fuzzer->types[input->type].oid, STORED);
		char	   *join = malloc(strlen(sql) + 100);
		char	   *where = strstr(sql, " WHERE ");

		sprintf(join, "EXPLAIN %.*s, fuzz.stored s%s", (int) (where - sql), sql, where);
		prepare_about(fuzzer, name, join, input->type);
		free(join);
		free(sql);
		*joined = true;
	}
	execute_about(fuzzer, EXTRA, name, input);
}

/* The filter as a constant, which the planner folds and estimates with. */
void
run_planned(Fuzzer *fuzzer, Input *input)
{
	Battery    *predicates = &fuzzer->batteries[PREDICATES];

	execute_slot(fuzzer, &fuzzer->batteries[SCALAR_CALLS], 0, PLANNED, input);
	execute_slot(fuzzer, &fuzzer->batteries[AGGREGATE_CALLS], 0, PLANNED, input);
	execute_slot(fuzzer, &fuzzer->batteries[NUMBER_CALLS], 0, PLANNED, input);
	if (fuzzer->types[input->type].class < 0)
		return;
	for (int i = 0; i < predicates->ncalls; i++)
	{
		execute_slot(fuzzer, predicates, first_call(predicates) + i, PLANNED, input);
		explain_join(fuzzer, input, predicates, first_call(predicates) + i);
	}
}

/* Aggregates by one process and by parallel ones. */
static void
compare_parallel(Fuzzer *fuzzer, const Pending *pending)
{
	char		sql[8000];
	char		serial[64] = "",
				parallel[64] = "";

	snprintf(sql, sizeof(sql), "SELECT sum(hash_record_extended(ROW(%s), 0)) OVER () FROM fuzz.stored x "
			 "GROUP BY key LIMIT 1", fuzzer->aggregate_list);
	ask_stored(fuzzer, sql, serial, sizeof(serial));
	ask_stored(fuzzer, "SET max_parallel_workers_per_gather = 2", NULL, 0);
	ask_stored(fuzzer, sql, parallel, sizeof(parallel));
	ask_stored(fuzzer, "SET max_parallel_workers_per_gather = 0", NULL, 0);
	if (strcmp(serial, parallel) != 0)
		finding(fuzzer, pending, "aggregates depend on the plan being parallel");
}

/*
 * Aggregates over the stored filters that combine, also over moving windows;
 * grouping and joining by equality.  Empties the tables.
 */
void
run_on_stored(Fuzzer *fuzzer)
{
	static const Pending pending = {.task = SETUP, .name = "all stored filters"};
	char		sql[8000];

	if (fuzzer->stored == 0)
		return;
	leave_pipeline(fuzzer);
	compare_parallel(fuzzer, &pending);
	snprintf(sql, sizeof(sql), "SELECT sum(hash_record_extended(h, 0)) FROM (SELECT ROW(%s) AS h "
			 "FROM fuzz.stored x WHERE how = 'external' "
			 "WINDOW w AS (PARTITION BY key ORDER BY id ROWS 2 PRECEDING)) q", fuzzer->window_list);
	ask_stored(fuzzer, sql, NULL, 0);
	if (ask_stored(fuzzer, "SELECT count(*) FROM (SELECT f FROM fuzz.stored GROUP BY f) a "
				   "JOIN (SELECT DISTINCT f FROM fuzz.stored) b ON a.f = b.f "
				   "HAVING count(*) <> (SELECT count(DISTINCT f::bytea) FROM fuzz.stored)", NULL, 0))
		finding(fuzzer, &pending, "grouping and joining by = loses or invents filters");
	ask_stored(fuzzer, "TRUNCATE fuzz.stored, fuzz.copied", NULL, 0);
	enter_pipeline(fuzzer);
	fuzzer->stored = 0;
}
