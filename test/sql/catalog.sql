-- The catalog entries are complete, documented and consistent. As PostgreSQL's own
-- opr_sanity and type_sanity do, most queries here look for a fault and find none.
CREATE TEMP TABLE member AS
	SELECT classid, objid FROM pg_depend
	WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype')
		-- the server makes the array type, and counts it from release 17 on
		AND NOT (classid = 'pg_type'::regclass AND objid IN (SELECT oid FROM pg_type WHERE typelem <> 0));
CREATE TEMP TABLE function AS
	SELECT p.oid::regprocedure AS name, p.* FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid;
CREATE TEMP TABLE operator AS
	SELECT o.oid::regoperator AS name, o.* FROM member JOIN pg_operator o ON classid = 'pg_operator'::regclass
		AND objid = o.oid;
CREATE TEMP TABLE aggregate AS
	SELECT f.name, a.* FROM function f JOIN pg_aggregate a ON aggfnoid = f.oid;

SELECT classid::regclass, count(*) FROM member GROUP BY classid ORDER BY classid::regclass::text COLLATE "C";

-- objects without a comment; functions that share one, except support functions and those that compare
SELECT pg_describe_object(classid, objid, 0), obj_description(objid, classid::regclass::name)
FROM member WHERE coalesce(obj_description(objid, classid::regclass::name), '') !~ '\w';
SELECT array_agg(name ORDER BY name::text), obj_description(oid) FROM function, LATERAL obj_description(oid, 'pg_proc')
WHERE obj_description !~ '^(I/O|aggregate .* function|implementation of \S+ operator|less-equal-greater|hash( with seed)?)$'
GROUP BY 2 HAVING count(*) > 1;

-- functions of another library or language, with rights or settings of their own, marked leakproof, or restricted
SELECT name FROM function JOIN pg_language l ON l.oid = prolang
WHERE prokind = 'f' AND lanname <> 'internal' AND (lanname <> 'c' OR probin IS DISTINCT FROM (SELECT min(probin) FROM function))
	OR prosecdef OR proleakproof OR proconfig IS NOT NULL OR proacl IS NOT NULL OR proretset OR provariadic <> 0;
-- functions and C symbols with a name that other extensions could use
SELECT name, prosrc FROM function WHERE proname !~ '^bloom' OR prosrc ~ '^bloom_';
-- not immutable, or not parallel safe: what reads statistics, labels of enums or indexes
SELECT name, provolatile, proparallel FROM function WHERE provolatile <> 'i' OR proparallel <> 's' ORDER BY name::text;
-- the server's functions for bytea, declared as the server declares them
SELECT f.name, f.prosrc, (f.proisstrict, f.provolatile, f.proparallel) = (p.proisstrict, p.provolatile, p.proparallel) AS same
FROM function f JOIN pg_language l ON l.oid = f.prolang AND lanname = 'internal' AND f.prokind = 'f'
	LEFT JOIN pg_proc p ON p.proname = f.prosrc AND p.pronamespace = 'pg_catalog'::regnamespace
ORDER BY f.name::text;
-- functions in another schema than the type's
SELECT name FROM function WHERE pronamespace <> (SELECT typnamespace FROM pg_type WHERE typname = 'bloomfilter');
-- functions of one implementation, declared differently
SELECT a.name, b.name FROM function a JOIN function b ON a.prosrc = b.prosrc AND a.probin = b.probin AND a.oid < b.oid
WHERE (a.prolang, a.proisstrict, a.provolatile, a.proparallel, a.prorettype, a.procost, a.prorows)
	<> (b.prolang, b.proisstrict, b.provolatile, b.proparallel, b.prorettype, b.procost, b.prorows)
ORDER BY a.name::text;
-- functions that return internal without an internal argument, or a polymorphic type, which that of arguments decides
SELECT name FROM function
WHERE prorettype = 'internal'::regtype AND NOT 'internal'::regtype = ANY (proargtypes)
	OR prorettype::regtype::text LIKE 'any%';
-- functions that are not strict, because they handle nulls
SELECT name FROM function WHERE NOT proisstrict AND prokind = 'f' ORDER BY name::text;

-- the types: an untyped argument means a filter where a function also has a form for counters
SELECT typname, typcategory, typispreferred, typisdefined, typbyval, typlen, typstorage, typalign, typcollation,
	typmodin, typanalyze
FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid ORDER BY typname;
-- types without an array type
SELECT t.typname FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
	LEFT JOIN pg_type a ON a.oid = t.typarray AND a.typelem = t.oid AND a.typalign = t.typalign
WHERE a.oid IS NULL;
-- I/O functions that are not strict, not immutable, or of another signature
SELECT i.name FROM member JOIN pg_type t ON classid = 'pg_type'::regclass AND t.oid = objid
	JOIN function i ON i.oid IN (typinput, typoutput, typreceive, typsend)
WHERE NOT i.proisstrict OR i.provolatile <> 'i' OR i.pronargs <> 1
	OR concat_ws(' to ', i.proargtypes[0]::regtype, i.prorettype::regtype)
	<> CASE i.oid WHEN typinput THEN 'cstring to ' || t.oid::regtype WHEN typoutput THEN t.oid::regtype || ' to cstring'
		WHEN typreceive THEN 'internal to ' || t.oid::regtype ELSE t.oid::regtype || ' to bytea' END;

-- the casts, and those that are not explicit, have no cast back, or do not fit their function: a filter has no numbers
SELECT castsource::regtype, casttarget::regtype FROM member JOIN pg_cast c ON classid = 'pg_cast'::regclass AND c.oid = objid
	ORDER BY 1, 2;
SELECT castsource::regtype, casttarget::regtype
FROM member JOIN pg_cast c ON classid = 'pg_cast'::regclass AND c.oid = objid LEFT JOIN function f ON f.oid = castfunc
WHERE f.oid IS NULL OR castcontext <> 'e' OR castmethod <> 'f' OR pronargs <> 1 OR proargtypes[0] <> castsource
	OR prorettype <> casttarget OR provolatile <> 'i' OR NOT proisstrict
	OR NOT EXISTS (SELECT FROM pg_cast b WHERE b.castsource = c.casttarget AND b.casttarget = c.castsource);

-- the operators
SELECT o.name, c.oprname AS commutator, o.oprrest, o.oprjoin FROM operator o LEFT JOIN operator c ON c.oid = o.oprcom
	ORDER BY o.name::text COLLATE "C";
-- operators with other types than their function
SELECT o.name, f.name FROM operator o LEFT JOIN function f ON f.oid = oprcode
WHERE f.oid IS NULL OR oprresult <> prorettype
	OR array_to_string(array_remove(ARRAY[oprleft, oprright], 0::oid), ' ') <> proargtypes::text
	OR NOT proisstrict OR provolatile <> 'i';
-- operators that share a function
SELECT array_agg(name) FROM operator GROUP BY oprcode HAVING count(*) > 1;
-- binary operators without a commutator that points back and swaps the operands: the difference, and those of queries
SELECT a.name FROM operator a LEFT JOIN operator b ON b.oid = a.oprcom AND b.oprcom = a.oid
	AND b.oprleft = a.oprright AND b.oprright = a.oprleft AND b.oprresult = a.oprresult
WHERE a.oprkind = 'b' AND b.oid IS NULL
ORDER BY a.name::text COLLATE "C";
-- operators with a negator that does not point back, is the operator itself, or has other operands
SELECT a.name FROM operator a LEFT JOIN operator b ON b.oid = a.oprnegate AND b.oprnegate = a.oid AND b.oid <> a.oid
	AND (b.oprleft, b.oprright, b.oprresult) = (a.oprleft, a.oprright, 'bool'::regtype::oid)
WHERE a.oprnegate <> 0 AND b.oid IS NULL;
-- operators whose function is declared differently from the commutator's or negator's
SELECT a.name, b.name FROM operator a JOIN operator b ON b.oid IN (a.oprcom, a.oprnegate)
	JOIN function f ON f.oid = a.oprcode JOIN function g ON g.oid = b.oprcode
WHERE (f.proisstrict, f.provolatile, f.proparallel, f.procost) <> (g.proisstrict, g.provolatile, g.proparallel,
	g.procost);
-- boolean operators without estimators, others with estimators, and commutators with
-- different estimators, except those that order
SELECT a.name FROM operator a LEFT JOIN operator b ON b.oid = a.oprcom
WHERE (a.oprresult = 'bool'::regtype) <> (a.oprrest <> 0) OR (a.oprrest <> 0) <> (a.oprjoin <> 0)
	OR (a.oprrest, a.oprjoin) <> (b.oprrest, b.oprjoin) AND a.oprname !~ '^[<>]=?$';
-- estimators of another signature
SELECT name, oprrest, oprjoin FROM operator
	JOIN pg_proc r ON r.oid = oprrest JOIN pg_proc j ON j.oid = oprjoin
WHERE r.proargtypes::oid[]::regtype[] <> '[0:3]={internal,oid,internal,integer}'::regtype[]
	OR j.proargtypes::oid[]::regtype[] <> '[0:4]={internal,oid,internal,smallint,internal}'::regtype[]
	OR (r.prorettype, j.prorettype) <> ('float8'::regtype, 'float8'::regtype)
	OR r.provolatile = 'v' OR j.provolatile = 'v' OR NOT r.proisstrict OR NOT j.proisstrict;
-- operators that can hash or merge, but are in no operator class for it, or the reverse
SELECT name FROM operator o
WHERE oprcanhash <> EXISTS (SELECT FROM pg_amop WHERE amopopr = o.oid AND amopstrategy = 1
		AND amopmethod = (SELECT oid FROM pg_am WHERE amname = 'hash'))
	OR oprcanmerge <> EXISTS (SELECT FROM pg_amop WHERE amopopr = o.oid AND amopstrategy = 3
		AND amopmethod = (SELECT oid FROM pg_am WHERE amname = 'btree'))
	OR oprcanhash AND oprcom <> oid;
-- operators with the comment of their function
SELECT o.name, obj_description(o.oid, 'pg_operator') FROM operator o
	WHERE obj_description(o.oid, 'pg_operator') ~ 'implementation';

-- the operator classes
SELECT opcname, amname, amvalidate(c.oid), opcdefault, opcintype::regtype, opckeytype
FROM member JOIN pg_opclass c ON classid = 'pg_opclass'::regclass AND c.oid = objid JOIN pg_am a ON a.oid = opcmethod
	ORDER BY 1, 2;
-- members of the families that are not of the extension
SELECT amopopr::regoperator FROM member JOIN pg_amop ON classid = 'pg_opfamily'::regclass AND amopfamily = objid
WHERE amopopr NOT IN (SELECT oid FROM operator);
SELECT amproc FROM member JOIN pg_amproc ON classid = 'pg_opfamily'::regclass AND amprocfamily = objid
WHERE amproc NOT IN (SELECT oid FROM function WHERE proisstrict AND provolatile = 'i');
SELECT amproclefttype::regtype, amprocnum, amproc::regprocedure FROM member JOIN pg_amproc
	ON classid = 'pg_opfamily'::regclass AND amprocfamily = objid ORDER BY 1, 2, amproc::regprocedure::text;

-- the aggregates
SELECT name FROM aggregate ORDER BY name::text COLLATE "C";
-- aggregates that are not declared as aggregates must be
SELECT name FROM function WHERE prokind = 'a'
	AND (proisstrict OR provolatile <> 'i' OR proparallel <> 's' OR oid NOT IN (SELECT aggfnoid FROM aggregate));
-- aggregates that parallel plans cannot use: partial states would all begin with the counter that is given
SELECT name FROM aggregate
WHERE aggcombinefn = 0 OR (aggtranstype = 'internal'::regtype) <> (aggserialfn <> 0)
	OR (aggserialfn = 0) <> (aggdeserialfn = 0);
-- aggregates with a transition function of another signature, or a strict one for another type than the state's
SELECT a.name, t.name FROM aggregate a JOIN function f ON f.oid = aggfnoid LEFT JOIN function t ON t.oid = aggtransfn
WHERE t.oid IS NULL OR t.proargtypes::text <> aggtranstype || ' ' || f.proargtypes::text OR t.prorettype <> aggtranstype
	OR t.proisstrict AND f.proargtypes::text <> aggtranstype::text
	OR aggtranstype NOT IN ('internal'::regtype, 'bloomfilter'::regtype, 'bloomcounter'::regtype)
	OR agginitval IS NOT NULL OR aggtransspace <= 0;
-- aggregates that return NULL over no rows, because the final function is strict or missing, or one of another signature
SELECT a.name, t.name FROM aggregate a JOIN function f ON f.oid = aggfnoid LEFT JOIN function t ON t.oid = aggfinalfn
WHERE t.oid IS NULL OR t.proargtypes::text <> aggtranstype::text OR t.prorettype <> f.prorettype OR t.proisstrict
	OR aggfinalextra OR aggfinalmodify <> 'r' ORDER BY a.name::text;
-- aggregates with other support functions of another signature or strictness
SELECT a.name FROM aggregate a LEFT JOIN function c ON c.oid = aggcombinefn LEFT JOIN function s ON s.oid = aggserialfn
	LEFT JOIN function d ON d.oid = aggdeserialfn
WHERE aggcombinefn <> 0 AND (aggtranstype <> 'internal'::regtype AND aggcombinefn <> aggtransfn
	OR aggtranstype = 'internal'::regtype AND ((c.proargtypes::oid[]::regtype[], c.prorettype, c.proisstrict)
		IS DISTINCT FROM ('[0:1]={internal,internal}'::regtype[], 'internal'::regtype::oid, false)
	OR (s.proargtypes::oid[]::regtype[], s.prorettype, s.proisstrict)
		IS DISTINCT FROM ('[0:0]={internal}'::regtype[], 'bytea'::regtype::oid, true)
	OR (d.proargtypes::oid[]::regtype[], d.prorettype, d.proisstrict)
		IS DISTINCT FROM ('[0:1]={bytea,internal}'::regtype[], 'internal'::regtype::oid, true)));
-- support functions of the aggregates that SQL can call
SELECT name FROM function f
WHERE NOT 'internal'::regtype = ANY (proargtypes)
	AND EXISTS (SELECT FROM aggregate WHERE f.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn, aggdeserialfn))
ORDER BY name::text COLLATE "C";
-- aggregates with moving frames, sort operators, or of another kind
SELECT name FROM aggregate WHERE aggmtransfn <> 0 OR aggsortop <> 0 OR aggkind <> 'n' OR aggnumdirectargs <> 0;
-- functions with an internal argument that no other object uses
SELECT name FROM function f
WHERE 'internal'::regtype = ANY (proargtypes)
	AND NOT EXISTS (SELECT FROM aggregate WHERE f.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn,
		aggdeserialfn))
	AND NOT EXISTS (SELECT FROM operator WHERE f.oid IN (oprrest, oprjoin))
	AND NOT EXISTS (SELECT FROM function WHERE prosupport = f.oid)
	AND NOT EXISTS (SELECT FROM pg_amproc WHERE amproc = f.oid)
	AND NOT EXISTS (SELECT FROM pg_type WHERE typreceive = f.oid)
ORDER BY name::text COLLATE "C";
