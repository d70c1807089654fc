/*
 * server_fuzzer.h
 *		The state of server_fuzzer, and what its files offer each other.
 */
#ifndef SERVER_FUZZER_H
#define SERVER_FUZZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpq-fe.h"
#include "server_fuzzer_mutations.h"

#define WINDOW			64		/* inputs that travel together */
#define MAX_PENDING		256
#define MAX_SLOTS		128		/* of a battery */
#define MAX_TYPES		64
#define MAX_SEEDS		1024
#define MAX_ERRORS		100

/* How an input reaches the server. */
typedef enum Way
{
	BINARY, TEXT, BYTEA_CAST, TEXT_CAST, ARRAY, SOFT, COPY_BINARY, COPY_TEXT
} Way;

#define NWAYS			8

/* A type that elements can have, and literals of it. */
typedef struct ElementType
{
	Oid			oid;
	char	   *name;
	int			class;			/* negative: filters refuse it */
	char	  **literals;
	int			nliterals;
} ElementType;

typedef enum BatteryIndex
{
	SCALAR_CALLS, AGGREGATE_CALLS, NUMBER_CALLS, SIZING_CALLS, PREDICATES
} BatteryIndex;

#define NBATTERIES		5

/*
 * Calls that are made together, on the same arguments.  Slot 0 is all of them.
 * The slots of the groups follow, each with the calls that use the same kinds of
 * arguments, and then those of single calls.
 */
typedef struct Battery
{
	BatteryIndex index;
	const char *kind;			/* in fuzz.call */
	bool		stored;			/* stored filters meet it, too */
	char	   *slots[MAX_SLOTS];	/* lists of calls, with placeholders */
	int			ngroups;
	int			ncalls;
	int			group_of[MAX_SLOTS];
	int			group_size[MAX_SLOTS];
	bool		prepared[2][MAX_SLOTS][MAX_TYPES];
	bool		joined[MAX_SLOTS][MAX_TYPES];
} Battery;

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
	Bytes		sent;			/* what goes to the server */
	Bytes		value;			/* the filter that it stands for */
	bool		valid;			/* according to doc/format.md */
	bool		accepted;		/* by the server */
	Bytes		sibling;		/* a filter to combine it with */
	int			type;
	const char *element;		/* NULL for SQL's NULL */
	const char *integer;
	const char *rate;
	const char *text;
	int			repeat;			/* of the calls on the stored filter; 0: none */
	bool		planned;		/* meets the planner as a constant, too */
	bool		sized;			/* meets the calls about sizes, too */
	Result		results[NBATTERIES][MAX_SLOTS];
} Input;

typedef enum Task
{
	SETUP, ACCEPT, CALL, EXTRA
} Task;

/* Where the filter of a call is. */
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

/* The connection, and a ring of the statements under way. */
typedef struct Client
{
	PGconn	   *conn;
	Oid			filter_oid;
	Oid			filter_array_oid;
	char		filter_type[64];	/* bloomfilter or bloomcounter */
	Pending		queue[MAX_PENDING];
	int			head;
	int			length;
	size_t		bytes;			/* sent since results were last read */
	const Pending *current;		/* whose result is being read */
} Client;

typedef struct ErrorCount
{
	char		state[6];
	bool		on_input;
	uint64_t	count;
	char		message[160];
} ErrorCount;

typedef struct Counts
{
	uint64_t	inputs;
	uint64_t	accepted;
	uint64_t	oversized;
	uint64_t	batteries;
	uint64_t	statements;
	uint64_t	calls;
	uint64_t	per_way[NWAYS];
	uint64_t	digest;			/* of all inputs */
	ErrorCount	errors[MAX_ERRORS];
	int			nerrors;
	int			findings;
} Counts;

typedef struct Fuzzer
{
	uint64_t	seed;
	const char *directory;		/* for what led to findings */
	Client		client;
	ElementType types[MAX_TYPES];
	int			ntypes;
	Battery		batteries[NBATTERIES];
	char	   *aggregate_list; /* aggregates over nothing but filters */
	char	   *window_list;	/* the same as window functions */
	Bytes		pool[2 * MAX_SEEDS];	/* small filters to start from */
	int			npool;
	Bytes		big[MAX_SEEDS]; /* large ones, in order of size */
	int			nbig;
	int			nmedium;		/* of the large ones */
	Input		window[WINDOW];
	uint64_t	first_id;		/* of the window, in the tables */
	uint64_t	stored;			/* filters in the tables */
	Counts		counts;
} Fuzzer;

/* server_fuzzer_inputs.c: what is sent */
extern void load_types(Fuzzer *fuzzer);
extern void load_seeds(Fuzzer *fuzzer);
extern void make_input(Fuzzer *fuzzer, Input *input, uint64_t number, bool first);

/* server_fuzzer_client.c: the connection */
extern const char *way_name(Way way);
extern void connect_to_server(Fuzzer *fuzzer);
extern void fatal(const Fuzzer *fuzzer, const char *message);
extern PGresult *ask(Fuzzer *fuzzer, const char *sql, int binary);
extern void enter_pipeline(Fuzzer *fuzzer);
extern void leave_pipeline(Fuzzer *fuzzer);
extern void collect_results(Fuzzer *fuzzer);
extern void run_statement(Fuzzer *fuzzer, const char *sql);
extern void prepare_about(Fuzzer *fuzzer, const char *name, const char *sql, int type);
extern Pending *execute_about(Fuzzer *fuzzer, Task task, const char *name, Input *input);
extern void prepare_accepting(Fuzzer *fuzzer);
extern void send_input(Fuzzer *fuzzer, Input *input);
extern void copy_input(Fuzzer *fuzzer, Input *input);
extern bool ask_stored(Fuzzer *fuzzer, const char *sql, char *field, size_t size);

/* server_fuzzer_calls.c: what an accepted filter meets */
extern void load_calls(Fuzzer *fuzzer);
extern void prepare_storing(Fuzzer *fuzzer);
extern void store_input(Fuzzer *fuzzer, Input *input);
extern char *slot_sql(const Battery *battery, int slot, Oid type, Place place);
extern void run_calls(Fuzzer *fuzzer, Input *input, BatteryIndex index, int round);
extern void run_planned(Fuzzer *fuzzer, Input *input);
extern void run_on_stored(Fuzzer *fuzzer);

/* server_fuzzer_findings.c: what the answers mean */
extern void finding(Fuzzer *fuzzer, const Pending *pending, const char *message);
extern bool count_error(Fuzzer *fuzzer, const PGresult *result, bool on_input);
extern void judge_acceptance(Fuzzer *fuzzer, const Pending *pending, bool accepted);
extern void judge(Fuzzer *fuzzer, const Pending *pending, const PGresult *result);

#endif							/* SERVER_FUZZER_H */
