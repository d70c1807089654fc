/*
 * tap.h
 *		The part of the Test Anything Protocol that these tests use.
 *
 * A test of many cases calls each() for every case and passed() once after the
 * loop, so that it is one line of output.
 */
#ifndef TAP_H
#define TAP_H

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

static int	tap_tests;
static int	tap_failures;
static uint64_t tap_cases;
static uint64_t tap_failed_cases;

static inline void
tap_say(const char *prefix, const char *format, va_list args)
{
	printf("%s", prefix);
	vprintf(format, args);
	putchar('\n');
	fflush(stdout);
}

/* One test. */
static inline bool __attribute__((format(printf, 2, 3)))
ok(bool good, const char *format,...)
{
	char		prefix[32];
	va_list		args;

	tap_failures += !good;
	snprintf(prefix, sizeof(prefix), "%s %d - ", good ? "ok" : "not ok", ++tap_tests);
	va_start(args, format);
	tap_say(prefix, format, args);
	va_end(args);
	return good;
}

static inline void
is(uint64_t got, uint64_t wanted, const char *name)
{
	if (!ok(got == wanted, "%s", name))
		printf("# got %" PRIu64 ", wanted %" PRIu64 "\n", got, wanted);
}

/* One case of many. Prints a line only if it fails. */
static inline bool __attribute__((format(printf, 2, 3)))
each(bool good, const char *format,...)
{
	va_list		args;

	tap_cases++;
	if (!good && tap_failed_cases++ < 10)
	{
		va_start(args, format);
		tap_say("# bad: ", format, args);
		va_end(args);
	}
	return good;
}

/*
 * Ends a test of many cases: there were some since the last call, and all
 * passed.
 */
static inline void
passed(const char *name)
{
	if (!ok(tap_cases > 0 && tap_failed_cases == 0, "%s", name))
		printf("# %" PRIu64 " of %" PRIu64 " cases are bad\n", tap_failed_cases, tap_cases);
	tap_cases = tap_failed_cases = 0;
}

/* Prints the plan, and returns the exit status. */
static inline int
done(void)
{
	if (tap_cases > 0)
		passed("cases at the end");
	printf("1..%d\n", tap_tests);
	return tap_failures > 0;
}

#endif							/* TAP_H */
