/*
 * The class Geometry of geometry.py in C. It is optional: the package works without it.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stdint.h>

#define MULTIPLIER UINT64_C(0x9E3779B97F4A7C15)
#define MAX_BITS (UINT64_C(1) << 31)
#define MAX_HASHES 32

typedef struct
{
	PyObject_HEAD
	unsigned long long block_bits;
	unsigned long long blocks;
	unsigned int hashes;
} Geometry;

static int
geometry_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"block_bits", "blocks", "hashes", NULL};
	Geometry   *g = (Geometry *) self;
	unsigned long long block_bits,
				blocks;
	unsigned int hashes;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKI", names, &block_bits, &blocks, &hashes))
		return -1;
	/* A block begins and ends at a byte. */
	if (block_bits > MAX_BITS || blocks > MAX_BITS || block_bits * blocks > MAX_BITS || hashes > MAX_HASHES ||
		block_bits % 8 != 0)
	{
		PyErr_SetString(PyExc_ValueError, "geometry out of range");
		return -1;
	}
	g->block_bits = block_bits;
	g->blocks = blocks;
	g->hashes = hashes;
	return 0;
}

/*
 * Reads the arguments of both methods: a bytearray that has the size of the filter, and a hash. Returns the bits of
 * the block that the hash selects, or NULL with an exception.
 */
static uint8_t *
find_block(const Geometry *g, PyObject *const *args, Py_ssize_t nargs, uint64_t *hash)
{
	uint64_t	first_bit;

	if (nargs != 2 || !PyByteArray_Check(args[0]))
	{
		PyErr_SetString(PyExc_TypeError, "expected a bytearray and a hash");
		return NULL;
	}
	if (g->blocks == 0 || (uint64_t) PyByteArray_GET_SIZE(args[0]) != g->block_bits * g->blocks / 8)
	{
		PyErr_SetString(PyExc_ValueError, "the bits have another size");
		return NULL;
	}
	*hash = PyLong_AsUnsignedLongLong(args[1]);
	if (*hash == UINT64_MAX && PyErr_Occurred())
		return NULL;
	first_bit = ((*hash >> 32) * g->blocks >> 32) * g->block_bits;
	return (uint8_t *) PyByteArray_AS_STRING(args[0]) + first_bit / 8;
}

/* The next bit in the block; *product goes from round to round. */
static inline uint64_t
next_bit(const Geometry *g, uint64_t *product)
{
	*product *= MULTIPLIER;
	return (uint64_t) ((unsigned __int128) *product * g->block_bits >> 64);
}

static PyObject *
geometry_contains(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
	const Geometry *g = (Geometry *) self;
	uint64_t	product;
	const uint8_t *block = find_block(g, args, nargs, &product);

	if (block == NULL)
		return NULL;
	for (unsigned int i = 0; i < g->hashes; i++)
	{
		uint64_t	bit = next_bit(g, &product);

		if (!(block[bit / 8] >> bit % 8 & 1))
			Py_RETURN_FALSE;
	}
	Py_RETURN_TRUE;
}

static PyObject *
geometry_add(PyObject *self, PyObject *const *args, Py_ssize_t nargs)
{
	const Geometry *g = (Geometry *) self;
	uint64_t	product;
	uint8_t    *block = find_block(g, args, nargs, &product);

	if (block == NULL)
		return NULL;
	for (unsigned int i = 0; i < g->hashes; i++)
	{
		uint64_t	bit = next_bit(g, &product);

		block[bit / 8] |= (uint8_t) (1 << bit % 8);
	}
	Py_RETURN_NONE;
}

static PyMethodDef geometry_methods[] = {
	{"contains", (PyCFunction) (void (*) (void)) geometry_contains, METH_FASTCALL, "Are all bits of an element set?"},
	{"add", (PyCFunction) (void (*) (void)) geometry_add, METH_FASTCALL, "Sets the bits of an element."},
	{NULL, NULL, 0, NULL}
};

static PyMemberDef geometry_members[] = {
	{"block_bits", T_ULONGLONG, offsetof(Geometry, block_bits), READONLY, NULL},
	{"blocks", T_ULONGLONG, offsetof(Geometry, blocks), READONLY, NULL},
	{NULL, 0, 0, 0, NULL}
};

static PyType_Slot geometry_slots[] = {
	{Py_tp_doc, "The places of bits in a filter."},
	{Py_tp_init, geometry_init},
	{Py_tp_methods, geometry_methods},
	{Py_tp_members, geometry_members},
	{0, NULL}
};

static PyType_Spec geometry_spec = {
	.name = "bloomtype._speedups.Geometry",
	.basicsize = sizeof(Geometry),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = geometry_slots,
};

static int
speedups_exec(PyObject *module)
{
	PyObject   *type = PyType_FromSpec(&geometry_spec);

	if (type == NULL)
		return -1;
	if (PyModule_AddObject(module, "Geometry", type) < 0)
	{
		Py_DECREF(type);
		return -1;
	}
	return 0;
}

static PyModuleDef_Slot speedups_slots[] = {
	{Py_mod_exec, speedups_exec},
	{0, NULL}
};

static PyModuleDef speedups_module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_speedups",
	.m_slots = speedups_slots,
};

PyMODINIT_FUNC
PyInit__speedups(void)
{
	return PyModuleDef_Init(&speedups_module);
}
