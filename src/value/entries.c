/*
 * entries.c
 *		Writing and merging the elements of sparse filters.
 */
#include "pg/pg_compat.h"

#include "value/entries.h"
#include "value/errors.h"

EntryWriter
write_entries(bf_filter *result, uint64 most)
{
	EntryWriter writer = {.result = result};

	result->sparse = true;
	result->nhashes = most;
	writer.value = make_value(result, false, &writer.hashes);
	if (bf_kind_of(&result->params) == BF_COUNTER)
		writer.numbers = writer.hashes + BF_HASH_BYTES * most;
	return writer;
}

BloomValue *
finish_entries(EntryWriter *writer)
{
	bf_filter  *result = writer->result;

	result->nhashes = writer->count;
	result->payload = bf_encode_header(result, (uint8 *) VARDATA(writer->value));
	if (writer->numbers != NULL)
		memmove(writer->hashes + BF_HASH_BYTES * writer->count, writer->numbers,
				BF_NUMBER_BYTES * writer->count);
	SET_VARSIZE(writer->value, VARHDRSZ + bf_encoded_size(result));
	return writer->value;
}

uint64
merge_entries(const bf_filter *left, const bf_filter *right, bf_combination combination,
			  uint8 *hashes, uint8 *numbers)
{
	bf_merge	merge = {.a = left, .b = right, .combination = combination};
	uint64		count = 0;

	while (!bf_merge_done(&merge))
	{
		CHECK_FOR_INTERRUPTS();
		count += bf_merge_entries(&merge, hashes == NULL ? NULL : hashes + BF_HASH_BYTES * count,
								  hashes == NULL ? NULL : numbers + BF_NUMBER_BYTES * count, CHUNK_HASHES);
	}
	if (merge.misfit)
		report_misfit();
	return count;
}
