/*
 * cpu.h
 *		Compiles a loop for several instruction sets.
 *
 * Each loop is an inlined body in plain C.  Function attributes compile it for
 * several instruction sets, and the compiler vectorizes it at -O3 (see the
 * Makefile).  The CPU is tested at run time, so a build runs on every CPU of
 * its architecture.
 */
#ifndef BF_CPU_H
#define BF_CPU_H

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_TARGETS 1
#define TARGET_AVX2 __attribute__((target("avx2,popcnt")))
#define TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt")))
#define CPU_HAS_AVX2 \
	(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"))
#define CPU_HAS_AVX512 \
	(__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") && \
	 __builtin_cpu_supports("avx512vpopcntdq"))
#endif

#define BODY static inline __attribute__((always_inline))

/* Defines name(params), which runs the best name_body(args) for the CPU. */
#ifdef HAVE_TARGETS
#define DISPATCH(result, name, params, args) \
	TARGET_AVX2 static result name##_avx2 params { return name##_body args; } \
	TARGET_AVX512 static result name##_avx512 params { return name##_body args; } \
	result name params \
	{ \
		if (CPU_HAS_AVX512) \
			return name##_avx512 args; \
		if (CPU_HAS_AVX2) \
			return name##_avx2 args; \
		return name##_body args; \
	}
#else
#define DISPATCH(result, name, params, args) \
	result name params { return name##_body args; }
#endif

#endif							/* BF_CPU_H */
