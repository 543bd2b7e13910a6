#include "trace/live/library.h"

#include "base/base.h"

int library_error(struct error *err, const char *object)
{
	const bt_error *e = bt_current_thread_take_error();
	char text[512] = "unknown error";
	if (e && bt_error_get_cause_count(e)) {
		snprintf(text, sizeof text, "%s", bt_error_cause_get_message(bt_error_borrow_cause_by_index(e, 0)));
		if (strstr(text, "returned EOF"))
			snprintf(text, sizeof text, "the file ends within an event");
		char *object_at = strstr(text, object);
		if (object_at && object_at - text > 6 && !strncmp(object_at - 6, " for `", 6))
			object_at[-6] = '\0';  /* the message already starts with the name */
		char *details = strstr(text, "-addr=");
		while (details && details > text && details[-1] != ' ' )
			details--;
		if (details && details > text + 2)
			details[-2] = '\0';  /* removes ": " or ", " */
	}
	if (e)
		bt_error_release(e);
	return error_set(err, STATUS_INPUT, NULL, "%s: %s", object, text);
}

int library_find_ctf(const bt_plugin **plugin, struct error *err)
{
	bt_logging_set_global_level(BT_LOGGING_LEVEL_NONE);
	bt_plugin_find_status found = bt_plugin_find("ctf", BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, BT_TRUE, plugin);
	if (found == BT_PLUGIN_FIND_STATUS_OK)
		return 0;
	bt_current_thread_clear_error();
	return error_set(err, STATUS_SYSTEM, "install libbabeltrace2 with its plugins, or set BABELTRACE_PLUGIN_PATH",
	                 "libbabeltrace2: its plugin 'ctf' cannot be found");
}
