/* The program of a fuzz target without a fuzzer: replays the files that it is given, or its corpus. */
#include "fuzz_replay.h"

#ifndef FUZZ_LIBFUZZER
int main(int argc, char **argv)
{
	return replay_main(argc, argv);
}
#endif
