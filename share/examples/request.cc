// A request as a C++ object: it starts when it is constructed, and ends when it is destroyed.
//
//     c++ -std=c++17 request.cc $(pkg-config --cflags --libs stealscope-mark) -o request
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include <stealscope-mark.h>

class Request {
public:
	Request() : id(srbn_start()) {}
	~Request() { end(); }
	Request(const Request &) = delete;
	Request &operator=(const Request &) = delete;

	void yield() { srbn_yield(id); }
	void resume() { srbn_resume(id); }
	void end()
	{
		if (!ended)
			srbn_end(id);
		ended = true;
	}
	// Counters of the request, up to now or to its end; nothing if there are none.
	std::optional<srbn_data> read() const
	{
		srbn_data d;
		return srbn_read(id, &d) == 0 ? std::optional<srbn_data>(d) : std::nullopt;
	}

private:
	srbn_t id;
	bool ended = false;
};

int main(int argc, char **argv)
{
	srbn_live(nullptr);
	if (argc > 1 && srbn_model(argv[1]) != 0)
		std::perror(argv[1]);
	Request r;
	const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
	while (std::chrono::steady_clock::now() < until)
		continue;
	r.yield();
	std::this_thread::sleep_for(std::chrono::milliseconds(5));
	r.resume();
	r.end();
	if (const auto d = r.read())
		std::printf("latency %.3f ms, stolen %.3f to %.3f ms, source %u, flags %u\n", d->latency_ns / 1e6, d->stolen_low_ns / 1e6,
		            d->stolen_high_ns / 1e6, d->source, d->flags);
	return 0;
}
