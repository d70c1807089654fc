-- PostgreSQL's own checks of access methods and operators (src/test/regress/sql/opr_sanity.sql), of the objects of the
-- extension. Each query gives what is wrong.
BEGIN;
SELECT * FROM no_plan();

CREATE TEMP VIEW member AS
SELECT classid, objid FROM pg_depend
WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
    AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype');
CREATE TEMP VIEW method AS SELECT a.* FROM pg_am a JOIN member ON classid = 'pg_am'::regclass AND objid = a.oid;
CREATE TEMP VIEW family AS
SELECT f.*, amname FROM pg_opfamily f JOIN pg_am a ON a.oid = opfmethod
    JOIN member ON classid = 'pg_opfamily'::regclass AND objid = f.oid;
CREATE TEMP VIEW class AS
SELECT c.*, amname FROM pg_opclass c JOIN pg_am a ON a.oid = opcmethod
    JOIN member ON classid = 'pg_opclass'::regclass AND objid = c.oid;
CREATE TEMP VIEW amop AS SELECT p.*, f.opfname, f.amname FROM pg_amop p JOIN family f ON f.oid = amopfamily;
CREATE TEMP VIEW amproc AS SELECT p.*, f.opfname, f.amname FROM pg_amproc p JOIN family f ON f.oid = amprocfamily;
CREATE TEMP VIEW own_operator AS
SELECT o.*, o.oid::regoperator AS name FROM pg_operator o JOIN member ON classid = 'pg_operator'::regclass AND objid = o.oid;

CREATE FUNCTION pg_temp.coercible(oid, oid) RETURNS boolean LANGUAGE sql AS $$
    SELECT $1 = $2 OR EXISTS (SELECT FROM pg_cast WHERE castsource = $1 AND casttarget = $2 AND castmethod = 'b'
        AND castcontext = 'i')
        OR $2 IN ('"any"'::regtype, 'anyelement'::regtype, 'anycompatible'::regtype)
        OR $2 = 'anyarray'::regtype AND EXISTS (SELECT FROM pg_type WHERE oid = $1 AND typelem <> 0 AND typlen = -1) $$;

-- There is something to check.
SELECT is(array(SELECT amname::text COLLATE "C" FROM method ORDER BY 1), '{bloomset,bloomslices}', 'access methods');
SELECT cmp_ok((SELECT count(*) FROM class WHERE amname = m), '>', 0::bigint, 'operator classes of ' || m)
FROM unnest('{bloomset,bloomslices,btree,hash}'::text[]) m;
SELECT cmp_ok((SELECT count(*) FROM own_operator), '>', 10::bigint, 'operators');
SELECT cmp_ok((SELECT count(*) FROM amproc), '>', 2::bigint, 'support functions');

-- The server's validator of each access method.
SELECT ok(amvalidate(oid), format('amvalidate of %s using %s', opcname, amname)) FROM class ORDER BY amname, opcname;

-- pg_am
SELECT is_empty($$ SELECT m.amname FROM method m JOIN pg_proc p ON p.oid = amhandler
    WHERE amtype <> 'i' OR prorettype <> 'index_am_handler'::regtype OR proretset OR pronargs <> 1
        OR proargtypes[0] <> 'internal'::regtype $$, 'handlers have the right signature');
SELECT is_empty($$ SELECT amname, p FROM method, unnest('{asc,desc,nulls_first,nulls_last,orderable,distance_orderable,
    returnable,search_array,search_nulls}'::text[]) p WHERE pg_indexam_has_property(method.oid, p) IS NOT NULL $$,
    'properties of columns are none of access methods');

-- pg_opfamily, pg_opclass
SELECT is_empty($$ SELECT opfname FROM family f WHERE NOT EXISTS (SELECT FROM pg_opclass WHERE opcfamily = f.oid)
    OR NOT EXISTS (SELECT FROM pg_amop WHERE amopfamily = f.oid) $$, 'families have a class and operators');
SELECT is_empty($$ SELECT c.opcname FROM class c JOIN pg_opfamily f ON f.oid = opcfamily WHERE opcmethod <> opfmethod
    OR opcnamespace = 0 OR opcowner = 0 OR opcintype = 0 OR NOT EXISTS (SELECT FROM family WHERE oid = opcfamily) $$,
    'classes are of families of the same access method');
SELECT is_empty($$ SELECT a.opcname FROM class a JOIN pg_opclass b ON a.opcmethod = b.opcmethod AND a.opcintype = b.opcintype
    AND a.opcdefault AND b.opcdefault AND a.oid <> b.oid $$, 'a type has one default class');
SELECT is_empty($$ SELECT c.opcname FROM class c WHERE NOT EXISTS (SELECT FROM pg_amop WHERE amopfamily = opcfamily
    AND amoplefttype = opcintype AND (amoprighttype = opcintype OR amname = 'bloomslices')) $$,
    'classes have operators of their input type');

-- pg_amop
SELECT is_empty($$ SELECT amopopr::regoperator FROM amop WHERE amopstrategy < 1 OR amoppurpose NOT IN ('s', 'o')
    OR amopmethod <> (SELECT opfmethod FROM pg_opfamily WHERE oid = amopfamily) $$, 'members have a strategy and a purpose');
SELECT is_empty($$ SELECT amopopr::regoperator FROM amop WHERE (amoppurpose = 's') <> (amopsortfamily = 0)
    OR amoppurpose = 'o' AND NOT EXISTS (SELECT FROM pg_opfamily f JOIN pg_am a ON a.oid = opfmethod
        WHERE f.oid = amopsortfamily AND a.amname = 'btree') $$, 'only operators that order have a family of B-trees to sort by');
SELECT is_empty($$ SELECT amopopr::regoperator FROM amop a WHERE amoppurpose = 'o' AND NOT EXISTS (SELECT FROM pg_opclass,
    pg_operator o WHERE o.oid = amopopr AND opcfamily = amopsortfamily AND opcintype = oprresult AND opcdefault) $$,
    'and what they return can be sorted by it');
SELECT is_empty($$ SELECT amopopr::regoperator FROM amop LEFT JOIN pg_operator o ON o.oid = amopopr WHERE o.oid IS NULL
    OR oprkind <> 'b' OR amoppurpose = 's' AND oprresult <> 'boolean'::regtype $$, 'members that search are boolean');
SELECT is_empty($$ SELECT amopopr::regoperator FROM amop JOIN pg_operator o ON o.oid = amopopr
    WHERE NOT pg_temp.coercible(amoplefttype, oprleft) OR NOT pg_temp.coercible(amoprighttype, oprright) $$,
    'members take the types of their entry');
SELECT is_empty($$ SELECT amopopr::regoperator FROM amop JOIN pg_operator o ON o.oid = amopopr JOIN pg_proc p ON p.oid = oprcode
    WHERE provolatile = 'v' OR NOT proisstrict OR proretset $$, 'members are strict and not volatile');
SELECT is_empty($$ SELECT a.amopopr::regoperator FROM amop a JOIN pg_amop b ON a.amopfamily = b.amopfamily
    AND a.amopstrategy = b.amopstrategy AND a.amoplefttype = b.amoplefttype AND a.amoprighttype = b.amoprighttype
    AND a.oid <> b.oid $$, 'one member for each strategy and types');
SELECT is_empty($$ SELECT amopopr::regoperator FROM amop JOIN pg_operator o ON o.oid = amopopr
    WHERE amoppurpose = 's' AND (oprrest = 0 OR oprjoin = 0) $$, 'members that search have estimators');
SELECT is_empty($$ SELECT amopopr::regoperator FROM amop JOIN pg_operator o ON o.oid = amopopr
    WHERE amname = 'btree' AND (oprrest <> CASE amopstrategy WHEN 1 THEN 'scalarltsel' WHEN 2 THEN 'scalarlesel' WHEN 3 THEN 'eqsel'
            WHEN 4 THEN 'scalargesel' ELSE 'scalargtsel' END::regproc
        OR oprjoin <> CASE amopstrategy WHEN 1 THEN 'scalarltjoinsel' WHEN 2 THEN 'scalarlejoinsel' WHEN 3 THEN 'eqjoinsel'
            WHEN 4 THEN 'scalargejoinsel' ELSE 'scalargtjoinsel' END::regproc) $$, 'those of B-trees have the server''s');

-- pg_amproc
SELECT is_empty($$ SELECT amproc FROM amproc LEFT JOIN pg_proc p ON p.oid = amproc WHERE p.oid IS NULL OR amprocnum < 1
    OR proretset OR provolatile = 'v' $$, 'support functions');
SELECT is_empty($$ SELECT amproc FROM amproc WHERE NOT EXISTS (SELECT FROM pg_opclass
    WHERE opcfamily = amprocfamily AND amproclefttype IN (opcintype, amprocrighttype)) $$, 'are of types of the family');

-- pg_operator
SELECT is_empty($$ SELECT name FROM own_operator WHERE oprcode = 0 OR oprresult = 0 OR oprright = 0
    OR (oprkind = 'l') <> (oprleft = 0) OR oprkind NOT IN ('b', 'l') $$, 'operators are complete');
SELECT is_empty($$ SELECT a.name FROM own_operator a JOIN pg_operator b ON b.oid = a.oprcom WHERE a.oprresult <> b.oprresult
    OR a.oprleft <> b.oprright OR a.oprright <> b.oprleft OR b.oprcom <> a.oid $$, 'commutators mirror each other');
SELECT is_empty($$ SELECT a.name FROM own_operator a JOIN pg_operator b ON b.oid = a.oprnegate WHERE a.oprresult <> 'boolean'::regtype
    OR a.oprleft <> b.oprleft OR a.oprright <> b.oprright OR b.oprnegate <> a.oid OR a.oid = b.oid $$, 'negators mirror each other');
SELECT is_empty($$ SELECT name FROM own_operator WHERE oprcom <> 0 AND oprcom NOT IN (SELECT oid FROM pg_operator)
    OR oprnegate <> 0 AND oprnegate NOT IN (SELECT oid FROM pg_operator) $$, 'and exist');
SELECT is_empty($$ SELECT name FROM own_operator WHERE (oprcanmerge OR oprcanhash) AND (oprresult <> 'boolean'::regtype
    OR oprkind <> 'b' OR oprcom = 0) $$, 'operators that merge or hash');
SELECT is_empty($$ SELECT name FROM own_operator JOIN pg_proc p ON p.oid = oprcode WHERE prorettype <> oprresult
    OR pronargs <> CASE oprkind WHEN 'b' THEN 2 ELSE 1 END OR proargtypes[pronargs - 1] <> oprright
    OR oprkind = 'b' AND proargtypes[0] <> oprleft $$, 'operators have the types of their function');
SELECT is_empty($$ SELECT name FROM own_operator JOIN pg_proc p ON p.oid = oprcode WHERE provolatile = 'v' OR proretset
    OR (oprcanmerge OR oprcanhash) AND provolatile <> 'i' $$, 'which is not volatile');
SELECT is_empty($$ SELECT a.name FROM own_operator a JOIN pg_operator b ON b.oid = a.oprcom
    JOIN pg_proc f ON f.oid = a.oprcode JOIN pg_proc g ON g.oid = b.oprcode WHERE (f.provolatile, f.proisstrict, f.proparallel,
        f.proleakproof) <> (g.provolatile, g.proisstrict, g.proparallel, g.proleakproof) $$, 'commutators call functions alike');
SELECT is_empty($$ SELECT name FROM own_operator JOIN pg_proc p ON p.oid = oprrest WHERE prorettype <> 'float8'::regtype
    OR proretset OR provolatile = 'v' OR pronargs <> 4 OR proargtypes[0] <> 'internal'::regtype OR proargtypes[1] <> 'oid'::regtype
    OR proargtypes[2] <> 'internal'::regtype OR proargtypes[3] <> 'integer'::regtype $$, 'restriction estimators');
SELECT is_empty($$ SELECT name FROM own_operator JOIN pg_proc p ON p.oid = oprjoin WHERE prorettype <> 'float8'::regtype
    OR proretset OR provolatile = 'v' OR pronargs <> 5 OR proargtypes[0] <> 'internal'::regtype OR proargtypes[1] <> 'oid'::regtype
    OR proargtypes[2] <> 'internal'::regtype OR proargtypes[3] <> 'smallint'::regtype OR proargtypes[4] <> 'internal'::regtype $$,
    'join estimators');

SELECT * FROM finish();
ROLLBACK;
