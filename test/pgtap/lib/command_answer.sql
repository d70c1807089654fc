-- The result of a query, or the SQLSTATE of its error, or of any other command.
CREATE FUNCTION pg_temp.answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    IF query LIKE 'SELECT%' THEN
        EXECUTE query INTO result;
    ELSE
        EXECUTE query;
        result := '00000';
    END IF;
    RETURN result;
EXCEPTION WHEN others THEN
    RETURN SQLSTATE;
END
$$;
CREATE FUNCTION pg_temp.hint_of(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    hint text;
BEGIN
    EXECUTE query;
    RETURN NULL;
EXCEPTION WHEN others THEN
    GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
    RETURN hint;
END
$$;
