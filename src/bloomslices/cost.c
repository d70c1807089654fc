/*
 * cost.c
 *		What a scan by bloomslices costs.
 */
#include "pg/pg_compat.h"

#include "access/genam.h"
#include "bloomslices/bloomslices.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

void
bloomslices_costestimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup,
						 Cost *total, Selectivity *selectivity, double *correlation, double *pages)
{
	GenericCosts costs = {0};

	genericcostestimate(root, path, loop_count, &costs);
	*startup = *total = costs.indexTotalCost;
	*selectivity = costs.indexSelectivity;
	*correlation = 1;
	*pages = costs.numIndexPages;
}
