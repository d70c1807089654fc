-- The catalog entries: documented, safe to run anywhere, consistent.
CREATE TEMP VIEW members AS
	SELECT classid, objid, pg_describe_object(classid, objid, 0) AS object
	FROM pg_depend
	WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomtype');

-- every object has a comment (an array type is made by the server)
SELECT object FROM members
WHERE obj_description(objid, classid::regclass::name) IS NULL AND object NOT LIKE 'type %[]';

-- every function is parallel safe, and immutable but for the estimators
SELECT proname, provolatile, proparallel
FROM members JOIN pg_proc p ON p.oid = objid AND classid = 'pg_proc'::regclass
WHERE proparallel <> 's' OR provolatile <> 'i'
ORDER BY 1;

-- every operator has a commutator that is its mirror image, and membership our estimator
SELECT o.oprname, o.oprleft::regtype, o.oprright::regtype, c.oprname AS commutator, o.oprrest, o.oprjoin
FROM members JOIN pg_operator o ON o.oid = objid AND classid = 'pg_operator'::regclass
	LEFT JOIN pg_operator c ON c.oid = o.oprcom AND c.oprcom = o.oid
		AND c.oprleft = o.oprright AND c.oprright = o.oprleft
ORDER BY 1, 2, 3;

-- aggregates can run in parallel
SELECT aggfnoid::regprocedure FROM members JOIN pg_aggregate ON aggfnoid = objid
WHERE classid = 'pg_proc'::regclass AND (aggcombinefn = 0
	OR aggtranstype = 'internal'::regtype AND (aggserialfn = 0 OR aggdeserialfn = 0));

SELECT typname, typlen, typalign, typstorage FROM pg_type WHERE typname = 'bloomfilter';
SELECT castsource::regtype, casttarget::regtype, castcontext, castmethod
FROM members JOIN pg_cast c ON c.oid = objid AND classid = 'pg_cast'::regclass ORDER BY 1, 2;
