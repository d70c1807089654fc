-- The result of a query, or the SQLSTATE of its error.
CREATE FUNCTION pg_temp.answer(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE query INTO result;
    RETURN result;
EXCEPTION WHEN others THEN
    RETURN SQLSTATE;
END
$$;
