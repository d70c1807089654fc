/*
 * server_fuzzer_findings.c
 *		What the server's answers mean; see server_fuzzer.c for what is a finding.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server_fuzzer.h"

#define MAX_FINDINGS	10

static void
save_bytes(const Fuzzer *fuzzer, const char *what, const Bytes *bytes)
{
	char		path[4096];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/finding-%d.%s", fuzzer->directory, fuzzer->counts.findings, what);
	file = fopen(path, "wb");
	if (file == NULL || fwrite(bytes->data, 1, bytes->size, file) != bytes->size)
		fprintf(stderr, "could not write %s: %s\n", path, strerror(errno));
	if (file != NULL)
		fclose(file);
}

static void
show_input(const Fuzzer *fuzzer, const Input *input)
{
	printf("  input %" PRIu64 " of seed %" PRIu64 ", by %s, %zu bytes\n", input->number, fuzzer->seed,
		   way_name(input->way), input->value.size);
	if (input->valid)			/* otherwise it has no arguments */
		printf("  element %s of type %s, integer %s, rate %s, text %s\n",
			   input->element ? input->element : "NULL", fuzzer->types[input->type].name,
			   input->integer, input->rate, input->text);
	printf("  saved as finding-%d.input, .filter and .other\n", fuzzer->counts.findings);
	save_bytes(fuzzer, "input", &input->sent);
	save_bytes(fuzzer, "filter", &input->value);
	save_bytes(fuzzer, "other", &input->sibling);
}

/* Reports and counts a finding. pending may be NULL. */
void
finding(Fuzzer *fuzzer, const Pending *pending, const char *message)
{
	fuzzer->counts.findings++;
	printf("FINDING %d: %s\n", fuzzer->counts.findings, message);
	if (pending)
		printf("  statement: %s\n", pending->name);
	if (pending && pending->input)
		show_input(fuzzer, pending->input);
	if (pending && pending->battery)
	{
		char	   *sql = slot_sql(pending->battery, pending->slot, fuzzer->types[pending->input->type].oid,
								   pending->place);

		printf("  %s\n", sql);
		free(sql);
	}
	fflush(stdout);
}

static ErrorCount *
find_error(Counts *counts, const char *state, bool on_input)
{
	for (int i = 0; i < counts->nerrors; i++)
	{
		if (strcmp(counts->errors[i].state, state) == 0 && counts->errors[i].on_input == on_input)
			return &counts->errors[i];
	}
	return NULL;
}

/* Counts an error; true if hostile bytes or arguments may cause it. */
bool
count_error(Fuzzer *fuzzer, const PGresult *result, bool on_input)
{
	static const char *const refused[] = {"22P02", "22P03", "22021", "22P05", NULL};
	static const char *const failed[] = {"42804", "22023", "54000", "0A000", "22003", NULL};
	Counts	   *counts = &fuzzer->counts;
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	ErrorCount *error;

	if (state == NULL)
		return false;
	error = find_error(counts, state, on_input);
	if (error == NULL && counts->nerrors < MAX_ERRORS)
	{
		error = &counts->errors[counts->nerrors++];
		snprintf(error->state, sizeof(error->state), "%s", state);
		error->on_input = on_input;
		snprintf(error->message, sizeof(error->message), "%s", message ? message : "");
	}
	if (error != NULL)
		error->count++;
	for (const char *const *allowed = on_input ? refused : failed; *allowed; allowed++)
	{
		if (strcmp(*allowed, state) == 0)
			return true;
	}
	return false;
}

/* Compares the server's decision about an input with doc/format.md. */
void
judge_acceptance(Fuzzer *fuzzer, const Pending *pending, bool accepted)
{
	pending->input->accepted = accepted;
	if (accepted != pending->input->valid)
		finding(fuzzer, pending, accepted ? "accepted what doc/format.md refuses"
				: "refused what doc/format.md accepts");
}

static void
judge_input(Fuzzer *fuzzer, const Pending *pending, const PGresult *result)
{
	const Input *input = pending->input;
	bool		ok = PQresultStatus(result) == PGRES_TUPLES_OK;

	if (!ok && !count_error(fuzzer, result, true))
		finding(fuzzer, pending, PQresultErrorMessage(result));
	if (ok && input->way == SOFT)
		ok = PQgetvalue(result, 0, 0)[0] != 0;
	else if (ok && ((size_t) PQgetlength(result, 0, 0) != input->value.size ||
					memcmp(PQgetvalue(result, 0, 0), input->value.data, input->value.size) != 0))
		finding(fuzzer, pending, "accepted bytes come out changed");
	judge_acceptance(fuzzer, pending, ok);
}

/* Compares the outcome of calls with that of the same calls on a parameter. */
static void
compare_call(Fuzzer *fuzzer, const Pending *pending, const PGresult *result, const Result *known)
{
	bool		ok = PQresultStatus(result) == PGRES_TUPLES_OK;
	int			rows = PQntuples(result);

	if (ok != (known->outcome == SUCCEEDED))
	{
		finding(fuzzer, pending, ok ? "succeeds, but failed with the filter as a parameter"
				: "fails, but succeeded with the filter as a parameter");
		return;
	}
	if (ok && rows != (pending->place == STORED ? pending->input->repeat : 1))
		finding(fuzzer, pending, "gives another number of rows");
	for (int i = 0; ok && i < rows; i++)
	{
		if (memcmp(PQgetvalue(result, i, 0), known->hash, 8) != 0)
		{
			finding(fuzzer, pending, "gives another result than with the filter as a parameter");
			break;
		}
	}
}

static void
judge_call(Fuzzer *fuzzer, const Pending *pending, const PGresult *result)
{
	bool		ok = PQresultStatus(result) == PGRES_TUPLES_OK;
	Result	   *known = &pending->input->results[pending->battery->index][pending->slot];

	if (!ok && !count_error(fuzzer, result, false))
		finding(fuzzer, pending, PQresultErrorMessage(result));
	if (pending->place != DIRECT)
	{
		compare_call(fuzzer, pending, result, known);
		return;
	}
	known->outcome = ok ? SUCCEEDED : FAILED;
	if (ok)
		memcpy(known->hash, PQgetvalue(result, 0, 0), 8);
}

/* Takes the result of a statement. Ends the program after many findings. */
void
judge(Fuzzer *fuzzer, const Pending *pending, const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	switch (pending->task)
	{
		case ACCEPT:
			judge_input(fuzzer, pending, result);
			break;
		case CALL:
			judge_call(fuzzer, pending, result);
			break;
		case EXTRA:				/* may fail, but only with an expected error */
			if (status == PGRES_FATAL_ERROR && !count_error(fuzzer, result, false))
				finding(fuzzer, pending, PQresultErrorMessage(result));
			break;
		case SETUP:
			if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
				finding(fuzzer, pending, PQresultErrorMessage(result));
			break;
	}
	if (fuzzer->counts.findings >= MAX_FINDINGS)
	{
		printf("server_fuzzer: stopping after %d findings\n", fuzzer->counts.findings);
		exit(1);
	}
}
