EXTENSION = bloomtype
MODULE_big = bloomtype
PGFILEDESC = "bloomtype - Bloom filters for PostgreSQL"
DATA = sql/bloomtype--1.0.0.sql

CORE = bulk combine estimate format hashset hex sizing sparse stream
GLUE = accumulator aggregate base_filter build build_aggregate element errors \
	estimated_filter filter_cache fold info intersect_aggregate io measure membership memory \
	module params planned_filter selectivity setops stored_filter union_aggregate value
OBJS = $(CORE:%=src/core/%.o) $(GLUE:%=src/%.o)

REGRESS = $(sort $(patsubst $(srcdir)/test/sql/%.sql,%,$(wildcard $(srcdir)/test/sql/*.sql)))
REGRESS_OPTS = --inputdir=$(srcdir)/test --load-extension=bloomtype
EXTRA_CLEAN = test/unit/build test/fuzz/build

SHLIB_LINK = -lm

# A filter's size must not depend on whether the machine fuses multiply and add.
PG_CFLAGS = -ffp-contract=off

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# Our functions call each other, whatever symbols other libraries bring along.
ifeq ($(PORTNAME), linux)
SHLIB_LINK += -Wl,-Bsymbolic
endif

# Loops over whole filters are written for the vectoriser.
src/core/bulk.o: CFLAGS += -O3
BITCODE_CFLAGS += -ffp-contract=off

# A build outside the source tree needs its directories there. pg_regress looks for
# expected/ in the current directory.
ifdef VPATH
$(shell $(MKDIR_P) src/core; test -e expected || $(LN_S) $(srcdir)/expected)
endif

$(OBJS): $(wildcard $(srcdir)/src/*.h $(srcdir)/src/core/*.h)

# The core's own tests need no PostgreSQL: test/unit/Makefile.
.PHONY: unit
unit:
	$(MAKE) -C $(srcdir)/test/unit check
