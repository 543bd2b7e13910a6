/* main() of a fuzz target without a fuzzer: replays the given files, or the corpus of the target. */
#include "fuzz_replay.h"

#ifndef FUZZ_LIBFUZZER
int main(int argc, char **argv)
{
	return replay_main(argc, argv);
}
#endif
