# PostgreSQL with bloomtype:
#   docker build -t bloomtype .
#   docker build -t bloomtype --build-arg PG_MAJOR=17 .
ARG PG_MAJOR=18

FROM postgres:${PG_MAJOR} AS build
ARG PG_MAJOR
RUN apt-get update && \
    apt-get install -y --no-install-recommends gcc libc6-dev libxxhash-dev make "postgresql-server-dev-${PG_MAJOR}" && \
    rm -rf /var/lib/apt/lists/*
WORKDIR /bloomtype
COPY . .
RUN make -j "$(nproc)" PG_CONFIG="/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config" DESTDIR=/installed install

FROM postgres:${PG_MAJOR}
COPY --from=build /installed /
