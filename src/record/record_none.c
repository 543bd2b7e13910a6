/* Stubs for builds without libtracefs: every function fails. */
#include <stdlib.h>

#include "record/record.h"

static int refuse_recording(struct error *err)
{
	return error_set(err, STATUS_SYSTEM, "install libtracefs and build stealscope again",
	                 "this stealscope was built without libtracefs and cannot record");
}

int record_run(const struct record_options *o, struct record_result *r, struct error *err)
{
	(void)o;
	*r = (struct record_result){ 0 };
	return refuse_recording(err);
}

int record_check(const struct record_options *o, struct record_result *r, struct error *err)
{
	return record_run(o, r, err);
}

int record_cleanup(const struct record_options *o, struct error *err)
{
	(void)o;
	return refuse_recording(err);
}

void record_release(struct record_result *r)
{
	(void)r;
}

bool record_has_quotas(const char *root)
{
	(void)root;
	return false;
}
