/*
 * server_fuzzer_client.c
 *		The connection of server_fuzzer.
 *
 * Statements travel in libpq's pipeline mode, each in a transaction of its own.
 * COPY and statements about all stored filters leave it for their duration.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server_fuzzer.h"

#define NO_ANSWER_MS	900000
#define MAX_QUEUE_BYTES	(512 * 1024)

const char *
way_name(Way way)
{
	static const char *const names[NWAYS] = {
		"binary parameter", "text parameter", "cast from bytea", "cast from text", "array",
		"pg_input_is_valid", "COPY BINARY", "COPY"
	};

	return names[way];
}

void
fatal(const Fuzzer *fuzzer, const char *message)
{
	printf("server_fuzzer: %s: %s\n", message,
		   fuzzer->client.conn ? PQerrorMessage(fuzzer->client.conn) : "");
	exit(2);
}

static void
on_notice(void *arg, const PGresult *result)
{
	Fuzzer	   *fuzzer = arg;
	char		message[400];

	snprintf(message, sizeof(message), "a warning: %s", PQresultErrorMessage(result));
	finding(fuzzer, fuzzer->client.current, message);
}

/* Runs a statement of the set-up. */
PGresult *
ask(Fuzzer *fuzzer, const char *sql, int binary)
{
	PGresult   *result = PQexecParams(fuzzer->client.conn, sql, 0, NULL, NULL, NULL, NULL, binary);

	if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
		fatal(fuzzer, sql);
	return result;
}

void
connect_to_server(Fuzzer *fuzzer)
{
	static const char *const settings[] = {
		"SET log_min_messages = log", "SET client_min_messages = warning",
		"SET synchronous_commit = off", "SET jit = off", "SET plan_cache_mode = force_generic_plan",
		"SET max_parallel_workers_per_gather = 0", "SET min_parallel_table_scan_size = 0",
		"SET parallel_setup_cost = 0", "SET parallel_tuple_cost = 0"
	};
	Client	   *client = &fuzzer->client;
	PGresult   *result;

	client->conn = PQconnectdb("");
	if (PQstatus(client->conn) != CONNECTION_OK)
		fatal(fuzzer, "no connection");
	PQsetNoticeReceiver(client->conn, on_notice, fuzzer);
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
		PQclear(ask(fuzzer, settings[i], 0));
	result = ask(fuzzer, "SELECT oid, typarray, typname FROM pg_type WHERE oid = fuzz.subject()", 0);
	client->filter_oid = (Oid) strtoul(PQgetvalue(result, 0, 0), NULL, 10);
	client->filter_array_oid = (Oid) strtoul(PQgetvalue(result, 0, 1), NULL, 10);
	snprintf(client->filter_type, sizeof(client->filter_type), "%s", PQgetvalue(result, 0, 2));
	choose_counters(strcmp(client->filter_type, "bloomcounter") == 0);
	PQclear(result);
}

void
enter_pipeline(Fuzzer *fuzzer)
{
	PGconn	   *conn = fuzzer->client.conn;

	fuzzer->client.current = NULL;
	if (!PQenterPipelineMode(conn) || PQsetnonblocking(conn, 1) != 0)
	{
		finding(fuzzer, NULL, PQerrorMessage(conn));
		exit(1);
	}
}

void
leave_pipeline(Fuzzer *fuzzer)
{
	collect_results(fuzzer);
	PQsetnonblocking(fuzzer->client.conn, 0);
	PQexitPipelineMode(fuzzer->client.conn);
}

/* A connection that fails is a finding, and the end. */
static void
lose_connection(Fuzzer *fuzzer, const char *message)
{
	finding(fuzzer, fuzzer->client.current, message);
	exit(1);
}

/* Waits until a result can be read without blocking. Meanwhile sends the rest. */
static void
await_result(Fuzzer *fuzzer)
{
	PGconn	   *conn = fuzzer->client.conn;

	while (PQisBusy(conn))
	{
		struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};
		int			ready;

		if (PQflush(conn) == 1)
			fd.events |= POLLOUT;
		ready = poll(&fd, 1, NO_ANSWER_MS);
		if (ready == 0)
			lose_connection(fuzzer, "no answer, though statement_timeout has long passed");
		if (ready < 0 && errno != EINTR)
			fatal(fuzzer, "poll");
		if (!PQconsumeInput(conn))
			lose_connection(fuzzer, PQerrorMessage(conn));
	}
}

/* Reads all results that are due. */
void
collect_results(Fuzzer *fuzzer)
{
	Client	   *client = &fuzzer->client;

	while (client->length > 0)
	{
		PGresult   *result;

		client->current = &client->queue[client->head];
		await_result(fuzzer);
		result = PQgetResult(client->conn);
		if (result == NULL && PQstatus(client->conn) != CONNECTION_BAD)
			continue;
		if (result == NULL || PQstatus(client->conn) == CONNECTION_BAD)
			lose_connection(fuzzer, PQerrorMessage(client->conn));
		if (PQresultStatus(result) == PGRES_PIPELINE_SYNC)
		{
			client->head = (client->head + 1) % MAX_PENDING;
			client->length--;
		}
		else
			judge(fuzzer, client->current, result);
		PQclear(result);
	}
	client->current = NULL;
	client->bytes = 0;
}

/* Makes room for one more statement, of the given size, in the queue. */
static Pending *
push(Fuzzer *fuzzer, Task task, Input *input, const char *name, size_t size)
{
	Client	   *client = &fuzzer->client;
	Pending    *pending;

	if (client->length + 2 >= MAX_PENDING || client->bytes > MAX_QUEUE_BYTES)
		collect_results(fuzzer);
	client->bytes += size + 200;
	pending = &client->queue[(client->head + client->length++) % MAX_PENDING];
	memset(pending, 0, sizeof(*pending));
	pending->task = task;
	pending->input = input;
	snprintf(pending->name, sizeof(pending->name), "%s", name);
	fuzzer->counts.statements++;
	return pending;
}

static void
sync_pipeline(Fuzzer *fuzzer, int sent)
{
	Client	   *client = &fuzzer->client;

	if (!sent || !PQpipelineSync(client->conn))
	{
		client->current = client->length > 0 ? &client->queue[client->head] : NULL;
		lose_connection(fuzzer, PQerrorMessage(client->conn));
	}
}

void
run_statement(Fuzzer *fuzzer, const char *sql)
{
	push(fuzzer, SETUP, NULL, sql, 0);
	sync_pipeline(fuzzer, PQsendQueryParams(fuzzer->client.conn, sql, 0, NULL, NULL, NULL, NULL, 1));
}

static void
prepare(Fuzzer *fuzzer, const char *name, const char *sql, int nparams, const Oid *param_types)
{
	push(fuzzer, SETUP, NULL, name, strlen(sql));
	sync_pipeline(fuzzer, PQsendPrepare(fuzzer->client.conn, name, sql, nparams, param_types));
}

/* Their arguments, $1 and following. */
enum
{
	ARG_FILTER, ARG_OTHER, ARG_ELEMENT, ARG_INTEGER, ARG_RATE, ARG_TEXT, ARG_ID, ARG_REPEAT, NARGS
};

void
prepare_about(Fuzzer *fuzzer, const char *name, const char *sql, int type)
{
	Oid			filter = fuzzer->client.filter_oid;
	Oid			arg_types[NARGS] = {filter, filter, fuzzer->types[type].oid, 20, 701, 25, 20, 23};

	prepare(fuzzer, name, sql, NARGS, arg_types);
}

/*
 * Runs a prepared statement about a filter.  Those that store it (SETUP) get no
 * element, because that may be of any type, and as text the filter's key.
 */
Pending *
execute_about(Fuzzer *fuzzer, Task task, const char *name, Input *input)
{
	char		id[32],
				repeat[32],
				key[100];
	const char *values[NARGS] = {
		(char *) input->value.data, (char *) input->sibling.data,
		task == SETUP ? NULL : input->element,
		input->integer, input->rate, task == SETUP ? key : input->text, id, repeat
	};
	int			lengths[NARGS] = {(int) input->value.size, (int) input->sibling.size};
	int			formats[NARGS] = {1, 1};
	Pending    *pending;

	snprintf(id, sizeof(id), "%" PRIu64, fuzzer->first_id + (uint64_t) (input - fuzzer->window));
	snprintf(repeat, sizeof(repeat), "%d", input->repeat);
	make_key(&input->value, key, sizeof(key));
	pending = push(fuzzer, task, input, name, input->value.size + input->sibling.size);
	sync_pipeline(fuzzer, PQsendQueryPrepared(fuzzer->client.conn, name, NARGS, values, lengths, formats, 1));
	return pending;
}

/*
 * Runs a statement about all stored filters outside the pipeline.  Returns whether
 * it gives a row, and copies that row's first field if the caller wants it.
 */
bool
ask_stored(Fuzzer *fuzzer, const char *sql, char *field, size_t size)
{
	Pending		pending = {.task = SETUP, .name = "all stored filters"};
	Client	   *client = &fuzzer->client;
	PGresult   *result;
	bool		found;

	client->current = &pending;
	result = PQexec(client->conn, sql);
	fuzzer->counts.statements++;
	judge(fuzzer, &pending, result);
	if (PQstatus(client->conn) == CONNECTION_BAD)
		exit(1);
	found = PQntuples(result) > 0;
	if (found && field != NULL)
		snprintf(field, size, "%s", PQgetvalue(result, 0, 0));
	PQclear(result);
	client->current = NULL;
	return found;
}

void
prepare_accepting(Fuzzer *fuzzer)
{
	static const char *const sql[] = {
		"SELECT $1", "SELECT $1", "SELECT $1::%s", "SELECT $1::%s", "SELECT $1[1]",
		"SELECT pg_input_is_valid($1, '%s')"
	};
	Oid			filter = fuzzer->client.filter_oid;
	Oid			types[] = {filter, filter, 17, 25, fuzzer->client.filter_array_oid, 25};
	int			last = PQserverVersion(fuzzer->client.conn) >= 160000 ? SOFT : ARRAY;

	for (int way = BINARY; way <= last; way++)
	{
		char		statement[200];

		snprintf(statement, sizeof(statement), sql[way], fuzzer->client.filter_type);
		prepare(fuzzer, way_name(way), statement, 1, &types[way]);
	}
}

void
send_input(Fuzzer *fuzzer, Input *input)
{
	const char *name = way_name(input->way);
	const char *values[] = {(char *) input->sent.data};
	int			lengths[] = {(int) input->sent.size};
	int			formats[] = {input->way == BINARY || input->way == BYTEA_CAST || input->way == ARRAY};

	push(fuzzer, ACCEPT, input, name, input->sent.size);
	sync_pipeline(fuzzer, PQsendQueryPrepared(fuzzer->client.conn, name, 1, values, lengths, formats, 1));
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
		append_network32(file, (uint32_t) input->sent.size);
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

void
copy_input(Fuzzer *fuzzer, Input *input)
{
	Pending		pending = {.task = ACCEPT, .input = input, .name = "COPY"};
	PGconn	   *conn = fuzzer->client.conn;
	Bytes		file = {0};
	PGresult   *result;
	bool		accepted;

	leave_pipeline(fuzzer);
	fuzzer->client.current = &pending;
	make_copy_file(input, &file);
	PQclear(PQexec(conn, input->way == COPY_BINARY ? "COPY fuzz.copied FROM STDIN BINARY"
				   : "COPY fuzz.copied FROM STDIN"));
	if (PQputCopyData(conn, (char *) file.data, (int) file.size) != 1 || PQputCopyEnd(conn, NULL) != 1)
		finding(fuzzer, &pending, PQerrorMessage(conn));
	result = PQgetResult(conn);
	accepted = PQresultStatus(result) == PGRES_COMMAND_OK;
	if (!accepted && !count_error(fuzzer, result, true))
		finding(fuzzer, &pending, PQresultErrorMessage(result));
	if (PQstatus(conn) == CONNECTION_BAD)
		exit(1);
	judge_acceptance(fuzzer, &pending, accepted);
	PQclear(result);
	while ((result = PQgetResult(conn)) != NULL)
		PQclear(result);
	free(file.data);
	enter_pipeline(fuzzer);
}
