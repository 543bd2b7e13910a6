/* A server that sheds load while its provider is slow: it refuses every second request while others took more than LIMIT of
 * the latency of the last requests.
 *
 *     cc shed_load.c $(pkg-config --cflags --libs stealscope-mark) -o shed_load
 *     ./shed_load 8080 0.3 &
 *     curl http://127.0.0.1:8080/ */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stealscope-mark.h>

static void answer(int client, const char *status, double stolen)
{
	char text[200];
	const int n = snprintf(text, sizeof text, "HTTP/1.0 %s\r\n\r\nstolen: %.1f %%\n", status, 100 * stolen);
	if (write(client, text, (size_t)n) != n)
		perror("answer");
	close(client);
}

/* Returns the provider's share of a request. The minimum is certain; schedstat has only a maximum. */
static double stolen_share(srbn_t request)
{
	struct srbn_data d;
	if (srbn_read(request, &d) || d.latency_ns <= 0)
		return 0;
	return (double)(d.source == SRBN_SOURCE_SCHEDSTAT ? d.stolen_high_ns : d.stolen_low_ns) / (double)d.latency_ns;
}

int main(int argc, char **argv)
{
	const struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 8080)),
	                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const double limit = argc > 2 ? atof(argv[2]) : 0.3;
	const int server = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	double stolen = 0;  /* moving average */
	setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(server, (const struct sockaddr *)&at, sizeof at) || listen(server, 64)) {
		perror("listen");
		return 1;
	}
	fprintf(stderr, "source of counters: %d\n", srbn_live(NULL));
	for (unsigned n = 0;; n++) {
		char request[4096];
		const int client = accept(server, NULL, NULL);
		if (read(client, request, sizeof request) <= 0 || (n % 2 && stolen > limit)) {
			answer(client, "503 Service Unavailable", stolen);
			continue;
		}
		srbn_t r = srbn_start();
		for (volatile unsigned long i = 0; i < 20000000; i++)
			continue;  /* the work */
		srbn_end(r);
		stolen += 0.2 * (stolen_share(r) - stolen);
		answer(client, "200 OK", stolen);
	}
}
