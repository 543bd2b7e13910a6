/* Built without libtracefs: nothing can be recorded. */
#include <stdlib.h>

#include "record/record.h"

static int refuse(struct error *err)
{
	return error_set(err, STATUS_SYSTEM, "build it with libtracefs", "this stealscope cannot record");
}

int record_run(const struct record_options *o, struct record_result *r, struct error *err)
{
	(void)o;
	*r = (struct record_result){ 0 };
	return refuse(err);
}

int record_check(const struct record_options *o, struct record_result *r, struct error *err)
{
	return record_run(o, r, err);
}

int record_cleanup(const struct record_options *o, struct error *err)
{
	(void)o;
	return refuse(err);
}

void record_release(struct record_result *r)
{
	(void)r;
}
