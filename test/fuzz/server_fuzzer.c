/*
 * server_fuzzer.c
 *		Mutated filters or counters through a real connection, and every call on
 *		what the server accepts.
 *
 *		server_fuzzer SEED INPUTS DIRECTORY
 *
 * libpq's environment names the database, which server_fuzzer_setup.sql prepares
 * for one of the types.  In the comments of the program "filter" means its value.
 * Bytes go in as binary and text parameters, arrays, casts and COPY.  What is
 * accepted meets all calls in the table fuzz.call as a parameter under a generic
 * plan.  It is also stored, out of line, compressed or inline, where it meets
 * aggregates, grouping and joins, and in about half of the cases all calls again.
 * Some filters become constants, which the planner folds and estimates with.
 * Calls without a filter are made for one input in 64.
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
 * Everything depends on SEED alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "server_fuzzer.h"

/*
 * Larger filters meet no calls: the results of a battery are in memory together.
 */
#define MAX_CALL_BITS	(UINT64_C(1) << 27)
#define MAX_STORED		2048	/* filters in the tables before they are emptied */

/* Sends the inputs, one window in eight in another encoding. */
static void
send_window(Fuzzer *fuzzer, uint64_t first, int count)
{
	static const char *const encodings[] = {"LATIN1", "SJIS", "EUC_JP", "GB18030", "WIN1251", "SQL_ASCII"};
	bool		foreign = first / WINDOW % 8 == 7;
	char		sql[100];

	for (int i = 0; i < count; i++)
		make_input(fuzzer, &fuzzer->window[i], first + (uint64_t) i, i == 0 && first / WINDOW % 4 == 0);
	snprintf(sql, sizeof(sql), "SET client_encoding = '%s'", encodings[first / WINDOW / 8 % 6]);
	if (foreign)
		run_statement(fuzzer, sql);
	for (int i = 0; i < count; i++)
	{
		if (fuzzer->window[i].way >= COPY_BINARY)
			copy_input(fuzzer, &fuzzer->window[i]);
		else
			send_input(fuzzer, &fuzzer->window[i]);
	}
	if (foreign)
		run_statement(fuzzer, "SET client_encoding = 'UTF8'");
	collect_results(fuzzer);
	fuzzer->counts.inputs += (uint64_t) count;
}

static bool
meets_calls(const Input *input)
{
	return input->accepted && input->valid && filter_bits(&input->value) <= MAX_CALL_BITS;
}

static void
count_accepted(Fuzzer *fuzzer, int count)
{
	for (int i = 0; i < count; i++)
	{
		const Input *input = &fuzzer->window[i];

		if (input->accepted && input->valid)
		{
			fuzzer->counts.accepted++;
			fuzzer->counts.oversized += !meets_calls(input);
		}
	}
}

static void
run_round(Fuzzer *fuzzer, int count, int round)
{
	for (int i = 0; i < count; i++)
	{
		Input	   *input = &fuzzer->window[i];

		if (!meets_calls(input))
			continue;
		if (round == 0)
			store_input(fuzzer, input);
		run_calls(fuzzer, input, SCALAR_CALLS, round);
		run_calls(fuzzer, input, AGGREGATE_CALLS, round);
		run_calls(fuzzer, input, NUMBER_CALLS, round);
		if (input->sized)
			run_calls(fuzzer, input, SIZING_CALLS, round);
	}
	collect_results(fuzzer);
}

static void
run_window(Fuzzer *fuzzer, uint64_t first, int count)
{
	send_window(fuzzer, first, count);
	count_accepted(fuzzer, count);
	for (int round = 0; round < 3; round++)
		run_round(fuzzer, count, round);
	run_statement(fuzzer, "SET plan_cache_mode = force_custom_plan");
	for (int i = 0; i < count; i++)
	{
		if (meets_calls(&fuzzer->window[i]) && fuzzer->window[i].planned)
			run_planned(fuzzer, &fuzzer->window[i]);
	}
	run_statement(fuzzer, "SET plan_cache_mode = force_generic_plan");
	collect_results(fuzzer);
	fuzzer->first_id += WINDOW;
	if (fuzzer->stored >= MAX_STORED)
		run_on_stored(fuzzer);
}

static void
set_up(Fuzzer *fuzzer)
{
	connect_to_server(fuzzer);
	load_types(fuzzer);
	load_seeds(fuzzer);
	load_calls(fuzzer);
	printf("%d seeds, %d of them large; %d element types\n", fuzzer->npool + fuzzer->nbig, fuzzer->nbig,
		   fuzzer->ntypes);
	enter_pipeline(fuzzer);
	prepare_accepting(fuzzer);
	prepare_storing(fuzzer);
}

static void
report(const Counts *counts, double seconds)
{
	printf("%" PRIu64 " inputs sent (", counts->inputs);
	for (int i = 0; i < NWAYS; i++)
		printf("%s%" PRIu64 " %s", i > 0 ? ", " : "", counts->per_way[i], way_name((Way) i));
	printf(")\n%" PRIu64 " accepted, %.1f %%; of these %" PRIu64 " of over 2^27 bits, which met no calls\n",
		   counts->accepted, 100.0 * (double) counts->accepted / (double) counts->inputs, counts->oversized);
	printf("%" PRIu64 " batteries, %" PRIu64 " calls, %" PRIu64 " statements\n", counts->batteries,
		   counts->calls, counts->statements);
	for (int i = 0; i < counts->nerrors; i++)
	{
		const ErrorCount *error = &counts->errors[i];

		printf("SQLSTATE %s %s: %" PRIu64 " (such as \"%s\")\n", error->state,
			   error->on_input ? "on input" : "from calls", error->count, error->message);
	}
	printf("%.0f inputs/s, digest of the inputs %016" PRIx64 "\n", (double) counts->inputs / seconds,
		   counts->digest);
	printf("%d findings\n", counts->findings);
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

/* Runs all windows, and tells once a minute how far it is. */
static void
run_windows(Fuzzer *fuzzer, uint64_t wanted)
{
	double		start = now();
	double		told = start;

	while (fuzzer->counts.inputs < wanted)
	{
		uint64_t	done = fuzzer->counts.inputs;

		run_window(fuzzer, done, wanted - done < WINDOW ? (int) (wanted - done) : WINDOW);
		if (now() - told > 60)
		{
			told = now();
			printf("%" PRIu64 " inputs, %.0f/s\n", fuzzer->counts.inputs,
				   (double) fuzzer->counts.inputs / (told - start));
			fflush(stdout);
		}
	}
	run_on_stored(fuzzer);
	report(&fuzzer->counts, now() - start);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	Fuzzer	   *fuzzer = calloc(1, sizeof(*fuzzer));
	bool		found;

	if (argc != 4 || fuzzer == NULL)
	{
		fprintf(stderr, "usage: server_fuzzer SEED INPUTS DIRECTORY\n");
		return 2;
	}
	fuzzer->seed = strtoull(argv[1], NULL, 10);
	fuzzer->directory = argv[3];
	fuzzer->counts.digest = UINT64_C(0xcbf29ce484222325);
	set_up(fuzzer);
	run_windows(fuzzer, strtoull(argv[2], NULL, 10));
	PQfinish(fuzzer->client.conn);
	found = fuzzer->counts.findings > 0;
	free(fuzzer);
	return found;
}
