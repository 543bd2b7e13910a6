/* Fuzz target: input as a session file. '/' is replaced, because otherwise whole file systems would be searched for
 * traces. */
#include <stdlib.h>
#include <string.h>

#include "index/session.h"
#include "fuzz_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { 0 };
	struct error err = ERROR_INIT;
	char *text = malloc(size + 1);
	if (!text)
		abort();
	for (size_t i = 0; i < size; i++)
		text[i] = data[i] == '/' ? '_' : (char)data[i];
	text[size] = '\0';
	if (session_parse(&in, text, size, "nowhere/session.yaml", &err) && (!err.text[0] || strchr(err.text, '\n')))
		abort();
	input_release(&in);
	free(text);
	return 0;
}
