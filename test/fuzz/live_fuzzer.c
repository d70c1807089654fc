/*
 * live_fuzzer.c
 *		Mutated filters through a real connection, and every call on what the
 *		server accepts.
 *
 *		live_fuzzer SEED INPUTS DIRECTORY
 *
 * The database is the one that libpq's environment names, made ready by
 * live_setup.sql.  Bytes go in as binary and text parameters, arrays, casts and
 * COPY.  What is accepted meets all calls in the table fuzz.call as a parameter
 * under a generic plan.  It is also stored, out of line, compressed or inline;
 * there it meets aggregates, grouping and joins, and half of it all calls once
 * more.  Some become constants, which the planner folds and estimates with.
 * Only calls that take no filter are left to one in so many inputs.
 *
 * A finding is
 * - a lost connection, no answer, or statement_timeout;
 * - an SQLSTATE that hostile bytes have no reason to cause, or a warning;
 * - bytes accepted that doc/format.md refuses, or the reverse; bytes accepted
 *   that do not come out as they went in;
 * - a call whose outcome depends on where the same filter was kept, or on the
 *   kind of plan;
 * - a call that makes a filter which the type itself refuses.
 *
 * All calls of one kind go in a single statement; only if that fails are they
 * made in smaller groups, and then one by one.  Statements travel in libpq's
 * pipeline mode, each in a transaction of its own.  All depends on SEED alone.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libpq-fe.h"
#include "live_mutate.h"

#define WINDOW			64
#define MAX_FINDINGS	10
#define MAX_SLOTS		128		/* of a battery */
#define MAX_TYPES		64
#define NBATTERIES		5
#define MAX_SEEDS		1024
#define POOL_VALUE_MAX	8192	/* bytes of what joins the pool */
#define MEDIUM_MAX		40000	/* bytes of what the server fetches by slices, but not for long */
#define BATTERY_BITS	(UINT64_C(1) << 27) /* of what meets the calls: the results of
											 * one battery are in memory together */
#define NO_ANSWER_MS	900000
#define STORED_MAX		2048	/* filters in the tables before they are emptied */

/* ---- what the server told us to do ---- */

typedef struct ElementType
{
	Oid			oid;
	char	   *name;
	int			class;
	char	  **literals;
	int			nliterals;
} ElementType;

static ElementType types[MAX_TYPES];
static int	ntypes;

static Oid	filter_oid,
			filter_array_oid;

static Bytes pool[2 * MAX_SEEDS];
static int	npool;
static Bytes big[MAX_SEEDS];
static int	nbig,
			nmedium;		/* of the big ones, which are in order of size */

/*
 * Calls that are made together, on the same arguments: slot 0 all of them, then
 * groups that use the same arguments, then single calls.
 */
typedef struct Battery
{
	const char *kind;			/* in fuzz.call */
	int			index;
	bool		stored;			/* are made on stored filters, too */
	char	   *slots[MAX_SLOTS];	/* lists of calls, with placeholders */
	int			ngroups;
	int			ncalls;
	int			group_of[MAX_SLOTS];
	int			group_size[MAX_SLOTS];
} Battery;

static Battery scalars = {.kind = "scalar", .index = 0, .stored = true};
static Battery aggregates = {.kind = "aggregate", .index = 1};
static Battery numbers = {.kind = "number", .index = 2, .stored = true};
static Battery sizing = {.kind = "sizing", .index = 3};
static Battery predicates = {.kind = "predicate", .index = 4};

/* ---- one input ---- */

typedef enum Way
{
	BINARY, TEXT, BYTEA_CAST, TEXT_CAST, ARRAY, SOFT, COPY_BINARY, COPY_TEXT
} Way;

static const char *const way_names[] = {
	"binary parameter", "text parameter", "cast from bytea", "cast from text", "array",
	"pg_input_is_valid", "COPY BINARY", "COPY"
};

typedef enum Outcome
{
	NOT_RUN, SUCCEEDED, FAILED
} Outcome;

typedef struct Result
{
	Outcome		outcome;
	uint8_t		hash[8];
} Result;

typedef struct Input
{
	uint64_t	number;
	Way			way;
	Bytes		sent;			/* what went to the server */
	Bytes		value;			/* the filter that this means */
	bool		valid;			/* in our opinion */
	bool		accepted;
	Bytes		sibling;
	int			type;
	const char *element;		/* NULL for SQL's NULL */
	const char *integer;
	const char *rate;
	const char *text;
	int			repeat;			/* of the calls on what is stored; 0: none */
	bool		planned;		/* is to meet the planner as a constant, too */
	bool		sized;			/* is to meet the calls about sizes */
	Result		results[NBATTERIES][MAX_SLOTS];
} Input;

static Input window[WINDOW];

/* ---- counts ---- */

static uint64_t inputs,
			accepted,
			oversized,
			batteries,
			statements,
			calls;
static uint64_t per_way[8];
static uint64_t digest = UINT64_C(0xcbf29ce484222325);
static int	findings;

typedef struct ErrorCount
{
	char		state[6];
	bool		on_input;
	uint64_t	count;
	char		message[160];
} ErrorCount;

static ErrorCount errors[100];
static int	nerrors;

/* ---- statements under way ---- */

typedef enum Task
{
	SETUP, ACCEPT, CALL, EXTRA
} Task;

typedef enum Place
{
	DIRECT, STORED, PLANNED
} Place;

/* A statement whose result is due. */
typedef struct Pending
{
	Task		task;
	Input	   *input;
	Battery    *battery;
	int			slot;
	Place		place;
	char		name[64];
} Pending;

#define MAX_PENDING 256

static Pending queue[MAX_PENDING];
static int	queue_head,
			queue_length;
static size_t queue_bytes;
static Pending *current;		/* whose result is being read */

static PGconn *conn;
static const char *directory;
static uint64_t fuzz_seed;
static uint64_t next_id;
static uint64_t stored;

/* ---- findings ---- */

static void
save_bytes(int number, const char *what, const Bytes *bytes)
{
	char		path[4096];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/finding-%d.%s", directory, number, what);
	file = fopen(path, "wb");
	if (file == NULL || fwrite(bytes->data, 1, bytes->size, file) != bytes->size)
		fprintf(stderr, "could not write %s: %s\n", path, strerror(errno));
	if (file != NULL)
		fclose(file);
}

static char *slot_sql(const Battery *battery, int slot, int type, Place place);

static void
finding(const Pending *pending, const char *message)
{
	const Input *input = pending ? pending->input : NULL;

	findings++;
	printf("FINDING %d: %s\n", findings, message);
	if (pending)
		printf("  statement: %s\n", pending->name);
	if (input)
	{
		printf("  input %" PRIu64 " of seed %" PRIu64 ", by %s, %zu bytes; element %s of type %s, "
			   "integer %s, rate %s, text %s\n",
			   input->number, fuzz_seed, way_names[input->way], input->value.size,
			   input->element ? input->element : "NULL", types[input->type].name,
			   input->integer, input->rate, input->text);
		printf("  saved as finding-%d.input, .filter and .other\n", findings);
		save_bytes(findings, "input", &input->sent);
		save_bytes(findings, "filter", &input->value);
		save_bytes(findings, "other", &input->sibling);
	}
	if (pending && pending->battery)
	{
		char	   *sql = slot_sql(pending->battery, pending->slot, input->type, pending->place);

		printf("  %s\n", sql);
		free(sql);
	}
	fflush(stdout);
}

static void
fatal(const char *message)
{
	printf("live_fuzzer: %s: %s\n", message, conn ? PQerrorMessage(conn) : "");
	exit(2);
}

static void
on_notice(void *arg, const PGresult *result)
{
	char		message[400];

	(void) arg;
	snprintf(message, sizeof(message), "a warning: %s", PQresultErrorMessage(result));
	finding(current, message);
}

/* Takes note of an error; true if it is one that may happen. */
static bool
count_error(const PGresult *result, bool on_input)
{
	static const char *const refused[] = {"22P02", "22P03", "22021", "22P05", NULL};
	static const char *const failed[] = {"42804", "22023", "54000", "0A000", "22003", NULL};
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *const *allowed = on_input ? refused : failed;
	int			i;

	if (state == NULL)
		return false;
	for (i = 0; i < nerrors; i++)
	{
		if (strcmp(errors[i].state, state) == 0 && errors[i].on_input == on_input)
			break;
	}
	if (i == nerrors && nerrors < 100)
	{
		snprintf(errors[i].state, sizeof(errors[i].state), "%s", state);
		errors[i].on_input = on_input;
		snprintf(errors[i].message, sizeof(errors[i].message), "%s", message ? message : "");
		nerrors++;
	}
	errors[i].count++;
	for (; *allowed; allowed++)
	{
		if (strcmp(*allowed, state) == 0)
			return true;
	}
	return false;
}

/* ---- reading results ---- */

static void
handle_accept(const Pending *pending, const PGresult *result)
{
	Input	   *input = pending->input;
	bool		ok = PQresultStatus(result) == PGRES_TUPLES_OK;

	if (!ok && !count_error(result, true))
		finding(pending, PQresultErrorMessage(result));
	if (ok && input->way == SOFT)
		ok = PQgetvalue(result, 0, 0)[0] != 0;
	else if (ok && ((size_t) PQgetlength(result, 0, 0) != input->value.size ||
					memcmp(PQgetvalue(result, 0, 0), input->value.data, input->value.size) != 0))
		finding(pending, "accepted bytes come out changed");
	if (ok != input->valid)
		finding(pending, ok ? "accepted what doc/format.md refuses" : "refused what doc/format.md accepts");
	input->accepted = ok;
}

/* The outcome of the same calls as first made, which all other places must have. */
static Result *
result_of(const Pending *pending)
{
	return &pending->input->results[pending->battery->index][pending->slot];
}

static void
handle_call(const Pending *pending, const PGresult *result)
{
	bool		ok = PQresultStatus(result) == PGRES_TUPLES_OK;
	Result	   *known = result_of(pending);
	int			rows = PQntuples(result);

	if (!ok && !count_error(result, false))
		finding(pending, PQresultErrorMessage(result));
	if (pending->place == DIRECT)
	{
		known->outcome = ok ? SUCCEEDED : FAILED;
		if (ok)
			memcpy(known->hash, PQgetvalue(result, 0, 0), 8);
		return;
	}
	if (ok != (known->outcome == SUCCEEDED))
	{
		finding(pending, ok ? "succeeds, but failed with the filter as a parameter"
				: "fails, but succeeded with the filter as a parameter");
		return;
	}
	if (ok && rows != (pending->place == STORED ? pending->input->repeat : 1))
		finding(pending, "gives another number of rows");
	for (int i = 0; ok && i < rows; i++)
	{
		if (memcmp(PQgetvalue(result, i, 0), known->hash, 8) != 0)
		{
			finding(pending, "gives another result than with the filter as a parameter");
			break;
		}
	}
}

static void
handle(const Pending *pending, const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	switch (pending->task)
	{
		case ACCEPT:
			handle_accept(pending, result);
			break;
		case CALL:
			handle_call(pending, result);
			break;
		case EXTRA:				/* may fail, but not in any way */
			if (status == PGRES_FATAL_ERROR && !count_error(result, false))
				finding(pending, PQresultErrorMessage(result));
			break;
		case SETUP:
			if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
				finding(pending, PQresultErrorMessage(result));
			break;
	}
	if (findings >= MAX_FINDINGS)
	{
		printf("live_fuzzer: stopping after %d findings\n", findings);
		exit(1);
	}
}

/* Waits until a result can be read without blocking, sending what is left to send. */
static void
await_result(void)
{
	while (PQisBusy(conn))
	{
		struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};
		int			ready;

		if (PQflush(conn) == 1)
			fd.events |= POLLOUT;
		ready = poll(&fd, 1, NO_ANSWER_MS);
		if (ready == 0)
		{
			finding(current, "no answer, though statement_timeout has long passed");
			exit(1);
		}
		if (ready < 0 && errno != EINTR)
			fatal("poll");
		if (!PQconsumeInput(conn))
		{
			finding(current, PQerrorMessage(conn));
			exit(1);
		}
	}
}

/* Reads all results that are due. */
static void
collect(void)
{
	while (queue_length > 0)
	{
		PGresult   *result;

		current = &queue[queue_head];
		await_result();
		result = PQgetResult(conn);
		if (result == NULL && PQstatus(conn) != CONNECTION_BAD)
			continue;
		if (result == NULL || PQstatus(conn) == CONNECTION_BAD)
		{
			finding(current, PQerrorMessage(conn));
			exit(1);
		}
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
		{
			queue_head = (queue_head + 1) % MAX_PENDING;
			queue_length--;
		}
		else
			handle(current, result);
		PQclear(result);
	}
	current = NULL;
	queue_bytes = 0;
}

/* For what cannot be part of a pipeline. */
static void
leave_pipeline(void)
{
	collect();
	PQsetnonblocking(conn, 0);
	PQexitPipelineMode(conn);
}

static void
enter_pipeline(void)
{
	current = NULL;
	if (!PQenterPipelineMode(conn) || PQsetnonblocking(conn, 1) != 0)
	{
		finding(NULL, PQerrorMessage(conn));
		exit(1);
	}
}

/* ---- sending ---- */

/* Room for one more statement in the queue. */
static Pending *
push(Task task, Input *input, const char *name, size_t size)
{
	Pending    *pending;

	if (queue_length + 2 >= MAX_PENDING || queue_bytes > 512 * 1024)
		collect();
	queue_bytes += size + 200;
	pending = &queue[(queue_head + queue_length++) % MAX_PENDING];
	memset(pending, 0, sizeof(*pending));
	pending->task = task;
	pending->input = input;
	snprintf(pending->name, sizeof(pending->name), "%s", name);
	statements++;
	return pending;
}

static void
sync_pipeline(int sent)
{
	if (!sent || !PQpipelineSync(conn))
	{
		current = queue_length > 0 ? &queue[queue_head] : NULL;
		finding(current, PQerrorMessage(conn));
		exit(1);
	}
}

static void
run(const char *sql)
{
	push(SETUP, NULL, sql, 0);
	sync_pipeline(PQsendQueryParams(conn, sql, 0, NULL, NULL, NULL, NULL, 1));
}

static void
prepare(const char *name, const char *sql, int nparams, const Oid *param_types)
{
	push(SETUP, NULL, name, strlen(sql));
	sync_pipeline(PQsendPrepare(conn, name, sql, nparams, param_types));
}

/* The arguments of every statement about an accepted filter. */
enum
{
	ARG_FILTER, ARG_OTHER, ARG_ELEMENT, ARG_INTEGER, ARG_RATE, ARG_TEXT, ARG_ID, ARG_REPEAT, NARGS
};

static void
prepare_about(const char *name, const char *sql, int type)
{
	Oid			arg_types[NARGS] = {filter_oid, filter_oid, types[type].oid, 20, 701, 25, 20, 23};

	prepare(name, sql, NARGS, arg_types);
}

/*
 * About a filter, only to store it (SETUP): that takes no element, and for text
 * the key that says what it combines with.
 */
static Pending *
execute_about(Task task, const char *name, Input *input)
{
	char		id[32],
				repeat[32],
				key[100];
	const char *values[NARGS] = {
		(char *) input->value.data, (char *) input->sibling.data,
		task == SETUP ? NULL : input->element,	/* of whatever type */
		input->integer, input->rate, task == SETUP ? key : input->text, id, repeat
	};
	int			lengths[NARGS] = {(int) input->value.size, (int) input->sibling.size};
	int			formats[NARGS] = {1, 1};
	Pending    *pending;

	snprintf(id, sizeof(id), "%" PRIu64, next_id + (uint64_t) (input - window));
	snprintf(repeat, sizeof(repeat), "%d", input->repeat);
	make_key(&input->value, key, sizeof(key));
	pending = push(task, input, name, input->value.size + input->sibling.size);
	sync_pipeline(PQsendQueryPrepared(conn, name, NARGS, values, lengths, formats, 1));
	return pending;
}

/* ---- the statements of a battery ---- */

/* Puts what the placeholders stand for into sql. */
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
slot_sql(const Battery *battery, int slot, int type, Place place)
{
	char	   *list = substitute(battery->slots[slot], place == STORED ? "s.f" : "$1", "x");
	char	   *sql = malloc(strlen(list) + 1000);

	if (battery == &predicates)
		sprintf(sql, strstr(battery->slots[slot], "@e") ? "SELECT count(*) FROM fuzz.elements_%u x WHERE %s"
				: "SELECT count(*) FROM (SELECT f, %u FROM fuzz.filters) x WHERE %s", types[type].oid, list);
	else
		sprintf(sql, "SELECT hash_record_extended(ROW(%s), 0) %s", list,
				battery == &aggregates || battery == &sizing ? "FROM (VALUES ($1, $3), ($2, $3), (NULL, NULL)) x (f, v)"
				: place == STORED ? "FROM fuzz.stored s, generate_series(1, $8) WHERE s.id = $7" : "");
	free(list);
	return sql;
}

static void
execute_slot(Battery *battery, int slot, Place place, Input *input)
{
	static bool prepared[NBATTERIES][2][MAX_SLOTS][MAX_TYPES];
	char		name[64];
	Pending    *pending;

	snprintf(name, sizeof(name), "%s %d %s %d", battery->kind, slot, place == STORED ? "stored" : "given",
			 input->type);
	if (!prepared[battery->index][place == STORED][slot][input->type])
	{
		char	   *sql = slot_sql(battery, slot, input->type, place);

		prepare_about(name, sql, input->type);
		free(sql);
		prepared[battery->index][place == STORED][slot][input->type] = true;
	}
	pending = execute_about(battery == &predicates ? EXTRA : CALL, name, input);
	pending->battery = battery;
	pending->slot = slot;
	pending->place = place;
	calls += slot == 0 ? (uint64_t) battery->ncalls : 1;
}

static int
first_call(const Battery *battery)
{
	return battery->ngroups + 1;
}

/* ---- rounds of a window ---- */

static const char *const accept_sql[] = {
	"SELECT $1", "SELECT $1", "SELECT $1::bloomfilter", "SELECT $1::bloomfilter", "SELECT $1[1]",
	"SELECT pg_input_is_valid($1, 'bloomfilter')"
};

/* The tables of what is stored: each filter goes to one of them. */
static const char *const storages[] = {"external", "compressed", "inline"};

#define NSTORAGES	3

static void
prepare_accepting(void)
{
	Oid			oids[] = {filter_oid, filter_oid, 17, 25, filter_array_oid, 25};

	for (int way = BINARY; way <= (PQserverVersion(conn) >= 160000 ? SOFT : ARRAY); way++)
		prepare(way_names[way], accept_sql[way], 1, &oids[way]);
	for (int i = 0; i < NSTORAGES; i++)
	{
		char		sql[500];

		snprintf(sql, sizeof(sql), "INSERT INTO fuzz.stored_%s SELECT $7, '%s', $1, $6, %s",
				 storages[i], storages[i], i < 2 ? "repeat('x', 2000)" : "NULL");
		prepare_about(storages[i], sql, 0);
	}
}

static void
send_input(Input *input)
{
	const char *values[] = {(char *) input->sent.data};
	int			lengths[] = {(int) input->sent.size};
	int			formats[] = {input->way == BINARY || input->way == BYTEA_CAST || input->way == ARRAY};

	push(ACCEPT, input, way_names[input->way], input->sent.size);
	sync_pipeline(PQsendQueryPrepared(conn, way_names[input->way], 1, values, lengths, formats, 1));
}

static void
put_network32(Bytes *to, uint32_t value)
{
	uint8_t		bytes[] = {(uint8_t) (value >> 24), (uint8_t) (value >> 16), (uint8_t) (value >> 8), (uint8_t) value};

	append_bytes(to, bytes, 4);
}

/* A file of one row for COPY. */
static void
make_copy_file(const Input *input, Bytes *file)
{
	static const char signature[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
	static const char plain[] = "\\\n\t\r";
	static const char letter[] = "\\ntr";

	if (input->way == COPY_BINARY)
	{
		append_bytes(file, signature, 19);
		append_bytes(file, "\0\1", 2);
		put_network32(file, (uint32_t) input->sent.size);
		append_bytes(file, input->sent.data, input->sent.size);
		append_bytes(file, "\377\377", 2);
		return;
	}
	for (size_t i = 0; i < input->sent.size; i++)
	{
		const char *special = strchr(plain, input->sent.data[i]);

		if (special != NULL)
			append_bytes(file, "\\", 1);
		append_bytes(file, special ? (const void *) &letter[special - plain] : &input->sent.data[i], 1);
	}
	append_bytes(file, "\n", 1);
}

static void
copy_input(Input *input)
{
	Pending		pending = {.task = ACCEPT, .input = input, .name = "COPY"};
	Bytes		file = {0};
	PGresult   *result;

	leave_pipeline();
	current = &pending;
	make_copy_file(input, &file);
	PQclear(PQexec(conn, input->way == COPY_BINARY ? "COPY fuzz.copied FROM STDIN BINARY"
				   : "COPY fuzz.copied FROM STDIN"));
	if (PQputCopyData(conn, (char *) file.data, (int) file.size) != 1 || PQputCopyEnd(conn, NULL) != 1)
		finding(&pending, PQerrorMessage(conn));
	result = PQgetResult(conn);
	input->accepted = PQresultStatus(result) == PGRES_COMMAND_OK;
	if (!input->accepted && !count_error(result, true))
		finding(&pending, PQresultErrorMessage(result));
	if (PQstatus(conn) == CONNECTION_BAD)
		exit(1);
	if (input->accepted != input->valid)
		finding(&pending, input->accepted ? "accepted what doc/format.md refuses" : "refused what doc/format.md accepts");
	PQclear(result);
	while ((result = PQgetResult(conn)) != NULL)
		PQclear(result);
	free(file.data);
	enter_pipeline();
}

/* Round 0: all calls at once. Round 1: on what is stored, or in groups. Round 2: one by one. */
static void
run_calls(Input *input, Battery *battery, int round)
{
	const Result *results = input->results[battery->index];
	int			calls_from = first_call(battery);

	if (round == 0)
	{
		execute_slot(battery, 0, DIRECT, input);
		batteries++;
		return;
	}
	if (results[0].outcome == SUCCEEDED)
	{
		if (round == 1 && battery->stored && input->repeat > 0)
			execute_slot(battery, 0, STORED, input);
		return;
	}
	for (int group = 1; group < calls_from; group++)
	{
		if (round == 1)
			execute_slot(battery, group, DIRECT, input);
		else if (battery->stored && input->repeat > 0)
			execute_slot(battery, group, STORED, input);
		for (int i = 0; round == 2 && results[group].outcome == FAILED && i < battery->ncalls; i++)
		{
			if (battery->group_of[i] == group && battery->group_size[group] > 1)
				execute_slot(battery, calls_from + i, DIRECT, input);
		}
	}
}

/* The filter as a constant, which the planner computes and estimates with. */
static void
run_planned(Input *input)
{
	char		name[64];

	execute_slot(&scalars, 0, PLANNED, input);
	execute_slot(&aggregates, 0, PLANNED, input);
	execute_slot(&numbers, 0, PLANNED, input);
	if (types[input->type].class < 0)
		return;
	for (int i = first_call(&predicates); i < first_call(&predicates) + predicates.ncalls; i++)
	{
		static bool joined[MAX_SLOTS][MAX_TYPES];

		execute_slot(&predicates, i, PLANNED, input);
		snprintf(name, sizeof(name), "join %d %d", i, input->type);
		if (!joined[i][input->type])
		{
			char	   *sql = slot_sql(&predicates, i, input->type, STORED);
			char	   *join = malloc(strlen(sql) + 100);
			char	   *where = strstr(sql, " WHERE ");

			sprintf(join, "EXPLAIN %.*s, fuzz.stored s%s", (int) (where - sql), sql, where);
			prepare_about(name, join, input->type);
			free(join);
			free(sql);
			joined[i][input->type] = true;
		}
		execute_about(EXTRA, name, input);
	}
}

/* ---- all that is stored, as a whole ---- */

static char *aggregate_list;	/* of aggregates over nothing but filters */
static char *window_list;		/* the same as window functions */

/* Runs a statement outside the pipeline; true if it gives a row, the first field of which is copied. */
static bool
ask_stored(const char *sql, char *field, size_t size)
{
	Pending		pending = {.task = SETUP, .name = "all stored filters"};
	PGresult   *result;
	bool		found;

	current = &pending;
	result = PQexec(conn, sql);
	statements++;
	handle(&pending, result);
	if (PQstatus(conn) == CONNECTION_BAD)
		exit(1);
	found = PQntuples(result) > 0;
	if (found && field != NULL)
		snprintf(field, size, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	return found;
}

/*
 * Aggregates over the stored filters that go together: by one process, by
 * parallel ones and over moving windows; grouping and joining by equality.
 */
static void
run_on_stored(void)
{
	static const Pending pending = {.task = SETUP, .name = "all stored filters"};
	char		sql[8000];
	char		serial[64] = "",
				parallel[64] = "";

	if (stored == 0)
		return;
	leave_pipeline();
	snprintf(sql, sizeof(sql), "SELECT sum(hash_record_extended(ROW(%s), 0)) OVER () FROM fuzz.stored x "
			 "GROUP BY key LIMIT 1", aggregate_list);
	ask_stored(sql, serial, sizeof(serial));
	ask_stored("SET max_parallel_workers_per_gather = 2", NULL, 0);
	ask_stored(sql, parallel, sizeof(parallel));
	ask_stored("SET max_parallel_workers_per_gather = 0", NULL, 0);
	if (strcmp(serial, parallel) != 0)
		finding(&pending, "aggregates depend on the plan being parallel");

	snprintf(sql, sizeof(sql), "SELECT sum(hash_record_extended(h, 0)) FROM (SELECT ROW(%s) AS h "
			 "FROM fuzz.stored x WHERE how = 'external' "
			 "WINDOW w AS (PARTITION BY key ORDER BY id ROWS 2 PRECEDING)) q", window_list);
	ask_stored(sql, NULL, 0);
	if (ask_stored("SELECT count(*) FROM (SELECT f FROM fuzz.stored GROUP BY f) a "
				   "JOIN (SELECT DISTINCT f FROM fuzz.stored) b ON a.f = b.f "
				   "HAVING count(*) <> (SELECT count(DISTINCT f::bytea) FROM fuzz.stored)", NULL, 0))
		finding(&pending, "grouping and joining by = loses or invents filters");
	ask_stored("TRUNCATE fuzz.stored, fuzz.copied", NULL, 0);
	enter_pipeline();
	stored = 0;
}

/* ---- making inputs ---- */

static const char *
draw_text(Random *random, const char *const *usual, const char *const *odd)
{
	const char *const *from = one_in(random, 12) ? odd : usual;
	int			n = 0;

	while (from[n])
		n++;
	return from[below(random, (uint64_t) n)];
}

static void
draw_arguments(Input *input, Random *random)
{
	static const char *const integers[] = {"1", "2", "10", "1000", "100000", NULL};
	static const char *const odd_integers[] = {
		"0", "-1", "2147483647", "2147483648", "-2147483648", "9223372036854775807",
		"-9223372036854775808", "9007199254740993", "1000000000", NULL
	};
	static const char *const rates[] = {"0.5", "0.1", "0.01", "0.001", "1e-6", "1e-9", NULL};
	static const char *const odd_rates[] = {
		"0", "-0", "1", "-1", "NaN", "Infinity", "-Infinity", "5e-324", "0.50000001", "0.9999999999999999",
		"9.9999e-10", "1e308", NULL
	};
	static const char *const layouts[] = {"blocked", "classic", NULL};
	static const char *const odd_layouts[] = {"", "BLOCKED", "blocked ", "clas", "東京", "%s%n", NULL};
	int			class = (int) filter_class(&input->value);
	const ElementType *type;

	input->type = (int) below(random, (uint64_t) ntypes);
	if (!one_in(random, 30))
	{
		while (types[input->type].class < 0 || (class != 0 && types[input->type].class != class))
			input->type = (input->type + 1) % ntypes;
	}
	type = &types[input->type];
	input->element = one_in(random, 40) ? NULL : type->literals[below(random, (uint64_t) type->nliterals)];
	input->integer = draw_text(random, integers, odd_integers);
	input->rate = draw_text(random, rates, odd_rates);
	input->text = draw_text(random, layouts, odd_layouts);
	input->repeat = one_in(random, 8) ? 3 : (int) below(random, 2);
	input->planned = one_in(random, 64);
	input->sized = one_in(random, 64);

	if (one_in(random, 12))
		set_bytes(&input->sibling, input->value.data, input->value.size);
	else
		make_sibling(&input->value, &input->sibling, random);
	for (int tries = 0; tries < 20 && one_in(random, 30); tries++)
	{
		const Bytes *other = &pool[below(random, (uint64_t) npool)];

		if (is_filter(other->data, other->size))
			set_bytes(&input->sibling, other->data, other->size);
	}
}

static Way
draw_way(Random *random, bool first)
{
	static const Way ways[] = {
		BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY, BINARY,
		TEXT, TEXT, TEXT, TEXT, TEXT, BYTEA_CAST, BYTEA_CAST, TEXT_CAST, ARRAY
	};
	Way			way = ways[below(random, sizeof(ways) / sizeof(ways[0]))];

	if (first)
		return one_in(random, 2) ? COPY_BINARY : COPY_TEXT;
	return way == TEXT_CAST && PQserverVersion(conn) >= 160000 && one_in(random, 2) ? SOFT : way;
}

/* From the filter to what goes to the server, and what it should think of that. */
static void
encode_input(Input *input, Random *random)
{
	switch (input->way)
	{
		case BINARY:
		case BYTEA_CAST:
		case COPY_BINARY:
			set_bytes(&input->sent, input->value.data, input->value.size);
			input->valid = is_filter(input->value.data, input->value.size);
			break;
		case ARRAY:
			input->sent.size = 0;
			put_network32(&input->sent, 1);
			put_network32(&input->sent, 0);
			put_network32(&input->sent, filter_oid);
			put_network32(&input->sent, 1);
			put_network32(&input->sent, 1);
			put_network32(&input->sent, (uint32_t) input->value.size);
			append_bytes(&input->sent, input->value.data, input->value.size);
			input->valid = is_filter(input->value.data, input->value.size);
			break;
		case COPY_TEXT:
		case TEXT:
		case TEXT_CAST:
		case SOFT:
			make_text(&input->value, &input->sent, random);
			input->valid = is_filter_text(&input->sent, &input->value);
			break;
	}
}

/* FNV-1a */
static void
add_to_digest(const Bytes *bytes)
{
	for (size_t i = 0; i < bytes->size; i++)
		digest = (digest ^ bytes->data[i]) * UINT64_C(0x100000001b3);
}

static void
make_input(Input *input, uint64_t number, bool first)
{
	Random		random = {fuzz_seed * UINT64_C(0xD1342543DE82EF95) + number};
	const Bytes *base = &pool[below(&random, (uint64_t) npool)];
	const Bytes *other = &pool[below(&random, (uint64_t) npool)];

	if (one_in(&random, 4000))
		base = &big[below(&random, (uint64_t) nbig)];
	else if (one_in(&random, 200))
		base = &big[below(&random, (uint64_t) nmedium)];
	input->number = number;
	input->way = draw_way(&random, first);
	input->accepted = false;
	set_bytes(&input->value, base->data, base->size);
	mutate(&input->value, other, &random);
	encode_input(input, &random);
	per_way[input->way]++;
	add_to_digest(input->way == ARRAY ? &input->value : &input->sent);	/* an array names an OID */

	memset(input->results, 0, sizeof(input->results));
	if (input->valid)
	{
		draw_arguments(input, &random);
		if (input->value.size <= POOL_VALUE_MAX && one_in(&random, 8))
		{
			Bytes	   *to = npool < 2 * MAX_SEEDS ? &pool[npool++] : &pool[below(&random, 2 * MAX_SEEDS)];

			set_bytes(to, input->value.data, input->value.size);
		}
	}
}

static void
run_window(uint64_t first, int count)
{
	static const char *const encodings[] = {"LATIN1", "SJIS", "EUC_JP", "GB18030", "WIN1251", "SQL_ASCII"};
	bool		foreign = first / WINDOW % 8 == 7;
	char		sql[100];

	for (int i = 0; i < count; i++)
		make_input(&window[i], first + (uint64_t) i, i == 0 && first / WINDOW % 4 == 0);
	snprintf(sql, sizeof(sql), "SET client_encoding = '%s'", encodings[first / WINDOW / 8 % 6]);
	if (foreign)
		run(sql);
	for (int i = 0; i < count; i++)
	{
		if (window[i].way >= COPY_BINARY)
			copy_input(&window[i]);
		else
			send_input(&window[i]);
	}
	if (foreign)
		run("SET client_encoding = 'UTF8'");
	collect();
	inputs += (uint64_t) count;

	for (int round = 0; round < 3; round++)
	{
		for (int i = 0; i < count; i++)
		{
			if (!window[i].accepted || !window[i].valid)
				continue;
			accepted += round == 0;
			if (filter_bits(&window[i].value) > BATTERY_BITS)
			{
				oversized += round == 0;
				continue;
			}
			if (round == 0)
			{
				stored++;
				execute_about(SETUP, storages[window[i].number % NSTORAGES], &window[i]);
			}
			run_calls(&window[i], &scalars, round);
			run_calls(&window[i], &aggregates, round);
			run_calls(&window[i], &numbers, round);
			if (window[i].sized)
				run_calls(&window[i], &sizing, round);
		}
		collect();
	}
	run("SET plan_cache_mode = force_custom_plan");
	for (int i = 0; i < count; i++)
	{
		if (window[i].accepted && window[i].valid && window[i].planned &&
			filter_bits(&window[i].value) <= BATTERY_BITS)
			run_planned(&window[i]);
	}
	run("SET plan_cache_mode = force_generic_plan");
	collect();
	next_id += WINDOW;
	if (stored >= STORED_MAX)
		run_on_stored();
}

/* ---- start and end ---- */

static PGresult *
ask(const char *sql, int binary)
{
	PGresult   *result = PQexecParams(conn, sql, 0, NULL, NULL, NULL, NULL, binary);

	if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
		fatal(sql);
	return result;
}

static void
load_types(void)
{
	PGresult   *result = ask("SELECT type::oid, type, class, x FROM fuzz.element_type, "
							 "unnest(literals) WITH ORDINALITY AS u (x, n) "
							 "ORDER BY type::text COLLATE \"C\", n", 0);

	for (int i = 0; i < PQntuples(result); i++)
	{
		Oid			oid = (Oid) strtoul(PQgetvalue(result, i, 0), NULL, 10);
		ElementType *type;

		if (ntypes == 0 || types[ntypes - 1].oid != oid)
		{
			if (ntypes == MAX_TYPES)
				fatal("too many types");
			type = &types[ntypes++];
			type->oid = oid;
			type->name = strdup(PQgetvalue(result, i, 1));
			type->class = atoi(PQgetvalue(result, i, 2));
		}
		type = &types[ntypes - 1];
		type->literals = realloc(type->literals, (size_t) (type->nliterals + 1) * sizeof(char *));
		type->literals[type->nliterals++] = strdup(PQgetvalue(result, i, 3));
	}
	PQclear(result);
}

static void
load_seeds(void)
{
	PGresult   *result = ask("SELECT DISTINCT length(bytes), bytes FROM fuzz.seed ORDER BY 1, 2", 1);

	for (int i = 0; i < PQntuples(result); i++)
	{
		bool		small = PQgetlength(result, i, 1) <= POOL_VALUE_MAX;
		Bytes	   *to = small ? &pool[npool++] : &big[nbig++];

		if (npool > MAX_SEEDS || nbig > MAX_SEEDS)
			fatal("too many seeds");
		set_bytes(to, PQgetvalue(result, i, 1), (size_t) PQgetlength(result, i, 1));
	}
	while (nmedium < nbig && big[nmedium].size <= MEDIUM_MAX)
		nmedium++;
	if (npool == 0 || nmedium == 0)
		fatal("no seeds");
	PQclear(result);
}

static void
append_call(char **list, const char *sql)
{
	size_t		length = *list ? strlen(*list) : 0;

	*list = realloc(*list, length + strlen(sql) + 3);
	sprintf(*list + length, "%s%s", length > 0 ? ", " : "", sql);
}

/* Calls that use the same kinds of arguments form a group. */
static void
load_battery(Battery *battery)
{
	char		sql[500];
	PGresult   *result;
	const char *group = "none yet";

	snprintf(sql, sizeof(sql), "SELECT sql, (SELECT string_agg(DISTINCT m[1], '' ORDER BY m[1]) "
			 "FROM regexp_matches(sql, '@(.)', 'g') AS m) COLLATE \"C\" AS uses "
			 "FROM fuzz.call WHERE kind = '%s' ORDER BY uses, sql COLLATE \"C\"", battery->kind);
	result = ask(sql, 0);
	battery->ncalls = PQntuples(result);
	for (int i = 0; i < battery->ncalls; i++)
	{
		if (strcmp(group, PQgetvalue(result, i, 1)) != 0)
			battery->ngroups++;
		group = PQgetvalue(result, i, 1);
		if (battery->ngroups + battery->ncalls >= MAX_SLOTS)
			fatal("too many calls");
		append_call(&battery->slots[0], PQgetvalue(result, i, 0));
		append_call(&battery->slots[battery->ngroups], PQgetvalue(result, i, 0));
		battery->group_of[i] = battery->ngroups;
		battery->group_size[battery->ngroups]++;
	}
	for (int i = 0; i < battery->ncalls; i++)
		append_call(&battery->slots[first_call(battery) + i], PQgetvalue(result, i, 0));
	if (battery->ncalls == 0)
		fatal("no calls");
	printf("%d calls of kind %s in %d groups\n", battery->ncalls, battery->kind, battery->ngroups);
	PQclear(result);
}

static char *
load_list(const char *kind)
{
	char		sql[300];
	char	   *list;
	PGresult   *result;

	snprintf(sql, sizeof(sql), "SELECT string_agg(sql, ', ' ORDER BY sql COLLATE \"C\") FROM fuzz.call "
			 "WHERE kind = '%s' AND sql !~ '@[A-Ze]'", kind);
	result = ask(sql, 0);
	list = substitute(PQgetvalue(result, 0, 0), "", "x");
	PQclear(result);
	return list;
}

static void
set_up(void)
{
	static const char *const settings[] = {
		"SET log_min_messages = log", "SET client_min_messages = warning",
		"SET synchronous_commit = off", "SET jit = off", "SET plan_cache_mode = force_generic_plan",
		"SET max_parallel_workers_per_gather = 0", "SET min_parallel_table_scan_size = 0",
		"SET parallel_setup_cost = 0", "SET parallel_tuple_cost = 0"
	};
	PGresult   *result;

	conn = PQconnectdb("");
	if (PQstatus(conn) != CONNECTION_OK)
		fatal("no connection");
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		PQclear(ask(settings[i], 0));
	result = ask("SELECT 'bloomfilter'::regtype::oid, 'bloomfilter[]'::regtype::oid", 0);
	filter_oid = (Oid) strtoul(PQgetvalue(result, 0, 0), NULL, 10);
	filter_array_oid = (Oid) strtoul(PQgetvalue(result, 0, 1), NULL, 10);
	PQclear(result);
	load_types();
	load_seeds();
	load_battery(&scalars);
	load_battery(&aggregates);
	load_battery(&numbers);
	load_battery(&sizing);
	load_battery(&predicates);
	aggregate_list = load_list("aggregate");
	window_list = load_list("window");
	printf("%d seeds, %d of them large; %d element types\n", npool + nbig, nbig, ntypes);
	PQsetNoticeReceiver(conn, on_notice, NULL);
	enter_pipeline();
	prepare_accepting();
}

static void
report(double seconds)
{
	printf("%" PRIu64 " inputs sent (", inputs);
	for (int i = 0; i < 8; i++)
		printf("%s%" PRIu64 " %s", i > 0 ? ", " : "", per_way[i], way_names[i]);
	printf(")\n%" PRIu64 " accepted, %.1f %%; of these %" PRIu64 " of over 2^27 bits, which met no calls\n",
		   accepted, 100.0 * (double) accepted / (double) inputs, oversized);
	printf("%" PRIu64 " batteries, %" PRIu64 " calls, %" PRIu64 " statements\n", batteries, calls, statements);
	for (int i = 0; i < nerrors; i++)
		printf("SQLSTATE %s %s: %" PRIu64 " (such as \"%s\")\n", errors[i].state,
			   errors[i].on_input ? "on input" : "from calls", errors[i].count, errors[i].message);
	printf("%.0f inputs/s, digest of the inputs %016" PRIx64 "\n", (double) inputs / seconds, digest);
	printf("%d findings\n", findings);
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

int
main(int argc, char **argv)
{
	uint64_t	wanted;
	double		start,
				told;

	if (argc != 4)
	{
		fprintf(stderr, "usage: live_fuzzer SEED INPUTS DIRECTORY\n");
		return 2;
	}
	fuzz_seed = strtoull(argv[1], NULL, 10);
	wanted = strtoull(argv[2], NULL, 10);
	directory = argv[3];
	set_up();

	start = told = now();
	while (inputs < wanted)
	{
		run_window(inputs, wanted - inputs < WINDOW ? (int) (wanted - inputs) : WINDOW);
		if (now() - told > 60)
		{
			told = now();
			printf("%" PRIu64 " inputs, %.0f/s\n", inputs, (double) inputs / (told - start));
			fflush(stdout);
		}
	}
	run_on_stored();
	report(now() - start);
	fflush(stdout);
	PQfinish(conn);
	return findings > 0;
}
