/*
 * lesser_cpus.h
 *		Runs tests with each instruction set that the core has loops for.
 */
#ifndef LESSER_CPUS_H
#define LESSER_CPUS_H

#if defined(__x86_64__) && defined(__GNUC__)

/*
 * What __builtin_cpu_supports() reads. Compilers agree on the numbers of the
 * bits. A file that declares this cannot use that builtin.
 */
extern struct
{
	unsigned int vendor;
	unsigned int type;
	unsigned int subtype;
	unsigned int features;
}			__cpu_model;

enum
{
	POPCNT = 1u << 2,
	AVX2 = 1u << 10,
	AVX512VL = 1u << 20,
	AVX512BW = 1u << 21,
	AVX512VPOPCNTDQ = 1u << 30
};

/* Runs the tests as if the CPU lacked these features. */
static inline void
run_without(unsigned int features, void (*tests) (void))
{
	unsigned int all = __cpu_model.features;

	__cpu_model.features &= ~features;
	tests();
	__cpu_model.features = all;
}

static inline void
on_lesser_cpus(void (*tests) (void))
{
	run_without(AVX512VL, tests);
	run_without(AVX512VPOPCNTDQ, tests);
	run_without(AVX512BW, tests);
	run_without(AVX512BW | POPCNT, tests);
	run_without(AVX512BW | AVX2, tests);
}

#else

static inline void
on_lesser_cpus(void (*tests) (void))
{
	(void) tests;
}

#endif

#endif							/* LESSER_CPUS_H */
