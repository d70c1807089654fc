EXTENSION = bloomtype
MODULE_big = bloomtype
PGFILEDESC = "bloomtype - Bloom filters for PostgreSQL"
DATA = $(patsubst $(srcdir)/%,%,$(wildcard $(srcdir)/sql/$(EXTENSION)--*.sql))

# Each directory of src/ is a layer: the core knows nothing of the others.
SRC = core pg value query filter counter build aggregate probe planner bloomset bloomslices join
OBJS = $(patsubst $(srcdir)/%.c,%.o,$(wildcard $(SRC:%=$(srcdir)/src/%/*.c)))

REGRESS = $(sort $(patsubst $(srcdir)/test/sql/%.sql,%,$(wildcard $(srcdir)/test/sql/*.sql)))
REGRESS_OPTS = --inputdir=$(srcdir)/test --load-extension=bloomtype
DEPENDENCIES = $(OBJS:%=%.d) $(OBJS:%.o=%.bc.d)
EXTRA_CLEAN = test/unit/build test/fuzz/build $(DEPENDENCIES)

SHLIB_LINK = -lm

# The control file is where the version is written.
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(srcdir)/$(EXTENSION).control)

PG_CPPFLAGS = -I$(srcdir)/src -DBLOOMTYPE_VERSION='"$(EXTVERSION)"'

PG_CONFIG ?= pg_config

# A filter's size must not depend on whether the machine fuses multiply and add. The headers
# of PostgreSQL 15 are not C23, which is the default from gcc 15 on; those of 19 are, where
# the server was built as C23.
PG_CFLAGS = -ffp-contract=off $(if $(filter 15, $(MAJORVERSION)),-std=gnu11)

# A server's own rules for dependencies would write those of two files of one name to one
# file.
override autodepend =

# The core's assertions are on where the server's are: see src/core/assertions.h.
PG_CPPFLAGS += $(if $(shell grep -ls '^.define USE_ASSERT_CHECKING 1' \
	$$($(PG_CONFIG) --includedir-server)/pg_config*.h), -DBF_ASSERTIONS)

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The compilers of objects and of bitcode list the headers that each file includes.
COMPILE.c += -MMD -MP -MF $@.d
COMPILE.c.bc += -MMD -MP -MF $@.d
-include $(wildcard $(DEPENDENCIES))

# Our functions call each other, whatever symbols other libraries bring along.
ifeq ($(PORTNAME), linux)
SHLIB_LINK += -Wl,-Bsymbolic
endif

# Loops over whole filters are written for the vectoriser.
src/core/bulk.o src/core/number_bulk.o src/core/slices.o: CFLAGS += -O3
BITCODE_CFLAGS += $(PG_CFLAGS)

# A build outside the source tree needs its directories there. pg_regress looks for
# expected/ in the current directory.
ifdef VPATH
$(shell $(MKDIR_P) $(SRC:%=src/%); test -e expected || $(LN_S) $(srcdir)/expected)
endif

src/pg/module.o: $(srcdir)/$(EXTENSION).control

# The core's own tests need no PostgreSQL: test/unit/Makefile.
.PHONY: unit
unit:
	$(MAKE) -C $(srcdir)/test/unit check

# The PGXN archive of the committed tree, in the current directory. The version is
# the one that the committed control file names. Needs no PostgreSQL.
.PHONY: dist
dist:
	top='$(dir $(abspath $(firstword $(MAKEFILE_LIST))))' && \
	version=$$(git -C "$$top" show HEAD:./$(EXTENSION).control | sed -n "s/^default_version = '\(.*\)'$$/\1/p") && \
	test "$$version" && \
	git -C "$$top" archive --format=zip --prefix="$(EXTENSION)-$$version/" \
		--output="$(CURDIR)/$(EXTENSION)-$$version.zip" HEAD
